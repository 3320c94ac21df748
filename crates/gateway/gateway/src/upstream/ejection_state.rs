//! Statistics and exclusion of one endpoint for the rules of `ejection`. Time is an argument.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use posthaste_units::{Instant, Span};

/// Maximum multiple of the configured time.
const MAX_ROW: u32 = 10;

/// Failures, response times and exclusion of one endpoint.
#[derive(Debug, Default)]
pub(crate) struct EjectionState {
    failures: AtomicU32,
    /// Replies in the current window, and the sum of their times in nanoseconds.
    replies: AtomicU32,
    nanos: AtomicU64,
    /// End of the last exclusion in nanoseconds of the clock; 0 for none.
    until: AtomicU64,
    /// Exclusions in a row, and the length of the last one in nanoseconds.
    row: AtomicU32,
    length: AtomicU64,
}

/// Replies of an endpoint in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) replies: u32,
    pub(super) nanos: u64,
}

impl EjectionState {
    /// True if the endpoint was ejected at least once. Costs no clock.
    pub(super) fn was_ejected(&self) -> bool {
        self.until.load(Relaxed) != 0
    }

    /// True during an exclusion.
    pub(super) fn is_ejected(&self, now: Instant) -> bool {
        now.as_nanos() < self.until.load(Relaxed)
    }

    /// Counts a failure. Returns the failures in a row.
    pub(super) fn fail(&self) -> u32 {
        self.failures.fetch_add(1, Relaxed).saturating_add(1)
    }

    /// Ends a row of failures, and adds the response time to the window.
    pub(super) fn succeed(&self, time: Option<Span>) {
        // Usually writes nothing, so the cache line stays shared among threads.
        if self.failures.load(Relaxed) != 0 {
            self.failures.store(0, Relaxed);
        }
        if let Some(time) = time {
            self.replies.fetch_add(1, Relaxed);
            self.nanos.fetch_add(time.as_nanos(), Relaxed);
        }
    }

    /// Ends the window.
    pub(super) fn take_window(&self) -> Window {
        Window {
            replies: self.replies.swap(0, Relaxed),
            nanos: self.nanos.swap(0, Relaxed),
        }
    }

    /// Starts an exclusion of `time`, or of a multiple.
    pub(super) fn eject(&self, now: Instant, time: Span) {
        let end = Instant::from_nanos(self.until.load(Relaxed));
        let length = Span::from_nanos(self.length.load(Relaxed));
        let row = next_row(self.row.load(Relaxed), end, length, now);
        let length = time * u64::from(row);
        self.row.store(row, Relaxed);
        self.length.store(length.as_nanos(), Relaxed);
        self.failures.store(0, Relaxed);
        self.until.store((now + length).as_nanos(), Relaxed);
    }
}

/// Returns the place in a row of an exclusion that starts at `now`, after one of `length` that ended at `end`.
fn next_row(row: u32, end: Instant, length: Span, now: Instant) -> u32 {
    let is_soon = row > 0 && now.saturating_since(end) < length;
    let next = if is_soon { row + 1 } else { 1 };
    next.min(MAX_ROW)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(1) + Span::from_millis(millis)
    }

    #[test]
    fn an_exclusion_soon_after_another_lasts_longer() {
        let [end, length] = [at(10_000).as_nanos(), 10_000_000_000];
        let next = |row, now| {
            let (end, length) = (Instant::from_nanos(end), Span::from_nanos(length));
            next_row(row, end, length, at(now))
        };
        assert_eq!(next(0, 11_000), 1);
        assert_eq!(next(1, 11_000), 2);
        assert_eq!(next(2, 19_999), 3);
        assert_eq!(
            next(2, 20_000),
            1,
            "it was in service as long as it was out"
        );
        assert_eq!(next(10, 11_000), 10);
        let state = EjectionState::default();
        state.eject(at(0), Span::from_secs(1));
        state.eject(at(1500), Span::from_secs(1));
        assert!(state.is_ejected(at(3499)) && !state.is_ejected(at(3500)));
    }
}
