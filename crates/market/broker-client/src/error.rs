//! Errors of requests to a broker or another server.

use std::io;

use posthaste_qos::index::Full;
use posthaste_serve::verification;
use thiserror::Error;

/// An unusable URL.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{url:?} is not the URL of a server: {reason}; write it as http://127.0.0.1:8090")]
pub struct UrlError {
    url: String,
    reason: String,
}

impl UrlError {
    /// Omits everything before an @, so that no password gets into a log.
    pub(crate) fn new(written: &str, reason: impl Into<String>) -> Self {
        let url = match written.rsplit_once('@') {
            Some((_, host)) => format!("...@{host}"),
            None => written.to_owned(),
        };
        Self {
            url,
            reason: reason.into(),
        }
    }
}

/// Errors of a request.
#[derive(Debug, Error)]
pub enum Error {
    /// The connection failed.
    #[error("no connection to {at}: {error}")]
    Unreachable {
        /// URL of the server.
        at: String,
        /// Error of the operating system.
        #[source]
        error: io::Error,
    },
    /// No reply within the time limit.
    #[error("no reply from {at} within {seconds} s")]
    Late {
        /// URL of the server.
        at: String,
        /// Time limit in seconds.
        seconds: u64,
    },
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    /// The server replied with an error status.
    #[error("refused: {detail} ({status})")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Explanation of the server.
        detail: String,
    },
    /// The token has a character that is not allowed in a header field. Not shown, because errors are logged.
    #[error("the token has a character that cannot be sent: copy it again, without line ends")]
    Token,
    /// The reply is invalid.
    #[error("the reply is invalid: {0}")]
    Senseless(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The offers exceed the limits.
    #[error("the offers exceed the limits: {0}")]
    TooMuch(#[from] Full),
}

impl Error {
    /// Returns true if the broker cannot be reached because its certificate was rejected.
    #[must_use]
    pub fn is_certificate_refused(&self) -> bool {
        matches!(self, Self::Unreachable { error, .. } if verification::is_certificate_refused(error))
    }
}
