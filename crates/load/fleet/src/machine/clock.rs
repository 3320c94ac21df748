//! The clock of this machine: CLOCK_MONOTONIC, that jumps of the wall clock do not change.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Maximum number of readings of both clocks.
const READINGS: usize = 64;

/// Distance of two readings that is close enough.
const CLOSE_NS: u64 = 1_000;

/// Nanoseconds since an unspecified origin, the same for all processes of this machine.
pub fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).expect("CLOCK_MONOTONIC is not negative");
    let nanos = u64::try_from(time.tv_nsec).expect("tv_nsec is not negative");
    seconds * 1_000_000_000 + nanos
}

/// The instant at which [`monotonic_ns`] returns `ns`, in the past or in the future. `None` if an [`Instant`] cannot be so
/// early.
///
/// Both are readings of one clock, but an instant has no number. A thread that is paused between the two readings would
/// shift the result by its pause, so the closest readings count.
pub fn instant_of(ns: u64) -> Option<Instant> {
    let read = || {
        let before = monotonic_ns();
        let now = Instant::now();
        (monotonic_ns() - before, before, now)
    };
    let mut closest = read();
    for _ in 1..READINGS {
        if closest.0 <= CLOSE_NS {
            break;
        }
        closest = closest.min(read());
    }
    let (width, before, now) = closest;
    let now_ns = before + width / 2;
    if ns >= now_ns {
        now.checked_add(Duration::from_nanos(ns - now_ns))
    } else {
        now.checked_sub(Duration::from_nanos(now_ns - ns))
    }
}
