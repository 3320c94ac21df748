//! Demo: a complete system on one machine, with one live page. It has a shop, a gateway with prices, a broker, and four
//! kinds of clients on emulated networks.
//!
//! [`start`] runs it in this process, on loopback only. The page sends [`Controls`], `controller` applies them to
//! products and clients, `sampler` samples the system once a second, and `event_log` sends the samples to all open
//! pages.
//!
//! # Data flow
//!
//! | step | module |
//! |---|---|
//! | the page requests a change | `controls` |
//! | the controller applies it to products and clients | `controller`, `products`, `clients` |
//! | the sampler reads public data once a second: metrics, the broker's stream, the generator's ticks | `sampler` |
//! | the event log sends the samples to all open pages | `event_log` |
//!
//! The event log is a ring of numbered events. History, live stream and returning pages read it in the same way, from
//! different numbers on. Pages and sampler share one thread, whose CPU time is the demo's own cost.

mod alerts;
mod clients;
mod controller;
mod controls;
mod event_log;
mod http;
mod metrics;
mod networks;
mod products;
mod sample;
mod sampler;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use posthaste_serve::{HttpServer, Timeouts};
use posthaste_units::{Seed, Span};
use thiserror::Error;

pub use controls::{
    AdmissionPolicy, CAPACITY, COMPRESSIONS, ClientControls, ClientNetwork, Controls, KINDS, MARKS,
    MOST_BUDGET, MOST_DEMAND, OutOfBounds,
};

use crate::controller::{DemoController, System};
use crate::event_log::EventLog;
use crate::http::DemoService;

/// Maximum number of connections of pages and their streams.
const CONNECTIONS: usize = 64;

/// Configuration of the demo.
#[derive(Clone, Copy, Debug)]
pub struct DemoConfig {
    /// Address of the page. All other ports are chosen by the kernel. Default 127.0.0.1:8070.
    pub listen: SocketAddr,
    /// Seed of the shop's books and the clients' arrivals.
    pub seed: Seed,
}

/// Errors at the start of the demo or in the application of a change.
#[derive(Debug, Error)]
pub enum DemoError {
    /// Invalid or unavailable listening address.
    #[error(transparent)]
    Listen(#[from] posthaste_serve::ListenError),
    /// The page's thread could not be started.
    #[error(transparent)]
    Start(#[from] posthaste_serve::StartError),
    /// Error of the shop.
    #[error("the shop: {0}")]
    Shop(#[from] posthaste_bookshop::BookshopError),
    /// Invalid configuration of the gateway.
    #[error("the gateway's configuration: {0}")]
    Config(#[from] posthaste_gateway::config::ConfigError),
    /// Error of the gateway.
    #[error("the gateway: {0}")]
    Gateway(#[from] posthaste_gateway::GatewayError),
    /// Error of the broker.
    #[error("the broker: {0}")]
    Broker(#[from] posthaste_broker::BrokerError),
    /// Invalid data for the clients' requests.
    #[error("the clients' books: {0}")]
    Data(#[from] posthaste_load::DataError),
    /// The folder for the broker's store could not be created or used.
    #[error("no room for the broker's store: {0}")]
    Folder(io::Error),
    /// A thread or socket could not be created.
    #[error("cannot start: {0}")]
    Thread(io::Error),
}

/// The running demo. Dropping it stops it and removes all its files.
pub struct RunningDemo {
    /// Address of the page, with the actual port if port 0 was requested.
    pub addr: SocketAddr,
    // Drop order: the pages first, then the system behind them.
    server: posthaste_serve::RunningServer,
    log: Arc<EventLog>,
    _controller: DemoController,
}

impl Default for DemoConfig {
    fn default() -> Self {
        Self {
            listen: ([127, 0, 0, 1], 8070).into(),
            seed: Seed::default(),
        }
    }
}

/// Starts everything. The demo runs until the returned handle is dropped.
pub fn start(config: DemoConfig) -> Result<RunningDemo, DemoError> {
    // First, so that a port in use is reported before anything else is created.
    let listener = posthaste_serve::listen(config.listen, CONNECTIONS as u32)?;
    let log = Arc::new(EventLog::new());
    let system = System::start(config.seed, &log)?;
    let state = system.state();
    let (controller, wanted) = system.run()?;
    let server = HttpServer {
        concurrency: Some(CONNECTIONS),
        timeouts: Timeouts {
            grace: Span::from_millis(500),
            ..Timeouts::default()
        },
        ..HttpServer::default()
    };
    let events = log.clone();
    let server = server.start(listener, move |_| {
        tokio::task::spawn_local(sampler::run(state.clone(), events.clone()));
        DemoService::new(events.clone(), wanted.clone())
    })?;
    Ok(RunningDemo {
        addr: server.addr,
        server,
        log,
        _controller: controller,
    })
}

impl Drop for RunningDemo {
    fn drop(&mut self) {
        self.log.end();
        self.server.stop();
    }
}
