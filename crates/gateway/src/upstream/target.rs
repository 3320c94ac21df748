//! Addresses of upstreams and connections to them.

use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hyper::header::HeaderValue;
use posthaste_serve::{ClientTls, Stream, connect};
use tokio::time::timeout;
use url::Url;

use super::error::UpstreamError;
use super::health::Health;
use super::reported_load::ReportedLoad;
use crate::config::RouteConfig;
use crate::error::TargetError;

/// An upstream. Its name is resolved when the configuration is read.
pub(crate) struct UpstreamTarget {
    /// As configured. Used as label in metrics.
    pub(crate) name: String,
    /// Host for requests without one: health checks, and HTTP/1.0.
    pub(super) host: HeaderValue,
    /// In the resolver's order. If one refuses, the next is tried.
    addresses: Vec<SocketAddr>,
    tls: Option<ClientTls>,
    pub(crate) health: Arc<Health>,
    pub(crate) reported: Arc<ReportedLoad>,
    /// The warning about unannounced closes has been logged.
    closes: AtomicBool,
}

impl UpstreamTarget {
    /// Creates every upstream of a route.
    pub(crate) fn all(route: &RouteConfig) -> Result<Vec<Arc<Self>>, TargetError> {
        let targets = route.upstream.iter();
        targets
            .map(|name| Self::new(name, route).map(Arc::new))
            .collect()
    }

    fn new(name: &str, route: &RouteConfig) -> Result<Self, TargetError> {
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

    /// True if both have the same name and addresses.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        // Resolvers rotate the order.
        let addresses = |target: &Self| target.addresses.iter().copied().collect::<BTreeSet<_>>();
        self.name == other.name && addresses(self) == addresses(other)
    }

    /// Records that a kept connection closed during a request. Logs a warning once.
    pub(super) fn closed(&self, error: hyper::Error) -> UpstreamError {
        if !self.closes.swap(true, Relaxed) {
            tracing::warn!(
                upstream = self.name,
                "it closes kept connections without Connection: close, and requests are lost: have it announce that, or keep them for longer than timeouts.upstream_idle"
            );
        }
        UpstreamError::Closed(error)
    }

    /// Connects to the first address that answers. A silent address uses only its share of the time; the rest remains
    /// for the others.
    pub(crate) async fn connect(&self, within: Duration) -> io::Result<Stream> {
        let end = Instant::now() + within;
        let mut failure = io::ErrorKind::TimedOut.into();
        for (index, address) in self.addresses.iter().enumerate() {
            let left = end.saturating_duration_since(Instant::now());
            let share = left / (self.addresses.len() - index) as u32;
            match timeout(share, connect(*address, self.tls.as_ref())).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failure = error,
                Err(_) => failure = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(failure)
    }
}
