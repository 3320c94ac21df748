//! Why a chore did not do its work: something is missing here, or something is wrong.
//!
//! The difference decides between a skip and a failure, so it is made where it is known:
//! at the place that looks for a tool, not at the place that reports.

use std::path::Path;

/// What stopped a chore.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// A tool is not here and could not be got; the text says how to get it.
    #[error("{0}")]
    Missing(String),
    /// A check did not hold or a step did not work.
    #[error("{0}")]
    Failed(String),
}

/// A chore's result.
pub(crate) type Outcome<T> = Result<T, Trouble>;

impl Trouble {
    /// A failed step on a file or folder.
    pub(crate) fn at(path: &Path, error: impl std::fmt::Display) -> Self {
        Self::Failed(format!("{}: {error}", path.display()))
    }
}

/// Fails with `what` unless `holds`.
pub(crate) fn check(holds: bool, what: impl FnOnce() -> String) -> Outcome<()> {
    if holds {
        Ok(())
    } else {
        Err(Trouble::Failed(what()))
    }
}
