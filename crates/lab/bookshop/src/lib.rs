//! The reference service: books by ISBN as SOAP, HTML, JSON and gRPC, and event streams, with a configurable capacity.
//!
//! It implements the service of the overload and mobile papers in one process. It has no database, so that only the
//! form of the answer differs. [`start`] runs it. Two shops in a process share nothing. Load generation and measurement
//! are in other crates.

mod body;
mod catalogue;
mod clock;
mod compress;
mod content;
mod events;
mod home;
mod isbn;
mod json;
mod law;
mod metrics;
mod pace;
mod page;
mod rpc;
mod selection;
mod service;
mod shop;
mod soap;
mod text;
mod vocabulary;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use posthaste_serve::{Certificate, Hooks, Http3, HttpServer, ServerTls, Timeouts};
use posthaste_units::Seed;
use thiserror::Error;

pub use catalogue::{Book, Catalogue, LookupError, Review, Size};
pub use events::{EventLaw, EventLawError, GapLaw};
pub use isbn::{IsbnError, normalise};
pub use metrics::{ReplyForm, ShopMetrics, StreamEnd};
pub use posthaste_serve::RunningServer as Running;
pub use posthaste_services::{LAWS, MISBEHAVIOURS, ServiceLaw, ServiceSpec, SpecError};
pub use rpc::schema;
pub use soap::NAMESPACE;

/// Settings of a shop.
#[derive(Clone, Debug)]
pub struct BookshopConfig {
    /// Listening address; port 0 selects any free port. Default 127.0.0.1:8080.
    pub listen: SocketAddr,
    /// Event loops. Default 1; a law allows no other number.
    pub threads: usize,
    /// Processors for the threads, in turn. Empty means no affinity.
    pub cpus: Vec<usize>,
    /// Accept queue of the listening socket, as in listen(2): Linux holds one connection more. Default 1024. `mm1k`
    /// sets its own.
    pub backlog: u32,
    /// Maximum number of connections in service; beyond it nothing is accepted. Default: no limit.
    pub concurrency: Option<usize>,
    /// A service instead of the machine's own speed, for every path except `/healthz` and `/metrics`.
    pub service: Option<ServiceSpec>,
    /// Slowdown of the emulated machine: each request costs this multiple of its CPU time. Default 1. Cannot be
    /// combined with a law.
    pub slowdown: u32,
    /// Books in the catalogue. Default 1000.
    pub books: usize,
    /// Seed of the catalogue and the service times.
    pub seed: Seed,
    /// gzip level, 1 to 9, for clients that accept it. Default: none.
    pub compression: Option<u32>,
    /// A connection may carry more than one request. Default yes; `mm1k` allows only one.
    pub keep_alive: bool,
    /// Time limits of a connection.
    pub timeouts: Timeouts,
    /// PEM files of the certificate chain and the key, for HTTPS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// HTTP/3 on the UDP port with the number of the listening port. Needs `tls`. Default no.
    pub http3: bool,
}

