//! What can go wrong between a client and a broker.

use std::io;

use thiserror::Error;

/// Why a URL is no broker's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{url:?} is no broker's address: {reason}; write it as http://127.0.0.1:8090")]
pub struct UrlError {
    pub(crate) url: String,
    pub(crate) reason: String,
}

/// Why there is no answer, or none of use.
#[derive(Debug, Error)]
pub enum Error {
    /// The broker cannot be reached.
    #[error("no broker at {at}: {error}")]
    Unreachable {
        /// Where it should be.
        at: String,
        /// What the machine says.
        error: io::Error,
    },
    /// It did not answer in time.
    #[error("the broker at {at} did not answer within {seconds} s")]
    Late {
        /// Where it is.
        at: String,
        /// The limit.
        seconds: u64,
    },
    /// The connection broke.
    #[error("the connection to the broker broke: {0}")]
    Broken(#[from] hyper::Error),
    /// It refused, and said why.
    #[error("the broker refuses: {detail} ({status})")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it says.
        detail: String,
    },
    /// It answered something that no broker says.
    #[error("the broker's answer makes no sense: {0}")]
    Senseless(String),
}
