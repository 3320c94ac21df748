//! The run's clock (CLOCK_MONOTONIC from the start of the run) and a thread's CPU time.

use posthaste_units::{Instant, Span};
use rustix::time::{ClockId, clock_gettime};

/// CPU time used by the calling thread.
pub(crate) fn processor_time() -> Span {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Span::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Clock of one run. Copies agree with each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunClock {
    origin: std::time::Instant,
}

impl RunClock {
    pub(crate) const fn new(origin: std::time::Instant) -> Self {
        Self { origin }
    }

    /// Returns the current time. Before the origin it returns the origin.
    pub(crate) fn now(&self) -> Instant {
        self.instant(std::time::Instant::now())
    }

    /// Converts a time of the run for a state machine that uses the system's.
    pub(crate) fn at(&self, time: Instant) -> std::time::Instant {
        self.origin + std::time::Duration::from_nanos(time.as_nanos())
    }

    /// Converts a time of the system. Before the origin it returns the origin.
    pub(crate) fn instant(&self, time: std::time::Instant) -> Instant {
        let elapsed = time.saturating_duration_since(self.origin);
        Instant::from_nanos(Span::from(elapsed).as_nanos())
    }

    /// Time until the origin. Zero after it.
    pub(crate) fn until_origin(&self) -> Span {
        self.origin
            .saturating_duration_since(std::time::Instant::now())
            .into()
    }
}
