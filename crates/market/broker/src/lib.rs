//! Broker: a registry of QoS offers with durable storage and lookups in microseconds.
//!
//! 1. A provider publishes offers. The store writer, a thread of its own, stores them durably in the `store`.
//! 2. The store writer reads the store's log, including the changes of others, and brings the `registry` into step.
//! 3. The provider gets its reply.
//!
//! Lookups only read the registry. They continue during an outage of the store and report the age of their data. Other
//! brokers on the same store, and brokers that follow this one, see the same changes in the same order. [`start`] runs
//! a broker.
//!
//! # Path of a change
//!
//! | step | module |
//! |---|---|
//! | authenticate the provider, validate the offers | `http::publish` |
//! | store all waiting writes in one transaction | `writer`, `store` |
//! | read the log after the last known change | `writer` |
//! | apply the changes to the index, then reply | `index_build`, `registry` |
//! | send the changes to readers of the stream | `http::stream` |
//!
//! - The log is the only way into the index. The change may come from this broker, from another broker on the same
//!   PostgreSQL database, or from a command on the same file.
//! - A broker that follows another (`follow`) has the stream of that broker in place of the store writer.
//! - After an error of the store the store writer tries again with growing pauses. Writers get an error at once.
//!   Lookups continue and report the age of their data (`Registry::age`).
//! - In PostgreSQL the numbers of changes are assigned under a lock that is held until the commit. No change then
//!   appears after one with a higher number.
//! - The condition of a write (`If-Match`) is checked in the transaction of the write, so that concurrent writers
//!   cannot overwrite each other unseen.
//! - The expiry of an offer is no change. Each broker drops expired offers by its own clock.
//!
//! # Accounts
//!
//! Accounts with budgets are in the same store. Gateways report charges in numbered batches; one transaction books a
//! batch, once (`store::accounts`). Requests about accounts are calls of the store writer's thread (`http::accounts`,
//! `http::charges`). They are not in the index, and brokers that follow another do not have them.
//!
//! # Fetched offers
//!
//! For providers that do not publish, the broker polls documents. An offer source (`fetching::source`) holds the offers
//! of one provider for one service type, from one or several documents, and writes changes through the store writer
//! like any publisher. Offer sources come from the configuration or from a registry of services (`uddi`):
//!
//! - `uddi::choice`, a pure part, selects the services whose documents may be fetched, and counts the others by reason.
//! - `uddi::watch` adds and removes the offer sources.
//! - Data of the service registry are in no store. The broker queries them again.
//!
//! # Studies
//!
//! [`start_with`] starts a broker with another search for the best offer ([`OfferSearch`]) or a handler around its own.

mod admin;
mod background;
mod change;
mod config;
mod context;
mod fetching;
mod follow;
mod http;
mod index_build;
mod measurements;
mod metrics;
mod offered;
mod quota;
mod registry;
mod search;
mod store;
mod token;
pub mod uddi;
mod writer;

use std::net::SocketAddr;
use std::sync::Arc;

use posthaste_broker_client::Follower;
use posthaste_serve::{Background, Certificate, Handler, HttpServer, ServerTls};
use thiserror::Error;

use self::context::BrokerContext;
use self::fetching::context::FetchContext;
use self::measurements::Measurements;
use self::metrics::BrokerMetrics;
use self::quota::Quota;
use self::registry::Registry;
use self::store::StoreError;
use self::writer::{Kept, StoreWriter, WriterHandle};

pub use admin::{Admin, ProviderToken};
pub use change::{OfferChange, OfferKey};
pub use config::{AccountLimits, BrokerConfig, Definitions, Money, OfferLimits, Tls};
pub use fetching::config::SourceConfig;
pub use http::{BrokerHandler, BrokerReplyBody};
pub use posthaste_serve::ConfigError;
pub use search::{OfferSearch, SearchError};
pub use store::{StoreUrl, StoreUrlError};
pub use token::{TokenRole, UnknownRole};
pub use uddi::messages::Version as UddiVersion;
pub use uddi::{Category, Enrolled, Enrolment, Uddi, enrol};

/// A running broker. Dropping it stops it.
pub struct Broker {
    /// Listening address, with the actual port if port 0 was requested.
    pub addr: SocketAddr,
    // Drop order: requests finish before the store writer stops.
    server: posthaste_serve::RunningServer,
    registry: Arc<Registry>,
    _fetching: Option<Background>,
    _updates: Updates,
}

