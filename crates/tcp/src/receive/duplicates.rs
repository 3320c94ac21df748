//! Adaptive duplicate acknowledgements: the receiver's help for a loss at a reply's end.

use posthaste_units::Span;

/// The rules of the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveAcks {
    /// How many deviations beyond the mean gap are waited.
    pub deviations: u32,
    /// Shortest wait.
    pub shortest: Span,
    /// Longest wait.
    pub longest: Span,
}
