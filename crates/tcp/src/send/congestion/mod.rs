//! How much may be out.

/// A way to control congestion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// RFC 5681.
    Reno {},
}
