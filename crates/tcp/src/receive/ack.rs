//! When an acknowledgement is sent: at once, later, or with something else.

use posthaste_units::Span;

/// A stack's rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRule {
    /// Every second segment at once, others after `delay`.
    Bsd {
        /// How long one waits.
        delay: Span,
    },
    /// Quick-ACK mode at first, then adaptive between `min` and `max`.
    Linux {
        /// Segments acknowledged at once at the beginning.
        quick: u32,
        /// Shortest delay.
        min: Span,
        /// Longest delay.
        max: Span,
    },
    /// RFC 9293, section 3.8.6.3.
    Rfc {
        /// How long one waits.
        delay: Span,
    },
}
