//! Error for an option's text that cannot be parsed.

use posthaste_units::ParseError;
use thiserror::Error;

/// An invalid text, with the accepted forms.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not {expected}: {remedy}")]
pub struct SpellingError {
    text: String,
    expected: &'static str,
    remedy: String,
}

impl SpellingError {
    pub(crate) fn new(text: &str, expected: &'static str, remedy: &'static str) -> Self {
        Self {
            text: text.to_owned(),
            expected,
            remedy: format!("write {remedy}"),
        }
    }

    /// The same error, with the reason if a share lacks its `%`.
    pub(crate) fn of_share(self, reason: &ParseError) -> Self {
        match reason {
            ParseError::Bare { .. } => Self {
                remedy: reason.to_string(),
                ..self
            },
            _ => self,
        }
    }
}
