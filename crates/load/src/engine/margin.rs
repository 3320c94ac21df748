//! Time before a request is due at which the loop stops sleeping, learned from the loop's own sleeps.
//!
//! A sleep ends late: by a few microseconds on a busy core, by fifty on a core that was idle itself. Polling for longer
//! than that gains nothing and takes the core from other threads. Polling at the end of a very long wait gains nothing
//! measurable either.

use posthaste_units::{Instant, Span};

/// Maximum time of polling. It costs 6 % of a core at 1,000 requests per second.
const LONGEST: Span = Span::from_micros(60);
/// Minimum time of polling. One poll of the kernel takes as long.
const SHORTEST: Span = Span::from_micros(4);
/// Number of sleeps in which the margin falls to a third. A short margin delays one request in that many.
const MEMORY: u64 = 128;

/// Waits of at least this many margins are slept to their end. The lateness is then half a percent of the wait.
const LONG_WAIT: u64 = 200;

/// The margin. It rises at once and falls slowly.
pub(super) struct SpinTime(Span);

impl SpinTime {
    pub(super) fn new() -> Self {
        Self(LONGEST)
    }

    /// Returns the end of the sleep in a wait from `now` until `due`.
    pub(super) fn before(&self, due: Instant, now: Instant) -> Instant {
        if due.saturating_since(now) >= self.0 * LONG_WAIT {
            due
        } else {
            due - self.0
        }
    }

    /// Learns from a sleep that should have ended at `asked` and ended at `now`.
    pub(super) fn slept(&mut self, asked: Instant, now: Instant) {
        let late = now.saturating_since(asked);
        let wanted = late + late / 2;
        let remembered = self.0.saturating_sub(self.0 / MEMORY);
        self.0 = wanted.max(remembered).clamp(SHORTEST, LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(margin: &mut SpinTime, sleeps: u64, late: Span) -> Span {
        for _ in 0..sleeps {
            margin.slept(Instant::ORIGIN, Instant::ORIGIN + late);
        }
        margin.0
    }

    #[test]
    fn it_comes_down_to_what_sleeps_need_and_goes_up_at_once() {
        let mut margin = SpinTime::new();
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
        let margin = SpinTime::new();
        let sleeps = |wait| margin.before(Instant::ORIGIN + wait, Instant::ORIGIN);
        let (short, long) = (Span::from_millis(1), Span::from_millis(12));
        assert_eq!(sleeps(short), Instant::ORIGIN + short - LONGEST);
        assert_eq!(sleeps(long), Instant::ORIGIN + long);
    }

    #[test]
    fn it_stays_within_its_bounds() {
        let mut margin = SpinTime::new();
        assert_eq!(after(&mut margin, 10_000, Span::ZERO), SHORTEST);
        assert_eq!(after(&mut margin, 1, Span::from_secs(1)), LONGEST);
    }
}
