//! Round-trip times and the timeout made of them.

use posthaste_units::Span;

/// A way to smooth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttRule {
    /// RFC 6298.
    Rfc6298,
    /// FreeBSD.
    Bsd,
    /// Linux.
    Linux,
}

/// From round-trip times to a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutRule {
    /// Before the first sample.
    pub initial: Span,
    /// At least.
    pub minimum: Span,
    /// Added always.
    pub slop: Span,
    /// Least of four deviations.
    pub variance_floor: Span,
    /// Of the clock.
    pub granularity: Span,
    /// At most.
    pub maximum: Span,
}
