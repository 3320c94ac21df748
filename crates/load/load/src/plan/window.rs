//! The measured time of a run, apart from its warm-up.

use posthaste_units::Instant;

/// The time in which requests are due that are recorded, and in which replies count towards the achieved rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MeasuredWindow {
    /// End of the warm-up.
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

impl MeasuredWindow {
    /// True if the measured time has this instant.
    pub(crate) fn contains(&self, at: Instant) -> bool {
        at >= self.start && at <= self.end
    }
}
