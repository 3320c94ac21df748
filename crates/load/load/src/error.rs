//! Reasons why a run does not take place.

use std::path::PathBuf;

use thiserror::Error;

use crate::cause::Cause;
use crate::request::RequestError;
use crate::transport::tls::TlsError;

/// Reasons why a run did not take place.
#[derive(Debug, Error)]
pub enum RunError {
    /// A request that cannot be made.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// TLS that cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The broker's URL is unusable.
    #[error(transparent)]
    BrokerUrl(Cause),
    /// The plan needs offers, and the broker reports none.
    #[error("the broker at {broker} has not sent its offers: {reason}")]
    Broker {
        /// Its URL.
        broker: String,
        /// The reason.
        #[source]
        reason: Cause,
    },
    /// Nothing to send, or no thread to send it.
    #[error("{0}")]
    Plan(String),
    /// The folder of qlog files cannot be used.
    #[error("--qlog {}: {reason}", path.display())]
    Qlog {
        /// The folder.
        path: PathBuf,
        /// The reason.
        #[source]
        reason: Cause,
    },
    /// Agents could not carry out the plan.
    #[error("{0}")]
    Agents(String),
    /// The system refused a thread for an event loop.
    #[error("a thread for each event loop: {0}; give fewer --threads")]
    Thread(#[source] std::io::Error),
    /// The system refused a resource that an event loop needs.
    #[error("event loop: {0}")]
    System(#[from] rustix::io::Errno),
}
