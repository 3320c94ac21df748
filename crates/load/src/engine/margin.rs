//! How long before a request's time the loop stops sleeping: learned from its own sleeps.
//!
//! A sleep ends late, by a few microseconds on a busy core and by fifty on one that had fallen
//! asleep itself. Polling from further ahead than that buys nothing and takes the core away from
//! whatever shares it; so does polling at the end of a wait so long that nobody can tell.

use posthaste_units::{Instant, Span};

/// What is polled at most: it costs 6 % of a core at 1,000 requests per second.
const LONGEST: Span = Span::from_micros(60);
/// What is polled at least: a look at the kernel takes as long.
const SHORTEST: Span = Span::from_micros(4);
/// Sleeps in which the margin falls to a third: a margin too short delays one request in so many.
const MEMORY: u64 = 128;

/// Waits at least so many times as long as the margin are slept to their end: what is late then is
/// half a percent of them.
const LONG_WAIT: u64 = 200;

/// The margin: rises at once, falls slowly.
pub(super) struct Margin(Span);

impl Margin {
    pub(super) fn new() -> Self {
        Self(LONGEST)
    }

    /// Until when to sleep of a wait from `now` until `due`.
    pub(super) fn before(&self, due: Instant, now: Instant) -> Instant {
        if due.since(now) >= self.0 * LONG_WAIT {
            due
        } else {
            due - self.0
        }
    }

    /// Takes in that a sleep which was to end at `asked` ended at `now`.
    pub(super) fn slept(&mut self, asked: Instant, now: Instant) {
        let late = now.since(asked);
        let wanted = late + late / 2;
        let remembered = self.0.saturating_sub(self.0 / MEMORY);
        self.0 = wanted.max(remembered).clamp(SHORTEST, LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(margin: &mut Margin, sleeps: u64, late: Span) -> Span {
        for _ in 0..sleeps {
            margin.slept(Instant::ORIGIN, Instant::ORIGIN + late);
        }
        margin.0
    }

    #[test]
    fn it_comes_down_to_what_sleeps_need_and_goes_up_at_once() {
        let mut margin = Margin::new();
        assert_eq!(margin.0, LONGEST);
        let quick = Span::from_micros(6);
        assert!(after(&mut margin, MEMORY, quick) > LONGEST / 3);
        assert_eq!(after(&mut margin, 4 * MEMORY, quick), Span::from_micros(9));
        assert_eq!(
            after(&mut margin, 1, Span::from_micros(30)),
            Span::from_micros(45)
        );
    }

    #[test]
    fn long_waits_are_slept_to_their_end() {
        let margin = Margin::new();
        let sleeps = |wait| margin.before(Instant::ORIGIN + wait, Instant::ORIGIN);
        let (short, long) = (Span::from_millis(1), Span::from_millis(12));
        assert_eq!(sleeps(short), Instant::ORIGIN + short - LONGEST);
        assert_eq!(sleeps(long), Instant::ORIGIN + long);
    }

    #[test]
    fn it_stays_within_its_bounds() {
        let mut margin = Margin::new();
        assert_eq!(after(&mut margin, 10_000, Span::ZERO), SHORTEST);
        assert_eq!(after(&mut margin, 1, Span::from_secs(1)), LONGEST);
    }
}
