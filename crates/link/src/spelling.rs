//! What is said when an option's text cannot be read.

use thiserror::Error;

/// A text that spells nothing; says what would have been accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not {what}: write {remedy}")]
pub struct SpellingError {
    text: String,
    what: &'static str,
    remedy: &'static str,
}

impl SpellingError {
    pub(crate) fn new(text: &str, what: &'static str, remedy: &'static str) -> Self {
        Self {
            text: text.to_owned(),
            what,
            remedy,
        }
    }
}
