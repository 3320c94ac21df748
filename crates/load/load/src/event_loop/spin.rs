//! Spin time: the time before a request is due in which the loop polls instead of sleeping. It is learned from the
//! loop's own sleeps.
//!
//! A sleep ends late: by a few microseconds on a busy core, by fifty on a core that was idle itself. Polling for longer
//! than that gains nothing and takes the core from other threads. Polling at the end of a very long wait gains nothing
//! measurable either.

use posthaste_units::{Instant, Span};

/// Maximum time of polling. It costs 6 % of a core at 1,000 requests per second.
const LONGEST: Span = Span::from_micros(60);
/// Minimum time of polling. One poll of the kernel takes as long.
const SHORTEST: Span = Span::from_micros(4);
/// Number of sleeps in which the spin time falls to a third. A short spin time delays one request in that many.
const MEMORY: u64 = 128;

/// Waits of at least this many spin times are slept to their end. The lateness is then half a percent of the wait.
const LONG_WAIT: u64 = 200;

/// The time of polling before a request is due. It rises at once and falls slowly.
pub(super) struct SpinTime(Span);

impl SpinTime {
    pub(super) fn new() -> Self {
        Self(LONGEST)
    }

    /// Returns the end of the sleep in a wait from `now` until `due`.
    pub(super) fn begin(&self, due: Instant, now: Instant) -> Instant {
        if due.saturating_since(now) >= self.0 * LONG_WAIT {
            due
        } else {
            due - self.0
        }
    }

    /// Learns from a sleep that should have ended at `planned` and ended at `now`.
    pub(super) fn learn(&mut self, planned: Instant, now: Instant) {
        let late = now.saturating_since(planned);
        let wanted = late + late / 2;
        let remembered = self.0.saturating_sub(self.0 / MEMORY);
        self.0 = wanted.max(remembered).clamp(SHORTEST, LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(spin: &mut SpinTime, sleeps: u64, late: Span) -> Span {
        for _ in 0..sleeps {
            spin.learn(Instant::ORIGIN, Instant::ORIGIN + late);
        }
        spin.0
    }

    #[test]
    fn it_comes_down_to_what_sleeps_need_and_goes_up_at_once() {
        let mut spin = SpinTime::new();
        assert_eq!(spin.0, LONGEST);
        let quick = Span::from_micros(6);
        assert!(after(&mut spin, MEMORY, quick) > LONGEST / 3);
        assert_eq!(after(&mut spin, 4 * MEMORY, quick), Span::from_micros(9));
        assert_eq!(
            after(&mut spin, 1, Span::from_micros(30)),
            Span::from_micros(45)
        );
    }

    #[test]
    fn long_waits_are_slept_to_their_end() {
        let spin = SpinTime::new();
        let sleeps = |wait| spin.begin(Instant::ORIGIN + wait, Instant::ORIGIN);
        let (short, long) = (Span::from_millis(1), Span::from_millis(12));
        assert_eq!(sleeps(short), Instant::ORIGIN + short - LONGEST);
        assert_eq!(sleeps(long), Instant::ORIGIN + long);
    }

    #[test]
    fn it_stays_within_its_bounds() {
        let mut spin = SpinTime::new();
        assert_eq!(after(&mut spin, 10_000, Span::ZERO), SHORTEST);
        assert_eq!(after(&mut spin, 1, Span::from_secs(1)), LONGEST);
    }
}
