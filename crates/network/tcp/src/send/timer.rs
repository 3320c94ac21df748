//! The sender's timer. A single one with a changing purpose is enough, as in Linux.

use posthaste_units::Instant;

/// Purpose of the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Retransmission timeout.
    Retransmit,
    /// Tail loss probe (RFC 8985, section 7).
    Probe,
    /// Segments that RACK still waits for count as lost (RFC 8985, section 6.2).
    Reorder,
    /// The delay of an early retransmit.
    Early,
    /// Probe of a closed window (RFC 9293, section 3.8.6.1).
    Persist,
}

/// A running timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SenderTimer {
    pub(crate) due: Instant,
    pub(crate) purpose: Purpose,
}
