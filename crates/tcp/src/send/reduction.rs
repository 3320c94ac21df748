//! The window during recovery.

/// A way from the old window to the new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionRule {
    /// RFC 6582.
    Inflation,
}
