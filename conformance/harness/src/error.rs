//! Reasons for a task to fail: something is missing here, or something is wrong.
//!
//! The difference decides between a skip and a failure. It is therefore made where a tool is searched for, not where
//! the result is reported.

use std::path::Path;

/// The reason that stopped a task.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// A tool is missing and could not be installed. The text says how to install it.
    #[error("{0}")]
    Missing(String),
    /// A check did not hold, or a step failed.
    #[error("{0}")]
    Failed(String),
}

/// Result of a task.
pub type Outcome<T> = Result<T, TaskError>;

impl TaskError {
    /// A failed step on a file or folder.
    pub fn at(path: &Path, error: impl std::fmt::Display) -> Self {
        Self::Failed(format!("{}: {error}", path.display()))
    }
}

/// Fails with `violation` unless `holds`.
pub fn check(holds: bool, violation: impl FnOnce() -> String) -> Outcome<()> {
    if holds {
        Ok(())
    } else {
        Err(TaskError::Failed(violation()))
    }
}
