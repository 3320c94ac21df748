//! The clock of the time limits: ticks, counted by each thread's sweep.

use std::time::Duration;

use posthaste_units::Span;

/// Interval between ticks, and accuracy of time limits.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// Converts a time limit to ticks, at least one.
pub(crate) fn in_ticks(limit: Span) -> u32 {
    ticks(Duration::from(limit).as_millis().div_ceil(TICK.as_millis())).max(1)
}

/// Complete ticks in a time since the start.
pub(crate) fn ticks_of(elapsed: Duration) -> u32 {
    ticks(elapsed.as_millis() / TICK.as_millis())
}

fn ticks(count: u128) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
