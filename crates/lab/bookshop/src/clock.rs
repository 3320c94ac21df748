//! The clock of services and events. All times of the shop are in ns of it.

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC in ns.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
