//! Errors of a start, and error replies to requests.
//!
//! Each stage converts its own errors into a [`Rejection`]; `response::rejection` makes the reply of it.

use std::io;
use std::path::PathBuf;

use hyper::StatusCode;
use posthaste_resolver::LookupError;
use posthaste_soap::{Fault, Version, http};
use thiserror::Error;

/// Errors of a start or of a new configuration.
#[derive(Debug, Error)]
pub enum GatewayError {
    /// Cannot listen on an address.
    #[error(transparent)]
    Listen(#[from] posthaste_serve::ListenError),
    /// Cannot start the threads.
    #[error(transparent)]
    Start(#[from] posthaste_serve::StartError),
    /// The certificate or key is unusable.
    #[error(transparent)]
    Tls(#[from] posthaste_serve::TlsError),
    /// An upstream or a service description is unusable.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The access log cannot be opened.
    #[error("the access log {} cannot be written: {error}", file.display())]
    Log {
        /// Path of the log.
        file: PathBuf,
        /// Error of the system.
        #[source]
        error: io::Error,
    },
    /// The address of the trace collector is invalid.
    #[error("traces.collector: {0}")]
    Traces(#[source] posthaste_broker_client::UrlError),
    /// A setting that only a restart can change.
    #[error("{0} cannot change at reload: restart the gateway")]
    Fixed(&'static str),
}

/// Errors of names and files in a configuration.
#[derive(Debug, Error)]
pub enum ResolveError {
    /// An upstream is unusable.
    #[error("route {route:?}: {error}")]
    Target {
        /// Path of the route.
        route: String,
        /// The reason.
        #[source]
        error: TargetError,
    },
    /// A service description is unusable.
    #[error("the description {} cannot be used: {reason}", file.display())]
    Wsdl {
        /// Path of the file.
        file: PathBuf,
        /// The reason.
        #[source]
        reason: DescriptionError,
    },
    /// The promises of the offers are unusable.
    #[error("prices.promise, {}: {reason}", file.display())]
    Promise {
        /// Path of the file.
        file: PathBuf,
        /// The reason.
        #[source]
        reason: PromiseError,
    },
    /// The address of the broker is invalid.
    #[error(transparent)]
    Broker(#[from] posthaste_broker_client::UrlError),
    /// The token for the broker of accounts cannot be read.
    #[error("accounts.broker.token, {}: {error}: `posthaste broker token new --role gateway NAME` makes one", file.display())]
    AccountsToken {
        /// Path of the file.
        file: PathBuf,
        /// Error of the system.
        #[source]
        error: io::Error,
    },
    /// The system gives no random bytes.
    #[error(transparent)]
    Identity(#[from] posthaste_broker_client::accounts::KeyError),
    /// The token for the broker cannot be read.
    #[error("prices.broker.token, {}: {error}", file.display())]
    Token {
        /// Path of the file.
        file: PathBuf,
        /// Error of the system.
        #[source]
        error: io::Error,
    },
    /// The token for reports of measurements cannot be read.
    #[error("offers.report.token, {}: {error}", file.display())]
    ReportToken {
        /// Path of the file.
        file: PathBuf,
        /// Error of the system.
        #[source]
        error: io::Error,
    },
}

/// Reasons why a service description is unusable.
#[derive(Debug, Error)]
pub enum DescriptionError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// The file is no description.
    #[error(transparent)]
    Parse(#[from] posthaste_soap::wsdl::ReadError),
    /// The description states an unknown preference.
    #[error("it has a word about compression that is none of never, always, if-possible")]
    Unknown,
}

/// Reasons why a document with promises is unusable.
#[derive(Debug, Error)]
pub enum PromiseError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// The file is no document.
    #[error(transparent)]
    Parse(#[from] posthaste_qos::DocumentError),
    /// The document is not a single offer.
    #[error("expected one offer; its price is ignored")]
    NotOneOffer,
}

/// Reasons why an upstream is unusable.
#[derive(Debug, Error)]
pub enum TargetError {
    /// Neither an address nor an HTTP URL.
    #[error("{0:?} is no upstream: write HOST:PORT, http://HOST:PORT or https://HOST:PORT")]
    Spelling(String),
    /// The endpoint of an offer whose name has no address.
    #[error("the upstream {name:?} cannot be resolved: {error}")]
    Resolve {
        /// The upstream as configured.
        name: String,
        /// The reason.
        #[source]
        error: Box<LookupError>,
    },
    /// The trusted certificates or the name of the server are unusable.
    #[error(transparent)]
    Tls(#[from] posthaste_serve::TlsError),
}

/// A request that ends with an error reply.
#[derive(Debug)]
pub(crate) struct Rejection {
    pub(crate) status: StatusCode,
    /// Body of the reply.
    pub(crate) reason: String,
    pub(crate) media: &'static str,
    /// Further fields of the reply.
    pub(crate) fields: Vec<(&'static str, String)>,
}

impl Rejection {
    pub(crate) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.into(),
            media: "text/plain; charset=utf-8",
            fields: Vec::new(),
        }
    }

    /// Creates an error reply with a SOAP fault.
    pub(crate) fn fault(version: Version, fault: &Fault) -> Self {
        let status = StatusCode::from_u16(fault.status(version));
        Self {
            status: status.expect("faults have a status of HTTP"),
            reason: fault.envelope(version),
            media: http::content_type(version),
            fields: Vec::new(),
        }
    }
}
