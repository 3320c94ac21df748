//! Clocks of the gateway: monotonic time, wall-clock time, and the CPU time of a thread.
//!
//! They are those of the environment in which the gateway runs. Timers are tokio's.

use jiff::Timestamp;
pub(crate) use posthaste_serve::environment::{now, processor_time, wall_clock};

/// Returns wall-clock time for comparison with dates.
pub(crate) fn timestamp() -> Timestamp {
    Timestamp::try_from(wall_clock()).expect("the wall clock shows a year before 10000")
}
