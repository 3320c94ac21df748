//! Error for an option's text that cannot be parsed.

use thiserror::Error;

/// An invalid text, with the accepted forms.
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
