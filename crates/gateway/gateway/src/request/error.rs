//! Errors of request bodies.

use std::io;

use hyper::StatusCode;
use thiserror::Error;

use super::decode::DecodeError;
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
    /// 400: the body does not match its Content-Encoding.
    #[error("the request's body is not what its Content-Encoding says: {0}")]
    Coding(#[source] io::Error),
    /// 408: the client of a gRPC call has sent nothing for `timeouts.tunnel`.
    #[error("the client has paused for longer than timeouts.tunnel permits")]
    Paused,
    /// 413.
    #[error("the request's body becomes too much when it is decompressed")]
    Explodes,
    /// 400: HTTP/2 does not allow these trailers.
    #[error("the request's trailers cannot be sent over HTTP/2")]
    Trailers,
}

impl BodyError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::TooLong | Self::Explodes => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Broken(_) | Self::Coding(_) | Self::Trailers => StatusCode::BAD_REQUEST,
            Self::Paused => StatusCode::REQUEST_TIMEOUT,
        }
    }
}

impl From<DecodeError> for BodyError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Broken(error) => Self::Coding(error),
            DecodeError::Explodes => Self::Explodes,
            DecodeError::TooLong => Self::TooLong,
        }
    }
}

impl From<BodyError> for Rejection {
    fn from(error: BodyError) -> Self {
        Self::new(error.status(), error.to_string())
    }
}
