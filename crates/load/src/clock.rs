//! The run's clock: CLOCK_MONOTONIC, counted from the start of the run; and a thread's processor time.

use posthaste_units::{Instant, Span};
use rustix::time::{ClockId, clock_gettime};

/// What the calling thread has used of a processor.
pub(crate) fn processor_time() -> Span {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Span::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Reads time for one run; copies agree with one another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock whose origin lies `lead` in the future, so that threads can get ready.
    pub(crate) fn starting_in(lead: Span) -> Self {
        Self {
            origin: std::time::Instant::now() + lead.into(),
        }
    }

    /// Now; before the origin it stands at the origin.
    pub(crate) fn now(&self) -> Instant {
        let elapsed = std::time::Instant::now().saturating_duration_since(self.origin);
        Instant::from_nanos(Span::from(elapsed).as_nanos())
    }

    /// Whether the origin still lies ahead, and how far.
    pub(crate) fn until_origin(&self) -> Span {
        self.origin
            .saturating_duration_since(std::time::Instant::now())
            .into()
    }
}
