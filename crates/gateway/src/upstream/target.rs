//! Where an upstream is, and how it is reached.

use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hyper::header::HeaderValue;
use posthaste_serve::{ClientTls, Stream, TlsError, connect};
use thiserror::Error;
use tokio::time::timeout;
use url::Url;

use super::Failure;
use super::health::Health;
use super::reported::Reported;
use crate::config::Route;

/// Why an upstream cannot be used.
#[derive(Debug, Error)]
pub enum TargetError {
    /// Neither an address nor a URL of HTTP.
    #[error("{0:?} is no upstream: write HOST:PORT, http://HOST:PORT or https://HOST:PORT")]
    Spelling(String),
    /// A name that nobody knows.
    #[error("the upstream {name:?} cannot be resolved: {error}")]
    Resolve {
        /// As written.
        name: String,
        /// What the resolver said.
        error: io::Error,
    },
    /// Whom to trust.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// An upstream. Its name is resolved when the configuration is read.
pub(crate) struct Target {
    /// As it was written: the label in metrics.
    pub(crate) name: String,
    /// The Host of those who name none: health checks, and clients of HTTP/1.0.
    pub(super) host: HeaderValue,
    /// In the resolver's order: the next is tried where one refuses.
    addresses: Vec<SocketAddr>,
    tls: Option<ClientTls>,
    pub(crate) health: Arc<Health>,
    pub(crate) reported: Arc<Reported>,
    /// That it closes connections unannounced has been logged.
    closes: AtomicBool,
}

impl Target {
    /// Every upstream of a route.
    pub(crate) fn all(route: &Route) -> Result<Vec<Arc<Self>>, TargetError> {
        let targets = route.upstream.iter();
        targets
            .map(|name| Self::new(name, route).map(Arc::new))
            .collect()
    }

    fn new(name: &str, route: &Route) -> Result<Self, TargetError> {
        let spelling = || TargetError::Spelling(name.to_owned());
        let url = if name.contains("://") {
            Url::parse(name)
        } else {
            Url::parse(&format!("http://{name}"))
        };
        let url = url.map_err(|_| spelling())?;
        let bare = matches!(url.path(), "" | "/") && url.query().is_none();
        let host = url.host_str().filter(|_| bare).ok_or_else(spelling)?;
        let tls = match url.scheme() {
            "http" => None,
            "https" => Some(ClientTls::new(host, route.authority.as_deref())?),
            _ => return Err(spelling()),
        };
        let port = url.port_or_known_default().ok_or_else(spelling)?;
        let resolve = |error| TargetError::Resolve {
            name: name.to_owned(),
            error,
        };
        let addresses: Vec<SocketAddr> = (host.trim_matches(['[', ']']), port)
            .to_socket_addrs()
            .map_err(resolve)?
            .collect();
        if addresses.is_empty() {
            return Err(resolve(io::Error::other("it has no address")));
        }
        Ok(Self {
            name: name.to_owned(),
            host: HeaderValue::from_str(url.authority()).map_err(|_| spelling())?,
            addresses,
            tls,
            health: Arc::new(Health::new(&route.health)),
            reported: Arc::default(),
            closes: AtomicBool::new(false),
        })
    }

    /// Whether both lead to the same place.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        // Resolvers give several in turns.
        let addresses = |target: &Self| target.addresses.iter().copied().collect::<BTreeSet<_>>();
        self.name == other.name && addresses(self) == addresses(other)
    }

    /// It has closed a kept connection that a request was under way on: says so once.
    pub(super) fn closed(&self, error: hyper::Error) -> Failure {
        if !self.closes.swap(true, Relaxed) {
            tracing::warn!(
                upstream = self.name,
                "it closes kept connections without Connection: close, and requests are lost: have it announce that, or keep them for longer than timeouts.upstream_idle"
            );
        }
        Failure::Closed(error)
    }

    /// A connection to the first of its addresses that answers. One that is silent leaves the others their share of the
    /// time.
    pub(crate) async fn connect(&self, within: Duration) -> io::Result<Stream> {
        let end = Instant::now() + within;
        let mut failure = io::ErrorKind::TimedOut.into();
        for (place, address) in self.addresses.iter().enumerate() {
            let left = end.saturating_duration_since(Instant::now());
            let share = left / (self.addresses.len() - place) as u32;
            match timeout(share, connect(*address, self.tls.as_ref())).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failure = error,
                Err(_) => failure = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(failure)
    }
}
