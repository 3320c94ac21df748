//! The budget of retries: a share of the requests of the last 10 s, so that retries do not multiply an overload.
//!
//! All threads share it. It counts in one word per second without a lock, so threads that ask at the same moment may
//! exceed it by one each.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use posthaste_units::{Instant, Ratio};

/// Seconds that count, the current one included.
const WINDOW: u64 = 10;

/// Retries permitted in a window whatever the number of requests.
const LEAST: u64 = 10;

/// Words of the ring. More than [`WINDOW`], so that a late writer cannot reach a second that still counts.
const SLOTS: usize = 16;

/// A word has a second (24 bits), the requests in it (24 bits) and the retries (16 bits).
const REQUEST: u64 = 1 << 16;
const SECOND: u64 = 1 << 40;

/// Requests and retries of one route.
#[derive(Debug)]
pub(crate) struct RetryBudget([AtomicU64; SLOTS]);

impl Default for RetryBudget {
    fn default() -> Self {
        Self(array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl RetryBudget {
    /// Counts a request of a client.
    pub(super) fn count_request(&self, now: Instant) {
        self.add(now, |requests, retries| ((requests + 1), retries));
    }

    /// Takes one retry out of the budget, `share` of the requests. False if there is none left.
    pub(super) fn take(&self, now: Instant, share: Ratio) -> bool {
        let (requests, retries) = self.recent(now);
        let permitted = LEAST.max((requests as f64 * share.get()) as u64);
        let may = retries < permitted;
        if may {
            self.add(now, |requests, retries| (requests, retries + 1));
        }
        may
    }

    /// Requests and retries of the window that ends now.
    fn recent(&self, now: Instant) -> (u64, u64) {
        let current = second(now);
        let slots = self.0.iter().map(|slot| slot.load(Relaxed));
        let recent = slots.filter(|word| age(current, *word) < WINDOW);
        recent.fold((0, 0), |(requests, retries), word| {
            let (more, again) = counts(word);
            (requests + more, retries + again)
        })
    }

    /// Changes the counts of the current second. A count that is full stays so.
    fn add(&self, now: Instant, change: impl Fn(u64, u64) -> (u64, u64)) {
        let current = second(now);
        let slot = &self.0[(current % SLOTS as u64) as usize];
        // Always succeeds.
        let _ = slot.fetch_update(Relaxed, Relaxed, |word| {
            let known = if word / SECOND == current { word } else { 0 };
            let (requests, retries) = counts(known);
            let (requests, retries) = change(requests, retries);
            let requests = requests.min(SECOND / REQUEST - 1);
            Some(current * SECOND + requests * REQUEST + retries.min(REQUEST - 1))
        });
    }
}

/// The second of a time, within the bits that a word has for it. 0 is reserved for words that were never written.
fn second(now: Instant) -> u64 {
    (now.as_nanos() / 1_000_000_000 + 1) % (1 << 24)
}

/// Seconds between that of `word` and the `current` one, over the wrap of their bits.
fn age(current: u64, word: u64) -> u64 {
    match word {
        0 => u64::MAX,
        _ => current.wrapping_sub(word / SECOND) % (1 << 24),
    }
}

fn counts(word: u64) -> (u64, u64) {
    (word % SECOND / REQUEST, word % REQUEST)
}

#[cfg(test)]
mod tests {
    use posthaste_units::Span;

    use super::*;

    fn at(second: u64) -> Instant {
        Instant::from_nanos(0) + Span::from_secs(second)
    }

    fn taken(budget: &RetryBudget, now: Instant, share: f64) -> usize {
        let share = Ratio::new(share).unwrap();
        (0..1000).take_while(|_| budget.take(now, share)).count()
    }

    #[test]
    fn a_few_retries_need_no_requests() {
        let budget = RetryBudget::default();
        assert_eq!(taken(&budget, at(100), 0.0), 10);
        assert_eq!(taken(&budget, at(109), 0.0), 0, "still within 10 s");
        assert_eq!(taken(&budget, at(110), 0.0), 10);
    }

    #[test]
    fn more_are_a_share_of_the_requests_of_the_window() {
        let budget = RetryBudget::default();
        for second in 50..60 {
            for _ in 0..50 {
                budget.count_request(at(second));
            }
        }
        assert_eq!(taken(&budget, at(59), 0.2), 100);
        // The requests of half the window have passed, and no retry has.
        assert_eq!(taken(&budget, at(64), 0.2), 0);
        assert_eq!(taken(&budget, at(68), 0.2), 0);
        assert_eq!(taken(&budget, at(69), 0.2), 10);
    }

    #[test]
    fn a_second_that_is_used_again_starts_at_zero() {
        let budget = RetryBudget::default();
        for _ in 0..1000 {
            budget.count_request(at(3));
        }
        // The same slot.
        budget.count_request(at(3 + SLOTS as u64));
        assert_eq!(budget.recent(at(3 + SLOTS as u64)), (1, 0));
    }

    #[test]
    fn counts_that_are_full_do_not_overflow_into_each_other() {
        let budget = RetryBudget::default();
        budget.add(at(1), |_, _| (1 << 24, 1 << 16));
        budget.count_request(at(1));
        let full = ((1 << 24) - 1, (1 << 16) - 1);
        assert_eq!(budget.recent(at(1)), full);
        assert_eq!(budget.recent(at(11)), (0, 0));
    }

    #[test]
    fn the_wrap_of_the_seconds_changes_nothing() {
        let budget = RetryBudget::default();
        // The last second before the wrap, and one after it.
        let last = (1 << 24) - 2;
        budget.count_request(at(last));
        budget.count_request(at(last + 2));
        assert_eq!(budget.recent(at(last + 3)), (2, 0));
    }
}
