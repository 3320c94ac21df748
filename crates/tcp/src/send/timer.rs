//! The sender's one timer. As in Linux a single one is enough: what it is for changes.

use posthaste_units::Instant;

/// What happens when the timer runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Retransmission timeout.
    Retransmit,
    /// Tail loss probe (RFC 8985, section 7).
    Probe,
    /// What RACK still waits for is late (RFC 8985, section 6.2).
    Reorder,
    /// The delay of an early retransmit.
    Early,
    /// The peer's window is closed: look whether it still is (RFC 9293, section 3.8.6.1).
    Persist,
}

/// When, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timer {
    pub(crate) due: Instant,
    pub(crate) purpose: Purpose,
}
