//! Errors of request bodies.

use hyper::StatusCode;
use thiserror::Error;

use super::field_syntax::FieldError;
use crate::error::Rejection;

/// Reasons why a request's body did not reach the upstream completely.
#[derive(Debug, Error)]
pub(crate) enum BodyError {
    /// 413.
    #[error("the request's body is longer than allowed")]
    TooLong,
    /// 400: the body ended early, or its chunked framing is invalid.
    #[error("the request's body cannot be read: {0}")]
    Broken(#[source] hyper::Error),
    /// 408: the client of a gRPC call has sent nothing for `timeouts.tunnel`.
    #[error("the client has paused for longer than timeouts.tunnel permits")]
    Paused,
    /// 400: a trailer is invalid.
    #[error("the request's trailers are invalid: {0}")]
    Trailer(#[from] FieldError),
    /// 400: HTTP/2 does not allow these trailers.
    #[error("the request's trailers cannot be sent over HTTP/2")]
    Trailers,
}

impl BodyError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Broken(_) | Self::Trailer(_) | Self::Trailers => StatusCode::BAD_REQUEST,
            Self::Paused => StatusCode::REQUEST_TIMEOUT,
        }
    }
}

impl From<BodyError> for Rejection {
    fn from(error: BodyError) -> Self {
        Self::new(error.status(), error.to_string())
    }
}
