//! A request as the caller passes it, and the reasons against it.

use thiserror::Error;

use crate::streams::catalogue::RequestField;
use crate::streams::field_class::is_valid_value;

/// A request without its body.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamRequest<'a> {
    /// All fields: `:method`, `:scheme`, `:authority` and `:path` first.
    pub fields: &'a [RequestField<'a>],
    /// The method is HEAD: the reply has no content.
    pub is_head: bool,
    /// A body follows by `send_body`.
    pub has_body: bool,
}

impl StreamRequest<'_> {
    /// Checks the values that are not part of the plan.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let is_valid = |field: &RequestField<'_>| match field {
            RequestField::Constant(_) => true,
            RequestField::Variable(_, value) => is_valid_value(value),
        };
        if self.fields.iter().all(is_valid) {
            Ok(())
        } else {
            Err(OpenError::InvalidValue)
        }
    }
}

/// Reasons why a stream cannot be opened now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OpenError {
    /// As many streams are open as the server permits, or the output is full.
    #[error("no more streams may be opened now")]
    Full,
    /// The connection is closing: GOAWAY was received or sent.
    #[error("the connection is closing")]
    GoingAway,
    /// All stream identifiers are used. Another connection is needed.
    #[error("the connection has no stream identifiers left")]
    Exhausted,
    /// A value that no field may have.
    #[error("the value of a field has CR, LF or NUL, or white space at an end")]
    InvalidValue,
}
