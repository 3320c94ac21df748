//! Virtual time as instants of the standard library, which quinn-proto takes as arguments.

use std::time::Duration;

use posthaste_units::Instant;

/// A time as quinn-proto takes it.
pub(crate) type StdInstant = std::time::Instant;

/// Distance of the origin of virtual time from the present, so that quinn-proto can subtract durations from early
/// instants.
const DISTANCE: Duration = Duration::from_secs(24 * 3600);

/// The standard library's instant at the origin of virtual time.
///
/// That instant is arbitrary: quinn-proto uses differences only. The standard library can create an instant only by
/// reading a clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch(StdInstant);

impl Epoch {
    /// An arbitrary origin.
    pub(crate) fn new() -> Self {
        Self(StdInstant::now() + DISTANCE)
    }

    /// Converts virtual time for quinn-proto.
    pub(crate) fn instant(self, at: Instant) -> StdInstant {
        self.0 + Duration::from_nanos(at.as_nanos())
    }

    /// Converts a time from quinn-proto. Times before the origin become the origin.
    pub(crate) fn virtual_time(self, at: StdInstant) -> Instant {
        let nanos = at.saturating_duration_since(self.0).as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_times_survive_the_conversion() {
        let epoch = Epoch::new();
        for nanos in [0, 1, 999_999_999, 8_600_000_000, 1 << 60] {
            let at = Instant::from_nanos(nanos);
            assert_eq!(epoch.virtual_time(epoch.instant(at)), at);
        }
        let before = epoch.instant(Instant::ORIGIN) - Duration::from_secs(1);
        assert_eq!(epoch.virtual_time(before), Instant::ORIGIN);
    }
}
