//! The source of an error, of any type.

/// Any error as the source of another one.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
