//! What can go wrong between a client and a broker, or whoever else is asked.

use std::io;

use posthaste_serve::verification;
use posthaste_wsqos::index::Full;
use thiserror::Error;

/// Why nobody can be asked at a URL.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{url:?} is no address to ask at: {reason}; write it as http://127.0.0.1:8090")]
pub struct UrlError {
    url: String,
    reason: String,
}

impl UrlError {
    /// A password would be in every log that has this error, so nothing is shown that stands before an @.
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

/// Why there is no answer, or none of use.
#[derive(Debug, Error)]
pub enum Error {
    /// Nobody can be reached.
    #[error("nobody to be reached at {at}: {error}")]
    Unreachable {
        /// Where it should be.
        at: String,
        /// What the machine says.
        error: io::Error,
    },
    /// It did not answer in time.
    #[error("no answer from {at} within {seconds} s")]
    Late {
        /// Where it is.
        at: String,
        /// The limit.
        seconds: u64,
    },
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    /// It refused, and said why.
    #[error("refused: {detail} ({status})")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it says.
        detail: String,
    },
    /// The token has a character that no header field may have. It is not shown: errors go into logs.
    #[error("the token has a character that cannot be sent: copy it again, without line ends")]
    Token,
    /// It answered something that cannot be meant.
    #[error("the answer makes no sense: {0}")]
    Senseless(String),
    /// It tells more than is taken here.
    #[error("more than is taken here: {0}")]
    TooMuch(#[from] Full),
}

impl Error {
    /// Returns true if the broker cannot be reached because its certificate was refused.
    #[must_use]
    pub fn is_certificate_refused(&self) -> bool {
        matches!(self, Self::Unreachable { error, .. } if verification::is_certificate_refused(error))
    }
}
