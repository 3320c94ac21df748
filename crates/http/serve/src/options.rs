//! Settings of a server.

use std::sync::Arc;

use posthaste_units::Span;

use crate::counters::ConnectionCounters;
#[cfg(feature = "http3")]
use crate::http3_settings::Http3;
use crate::listening::networks::Networks;
use crate::tls::server::ServerTls;

/// The default of [`HttpServer::max_fields`], equal to that of the HTTP/1 parser.
pub const MAX_FIELDS: usize = 100;

/// Time limits of the phases of a connection. Checked about four times a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Without a request, on a new connection and between requests. Default 60 s.
    pub idle: Span,
    /// From a request's first byte, or the TLS handshake's start, to the end of its header; also for the PROXY
    /// protocol's header, from the accept. Default 10 s.
    pub head: Span,
    /// For the request's body to arrive. Default 30 s.
    pub body: Span,
    /// Without progress of the peer while data waits to be written. Default 30 s.
    pub write: Span,
    /// For requests in service to end after the server stops. Default 10 s.
    pub grace: Span,
}

/// Functions called around a thread's waits, for services that measure idle time.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Called before the thread waits for the network.
    pub before_wait: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Called after the wait.
    pub after_wait: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Checks the network after every task, so that requests are handled in order of arrival.
    pub in_order: bool,
}

/// Settings of a server. [`HttpServer::start`] starts it.
#[derive(Clone)]
pub struct HttpServer {
    /// Event loops, at least one.
    pub threads: usize,
    /// Processors: thread *i* runs on entry *i* modulo the list's length. Empty means no affinity.
    pub cpus: Vec<usize>,
    /// Maximum number of connections in service, over all threads. At the maximum nothing is accepted, so that the
    /// kernel's queue fills and then drops. `None` means as many as there are descriptors.
    pub concurrency: Option<usize>,
    /// Closes an unused connection when another waits and `concurrency` are in service. At the limit of descriptors
    /// this is always done. Default true.
    pub evicts_unused: bool,
    /// A connection may carry more than one request.
    pub keep_alive: bool,
    /// Maximum number of fields of a request's header; beyond it 431. Default 100.
    pub max_fields: usize,
    /// Connections and streams may switch to another protocol ([`Peer::switch`](crate::Peer::switch)). Announces the
    /// extended CONNECT of RFC 8441. Default false.
    pub switches: bool,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Certificates and keys, if the service uses TLS.
    pub tls: Option<Arc<ServerTls>>,
    /// HTTP/3, served by the first thread. Needs `tls`, whose settings at the start stay in use. Connections beyond
    /// `concurrency` are refused, where each thread keeps one slot for the listeners. Default: none.
    #[cfg(feature = "http3")]
    pub http3: Option<Http3>,
    /// Networks of load balancers that begin each connection with a header of the PROXY protocol
    /// ([`crate::proxy_protocol`]), before TLS. Their connections without one are closed.
    pub proxy_protocol: Networks,
    /// Functions called around waits.
    pub hooks: Hooks,
    /// The counters of this server.
    pub counters: Arc<ConnectionCounters>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            idle: Span::from_secs(60),
            head: Span::from_secs(10),
            body: Span::from_secs(30),
            write: Span::from_secs(30),
            grace: Span::from_secs(10),
        }
    }
}

impl Default for HttpServer {
    fn default() -> Self {
        Self {
            threads: 1,
            cpus: Vec::new(),
            concurrency: None,
            evicts_unused: true,
            keep_alive: true,
            max_fields: MAX_FIELDS,
            switches: false,
            timeouts: Timeouts::default(),
            tls: None,
            #[cfg(feature = "http3")]
            http3: None,
            proxy_protocol: Networks::default(),
            hooks: Hooks::default(),
            counters: Arc::default(),
        }
    }
}
