//! Clocks of the gateway: monotonic time, and the CPU time of a thread.

use posthaste_units::{Instant, Span};
use rustix::time::{ClockId, clock_gettime};

/// Returns monotonic time from an arbitrary origin.
pub(crate) fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    Instant::from_nanos(nanos(time))
}

/// Returns the CPU time of the calling thread.
pub(crate) fn processor_time() -> Span {
    Span::from_nanos(nanos(clock_gettime(ClockId::ThreadCPUTime)))
}

fn nanos(time: rustix::time::Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
