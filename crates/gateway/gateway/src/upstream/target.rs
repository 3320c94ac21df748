//! Upstreams as configured, with their endpoints, and connections to these.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use hyper::header::HeaderValue;
use posthaste_gateway_config::{self as config, RouteConfig, UpstreamProtocol};
use posthaste_serve::{ClientTls, Stream, connect};
use tokio::sync::watch;
use tokio::time::timeout;
use url::{Host, Url};

use super::changes::Changes;
use super::endpoint::{self, EndpointSet, UpstreamEndpoint};
use super::error::UpstreamError;
use super::health::UpstreamState;
use super::names::Names;
use super::reported_load::ReportedLoad;
use super::resolution::{AddressUser, HostName};
use crate::error::TargetError;

/// An upstream: a name, and an endpoint for each of its addresses.
pub(crate) struct UpstreamTarget {
    /// As configured. Used as label in metrics.
    pub(crate) name: String,
    /// Host for requests without one: health checks, and HTTP/1.0.
    pub(super) host: HeaderValue,
    tls: Option<ClientTls>,
    pub(super) protocol: UpstreamProtocol,
    /// TLS that offers HTTP/2, if `protocol` is not HTTP/1.1.
    http2_tls: Option<ClientTls>,
    port: u16,
    /// `None` if the configuration states an address.
    pub(crate) host_name: Option<Arc<HostName>>,
    has_authority: bool,
    /// Rules for the health of new endpoints.
    health: config::Health,
    endpoints: watch::Sender<EndpointSet>,
    /// Changes of the addresses of all upstreams of the route.
    changes: Arc<Changes>,
    pub(crate) reported: Arc<ReportedLoad>,
    /// The warning about unannounced closes has been logged.
    closes: AtomicBool,
}

impl UpstreamTarget {
    /// Creates every upstream of a route.
    pub(super) fn all(
        route: &RouteConfig,
        changes: &Arc<Changes>,
        names: &mut Names<'_>,
    ) -> Result<Vec<Arc<Self>>, TargetError> {
        let targets = route.upstream.iter();
        targets
            .map(|name| Self::new(name, route, changes, names).map(Arc::new))
            .collect()
    }

    fn new(
        name: &str,
        route: &RouteConfig,
        changes: &Arc<Changes>,
        names: &mut Names<'_>,
    ) -> Result<Self, TargetError> {
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
        let (host_name, addresses) = match url.host() {
            Some(Host::Ipv4(address)) => (None, vec![address.into()]),
            Some(Host::Ipv6(address)) => (None, vec![address.into()]),
            _ => {
                let host = names.get(host);
                let addresses = host.addresses();
                (Some(host), addresses)
            }
        };
        let addresses = with_port(&addresses, port);
        let endpoints = endpoint::updated(&[], &addresses, &route.health).unwrap_or_default();
        Ok(Self {
            name: name.to_owned(),
            host: HeaderValue::from_str(url.authority()).map_err(|_| spelling())?,
            http2_tls: tls
                .as_ref()
                .and_then(|tls| offer_http2(tls, route.protocol)),
            protocol: route.protocol,
            tls,
            port,
            host_name,
            has_authority: route.authority.is_some(),
            health: route.health.clone(),
            endpoints: watch::Sender::new(endpoints),
            changes: changes.clone(),
            reported: Arc::default(),
            closes: AtomicBool::new(false),
        })
    }

    /// The current endpoints.
    pub(crate) fn endpoints(&self) -> EndpointSet {
        self.endpoints.borrow().clone()
    }

    /// The endpoints, with notice of their changes.
    pub(super) fn follow(&self) -> watch::Receiver<EndpointSet> {
        self.endpoints.subscribe()
    }

    /// Takes over from `known`, the same upstream in an earlier configuration: the report, the health of addresses that
    /// both have, and their statistics if the `rules_stay` for ejection.
    pub(super) fn remember(&mut self, known: &Self, rules_stay: bool) {
        self.reported = known.reported.clone();
        let known = known.endpoints();
        let kept = |endpoint: &Arc<UpstreamEndpoint>| {
            let mut known = known.iter();
            let known = known.find(|known| known.address == endpoint.address);
            match known {
                Some(known) if rules_stay => known.clone(),
                Some(known) => Arc::new(known.without_statistics()),
                None => endpoint.clone(),
            }
        };
        let endpoints = self.endpoints().iter().map(kept).collect();
        self.endpoints.send_replace(endpoints);
    }

    /// True if requests go to at least one of its addresses.
    pub(crate) fn is_up(&self) -> bool {
        self.endpoints().iter().any(|endpoint| endpoint.is_usable())
    }

    /// The best state of its addresses.
    pub(crate) fn state(&self) -> UpstreamState {
        let endpoints = self.endpoints();
        let states = endpoints.iter().map(|endpoint| endpoint.state());
        states.min().unwrap_or(UpstreamState::Unresolved)
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

    /// Connects to one of its endpoints. A failure requests another lookup of the name.
    pub(super) async fn connect(
        &self,
        endpoint: &UpstreamEndpoint,
        limit: Duration,
    ) -> io::Result<Stream> {
        self.connect_by(self.tls.as_ref(), endpoint, limit).await
    }

    /// The same for HTTP/2. [`Stream::agreed_on_http2`] is the protocol that the upstream has selected.
    pub(super) async fn connect_for_http2(
        &self,
        endpoint: &UpstreamEndpoint,
        limit: Duration,
    ) -> io::Result<Stream> {
        self.connect_by(self.http2_tls.as_ref(), endpoint, limit)
            .await
    }

    /// True if the trusted certificates are those of a file.
    pub(super) fn has_authority(&self) -> bool {
        self.has_authority
    }

    pub(super) fn is_https(&self) -> bool {
        self.tls.is_some()
    }

    async fn connect_by(
        &self,
        tls: Option<&ClientTls>,
        endpoint: &UpstreamEndpoint,
        limit: Duration,
    ) -> io::Result<Stream> {
        let connecting = connect(endpoint.address, tls);
        let connected = timeout(limit, connecting).await;
        let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        connected.inspect_err(|_| {
            if let Some(host) = &self.host_name {
                host.request();
            }
        })
    }
}

impl AddressUser for UpstreamTarget {
    /// Endpoints of addresses that stay are kept.
    fn set_addresses(&self, addresses: &[IpAddr]) {
        debug_assert!(
            !addresses.is_empty() || self.endpoints().is_empty(),
            "an upstream loses its last address"
        );
        let addresses = with_port(addresses, self.port);
        let has_changed = self.endpoints.send_if_modified(|endpoints| {
            let updated = endpoint::updated(endpoints, &addresses, &self.health);
            updated.map(|updated| *endpoints = updated).is_some()
        });
        if has_changed {
            self.changes.count.fetch_add(1, Relaxed);
        }
    }

    fn looked_up(&self) {
        self.changes.looked_up.notify_waiters();
    }
}

fn with_port(addresses: &[IpAddr], port: u16) -> Vec<SocketAddr> {
    let addresses = addresses.iter();
    addresses
        .map(|address| SocketAddr::new(*address, port))
        .collect()
}

/// Returns TLS that offers HTTP/2, if the protocol is not HTTP/1.1.
fn offer_http2(tls: &ClientTls, protocol: UpstreamProtocol) -> Option<ClientTls> {
    match protocol {
        UpstreamProtocol::Http1 => None,
        UpstreamProtocol::Http2 => Some(tls.offering(&[b"h2"])),
        UpstreamProtocol::Auto => Some(tls.offering(&[b"h2", b"http/1.1"])),
    }
}