/// Origin of the changes in the index.
enum Updates {
    /// The log of the store, in which this broker publishes.
    Stored(#[expect(dead_code, reason = "stops when dropped")] WriterHandle),
    /// The stream of another broker.
    Followed(#[expect(dead_code, reason = "stops when dropped")] Follower),
}

/// Cause of any type.
type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// Errors at the start of a broker.
#[derive(Debug, Error)]
pub enum BrokerError {
    /// Invalid configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Invalid or unavailable listening address.
    #[error(transparent)]
    Listen(#[from] posthaste_serve::ListenError),
    /// The server's threads could not be started.
    #[error(transparent)]
    Start(#[from] posthaste_serve::StartError),
    /// Invalid certificate or key.
    #[error(transparent)]
    Tls(#[from] posthaste_serve::TlsError),
    /// Invalid address of the broker to follow, a source or the UDDI registry.
    #[error(transparent)]
    Address(#[from] posthaste_broker_client::UrlError),
    /// A thread could not be started.
    #[error("cannot start: {0}")]
    Thread(#[from] std::io::Error),
    /// Error of the store.
    #[error("the store cannot be used: {0}")]
    Store(#[source] BoxedError),
    /// Error of the UDDI registry.
    #[error("the registration in the UDDI registry has failed: {0}")]
    Registry(#[source] BoxedError),
}

/// Validates a configuration. Opens no store and no socket.
pub fn check(config: &BrokerConfig) -> Result<(), BrokerError> {
    config.check()?;
    config.ontologies()?;
    if let Some(Tls { certificate, key }) = &config.tls {
        Certificate::read(certificate, key)?;
    }
    if let Some(url) = &config.follow {
        posthaste_broker_client::BrokerClient::new(url)?;
    }
    for source in &config.sources {
        posthaste_broker_client::RemoteDocument::new(&source.url)?;
    }
    Ok(())
}

/// Starts a broker.
pub fn start(config: BrokerConfig) -> Result<Broker, BrokerError> {
    start_with(config, None, |handler| handler)
}

/// Starts a broker, for studies: with `search` in place of the index, and with the handlers that `wrap` makes from the
/// broker's own, one for each event loop.
pub fn start_with<H: Handler>(
    config: BrokerConfig,
    search: Option<Box<dyn OfferSearch>>,
    wrap: impl Fn(BrokerHandler) -> H + Send + Sync + 'static,
) -> Result<Broker, BrokerError> {
    config.check()?;
    let registry = Arc::new(Registry::new(config.rates()?, config.ontologies()?));
    let tls = config.tls.as_ref().map(server_tls).transpose()?;
    let listener = posthaste_serve::listen(config.listen, config.backlog)?;
    let address = listener.local_addr().unwrap_or(config.listen);
    let metrics = Arc::<BrokerMetrics>::default();
    let (writer, updates) = Updates::start(&config, &registry, &metrics)?;
    let (directory, watch) = config.uddi.map(uddi::start).transpose()?.unzip();
    let fetch_context = writer
        .as_ref()
        .map(|writer| FetchContext::new(registry.clone(), writer.clone(), metrics.clone()));
    let fetch = |context| background::start(config.sources, watch, context);
    let fetching = fetch_context.map(fetch).transpose()?.flatten();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let server = HttpServer {
        threads: config.threads,
        cpus: config.cpus,
        concurrency: config.connections,
        timeouts: config.timeouts,
        tls,
        ..HttpServer::default()
    };
    let context = Arc::new(BrokerContext {
        registry: registry.clone(),
        writer,
        quota: Quota::new(config.limits.changes_per_minute),
        most_accounts: config.accounts.most,
        metrics,
        measurements: Measurements::default(),
        counters: server.counters.clone(),
        service: http::service(),
        address,
        scheme,
        follows: config.follow,
        directory,
        search,
    });
    let handlers = move |_| wrap(BrokerHandler::new(context.clone()));
    let server = server.start(listener, handlers)?;
    Ok(Broker {
        addr: server.addr,
        server,
        registry,
        _fetching: fetching,
        _updates: updates,
    })
}

impl From<StoreError> for BrokerError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

impl Updates {
    /// Starts the follower or the store writer, as configured. The index is complete when the store writer runs.
    fn start(
        config: &BrokerConfig,
        registry: &Arc<Registry>,
        metrics: &Arc<BrokerMetrics>,
    ) -> Result<(Option<StoreWriter>, Self), BrokerError> {
        let (registry, limits) = (registry.clone(), config.limits.held());
        if let Some(url) = &config.follow {
            let follower = follow::follow(url, registry, limits)?;
            return Ok((None, Self::Followed(follower)));
        }
        let keep = Kept {
            changes: config.changes,
            charges: config.accounts.charges,
            metrics: metrics.clone(),
        };
        let (writer, handle) = StoreWriter::start(&config.store, registry, keep, limits)?;
        Ok((Some(writer), Self::Stored(handle)))
    }
}

fn server_tls(Tls { certificate, key }: &Tls) -> Result<Arc<ServerTls>, BrokerError> {
    let certificate = Certificate::read(certificate, key)?;
    Ok(Arc::new(ServerTls::new(certificate)?))
}

impl Broker {
    /// Stops accepting connections, ends the streams and lets requests in service finish. Returns immediately.
    pub fn stop(&self) {
        self.server.stop();
        self.registry.end_streams();
    }

    /// Waits for the end after [`Broker::stop`].
    pub fn join(self) {}
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop();
    }
}
