//! The clock of this machine: CLOCK_MONOTONIC, that jumps of the wall clock do not change.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since an unspecified origin, the same for all processes of this machine.
pub fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).expect("CLOCK_MONOTONIC is not negative");
    let nanos = u64::try_from(time.tv_nsec).expect("tv_nsec is not negative");
    seconds * 1_000_000_000 + nanos
}
