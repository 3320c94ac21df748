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
//! | authenticate the provider, validate the offers | `front::publish` |
//! | store all waiting writes in one transaction | `keeper`, `store` |
//! | read the log after the last known change | `keeper` |
//! | apply the changes to the index, then reply | `filling`, `registry` |
//! | send the changes to readers of the stream | `front::stream` |
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
//! # Fetched offers
//!
//! For providers that do not publish, the broker polls documents. An offer source (`shelf`) holds the offers of one
//! provider for one service type, from one or several documents, and writes changes through the store writer like any
//! publisher. Offer sources come from the configuration or from a registry of services (`uddi`):
//!
//! - `uddi::choice`, a pure part, selects the services whose documents may be fetched, and counts the others by reason.
//! - `uddi::watch` adds and removes the offer sources.
//! - Data of the service registry are in no store. The broker queries them again.
//!
//! # Studies
//!
//! [`start_with`] starts a broker with another search for the best offer ([`OfferSearch`]) or a handler around its own.

mod admin;
mod change;
mod config;
mod context;
mod fetching;
mod filling;
mod follow;
mod front;
mod keeper;
mod metrics;
mod offered;
mod quota;
mod registry;
mod search;
mod shelf;
mod sources;
mod store;
mod token;
pub mod uddi;

use std::net::SocketAddr;
use std::sync::Arc;

use posthaste_broker_client::Follower;
use posthaste_serve::{Background, Certificate, Handler, HttpServer, ServerTls};
use thiserror::Error;

use self::context::BrokerContext;
use self::fetching::Means;
use self::keeper::Keeper;
use self::metrics::Metrics;
use self::quota::Quota;
use self::registry::Registry;

pub use admin::{Admin, Token};
pub use change::{Change, Key};
pub use config::{Config, Definitions, Limits, Money, Tls};
pub use front::{BrokerHandler, ReplyBody};
pub use posthaste_serve::ConfigError;
pub use search::{OfferSearch, SearchError};
pub use sources::Source;
pub use store::{Place, PlaceError};
pub use uddi::messages::Version as UddiVersion;
pub use uddi::{Category, Enrolled, Enrolment, Uddi, enrol};

/// A running broker. Dropping it stops it.
pub struct Broker {
    /// Listening address, with the actual port if port 0 was requested.
    pub addr: SocketAddr,
    // Drop order: requests finish before the store writer stops.
    running: posthaste_serve::RunningServer,
    registry: Arc<Registry>,
    _fetching: Option<Background>,
    _keeper: Option<keeper::Running>,
    _follower: Option<Follower>,
}

/// Errors at the start of a broker.
#[derive(Debug, Error)]
pub enum Error {
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
    Store(String),
    /// Error of the UDDI registry.
    #[error("nothing more is registered: {0}")]
    Registry(String),
}

/// Validates a configuration. Opens no store and no socket.
pub fn check(config: &Config) -> Result<(), Error> {
    config.check()?;
    config.ontologies()?;
    if let Some(Tls { certificate, key }) = &config.tls {
        Certificate::read(certificate, key)?;
    }
    if let Some(url) = &config.follow {
        posthaste_broker_client::Client::new(url)?;
    }
    for source in &config.sources {
        posthaste_broker_client::Document::new(&source.url)?;
    }
    Ok(())
}

/// Starts a broker.
pub fn start(config: Config) -> Result<Broker, Error> {
    start_with(config, None, |handler| handler)
}

/// Starts a broker, for studies: with `search` in place of the index, and with the handlers that `wrap` makes from the
/// broker's own, one for each event loop.
pub fn start_with<H: Handler>(
    config: Config,
    search: Option<Box<dyn OfferSearch>>,
    wrap: impl Fn(BrokerHandler) -> H + Send + Sync + 'static,
) -> Result<Broker, Error> {
    config.check()?;
    let registry = Arc::new(Registry::new(config.rates()?, config.ontologies()?));
    let tls = config.tls.as_ref().map(server_tls).transpose()?;
    let listener = posthaste_serve::listen(config.listen, config.backlog)?;
    let address = listener.local_addr().unwrap_or(config.listen);
    let follow = |url: &String| follow::follow(url, registry.clone(), config.limits.held());
    let follower = config.follow.as_ref().map(follow).transpose()?;
    let keep = || {
        Keeper::start(
            &config.store,
            registry.clone(),
            config.changes,
            config.limits.held(),
        )
    };
    let keeper = config.follow.is_none().then(keep).transpose();
    let (keeper, keeping) = keeper
        .map_err(|error| Error::Store(error.to_string()))?
        .unzip();
    let metrics = Arc::<Metrics>::default();
    let (directory, watch) = config.uddi.map(uddi::start).transpose()?.unzip();
    let means = keeper
        .as_ref()
        .map(|keeper| Means::new(registry.clone(), keeper.clone(), metrics.clone()));
    let fetch = |means| fetching::start(config.sources, watch, means);
    let fetching = means.map(fetch).transpose()?.flatten();
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
        keeper,
        quota: Quota::new(config.limits.changes_per_minute),
        metrics,
        counters: server.counters.clone(),
        service: front::service(),
        address,
        scheme,
        follows: config.follow,
        directory,
        search,
    });
    let running = server.start(listener, move |_| wrap(BrokerHandler::new(context.clone())))?;
    Ok(Broker {
        addr: running.addr,
        running,
        registry,
        _fetching: fetching,
        _keeper: keeping,
        _follower: follower,
    })
}

fn server_tls(Tls { certificate, key }: &Tls) -> Result<Arc<ServerTls>, Error> {
    let certificate = Certificate::read(certificate, key)?;
    Ok(Arc::new(ServerTls::new(certificate)?))
}

impl Broker {
    /// Stops accepting connections, ends the streams and lets requests in service finish. Returns immediately.
    pub fn stop(&self) {
        self.running.stop();
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