/// Reasons why a shop did not start.
#[derive(Debug, Error)]
pub enum BookshopError {
    /// Cannot listen on the address.
    #[error(transparent)]
    Listen(#[from] posthaste_serve::ListenError),
    /// Cannot start the threads.
    #[error(transparent)]
    Start(#[from] posthaste_serve::StartError),
    /// The certificate or key is unusable.
    #[error(transparent)]
    Tls(#[from] posthaste_serve::TlsError),
    /// A setting contradicts the service, such as more than one thread.
    #[error("the service {service} {reason}")]
    Law {
        /// The service.
        service: Box<ServiceSpec>,
        /// The contradiction.
        reason: &'static str,
    },
    /// A slowdown of zero, or so large that a test would not end.
    #[error("a machine cannot be {0} times slower: choose 1 to 10000")]
    Slowdown(u32),
    /// A level that gzip does not have.
    #[error("there is no gzip level {0}: choose 1 (fast) to 9 (small)")]
    Level(u32),
    /// An empty catalogue, or more books than fit in memory.
    #[error("{0} books cannot be offered: choose 1 to 1000000")]
    Books(usize),
}

impl Default for BookshopConfig {
    fn default() -> Self {
        Self {
            listen: ([127, 0, 0, 1], 8080).into(),
            threads: 1,
            cpus: Vec::new(),
            backlog: 1024,
            concurrency: None,
            service: None,
            slowdown: 1,
            books: 1000,
            seed: Seed::default(),
            compression: None,
            keep_alive: true,
            timeouts: Timeouts::default(),
            tls: None,
            http3: false,
        }
    }
}

/// Starts a shop. It serves until the returned handle is stopped or dropped.
pub fn start(config: BookshopConfig) -> Result<Running, BookshopError> {
    let config = check(config)?;
    let tls = match &config.tls {
        Some((certificate, key)) => {
            let certificate = Certificate::read(certificate, key)?;
            Some(Arc::new(ServerTls::new(certificate)?))
        }
        None => None,
    };
    let listener = posthaste_serve::listen(config.listen, config.backlog)?;
    let address = listener.local_addr().unwrap_or(config.listen);
    let http3 = if config.http3 {
        Some(Http3::new(
            posthaste_serve::listen_udp(address)?,
            service::MAX_BODY,
        ))
    } else {
        None
    };
    let idle = Arc::<law::Idle>::default();
    let server = HttpServer {
        threads: config.threads,
        cpus: config.cpus.clone(),
        concurrency: config.concurrency,
        // The connection slots model the workers of a server, and each worker waits for its client.
        evicts_unused: false,
        keep_alive: config.keep_alive,
        switches: false,
        timeouts: config.timeouts,
        tls,
        http3,
        hooks: match config.service {
            Some(service) if law::is_exact(&service) => law::Idle::hooks(&idle),
            service => Hooks {
                in_order: service.is_some(),
                ..Hooks::default()
            },
        },
        ..HttpServer::default()
    };
    let shared = Arc::new(service::Shared {
        catalogue: Catalogue::new(config.books, config.seed),
        service: soap::service(),
        metrics: ShopMetrics::default(),
        reflection: OnceLock::new(),
        message_wait: config.timeouts.body.into(),
        counters: server.counters.clone(),
        address,
        scheme: if config.tls.is_some() {
            "https"
        } else {
            "http"
        },
    });
    let running = server.start(listener, move |_thread| {
        let law = config
            .service
            .map(|service| law::LawServer::new(service, config.seed, idle.clone()));
        let slowness =
            (config.slowdown > 1).then(|| posthaste_serve::Slowness::new(config.slowdown));
        let service = service::ShopService::new(shared.clone(), law, slowness);
        shop::ShopHandler::new(service, config.compression)
    })?;
    tracing::info!(address = %running.addr, "the bookshop is open");
    Ok(running)
}

/// Rejects contradictory settings, and applies those that a law requires.
fn check(mut config: BookshopConfig) -> Result<BookshopConfig, BookshopError> {
    if !(1..=1_000_000).contains(&config.books) {
        return Err(BookshopError::Books(config.books));
    }
    if let Some(level) = config.compression.filter(|level| !(1..=9).contains(level)) {
        return Err(BookshopError::Level(level));
    }
    if !(1..=10_000).contains(&config.slowdown) {
        return Err(BookshopError::Slowdown(config.slowdown));
    }
    let Some(service) = config.service else {
        return Ok(config);
    };
    let contradicts = |reason| {
        let service = Box::new(service);
        Err(BookshopError::Law { service, reason })
    };
    if config.slowdown != 1 {
        return contradicts("sets the service time itself: leave the slowdown out");
    }
    if config.threads != 1 {
        return contradicts("has one queue: run it with one thread");
    }
    if let ServiceLaw::Mm1k { capacity, .. } = service.law {
        if !service.is_plain() {
            return contradicts("has the kernel's queue: write mm1 with queue=K instead");
        }
        if config.http3 {
            return contradicts("has the kernel's queue of TCP connections: leave HTTP/3 out");
        }
        if config.concurrency.is_some_and(|n| n != 1) {
            return contradicts("serves one connection at a time: leave concurrency out");
        }
        // One in service, and `backlog` + 1 in the kernel's queue.
        config.concurrency = Some(1);
        config.backlog = capacity - 2;
        config.keep_alive = false;
    }
    Ok(config)
}
