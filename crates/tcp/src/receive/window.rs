//! When a window update is sent.

/// A stack's rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRule {
    /// Once the edge can move by two segments or half the buffer.
    Bsd,
    /// Once the window has doubled.
    Linux,
}
