//! The whole system on one machine: a shop, a gateway with prices before it, a broker, four kinds of clients on
//! emulated networks, and one page on which it lives.
//!
//! [`start`] runs it in this process, all of it on loopback. Data flows in a circle: the page wants something
//! ([`Controls`]), the `director` has products and clients do it, `watch` looks at them once a second, and the `story`
//! of what it sees goes to every page that is open.

mod chronicle;
mod controls;
mod crowd;
mod director;
mod front;
mod lines;
mod metrics;
mod products;
mod sample;
mod story;
mod watch;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use posthaste_serve::{Server, Timeouts};
use posthaste_units::{Seed, Span};
use thiserror::Error;

pub use controls::{
    CAPACITY, COMPRESSIONS, Client, Controls, KINDS, MARKS, MOST_BUDGET, MOST_DEMAND, Network,
    OutOfBounds, Protection,
};

use crate::director::{Director, System};
use crate::front::Front;
use crate::story::Story;

/// Pages and their streams at once.
const CONNECTIONS: usize = 64;

/// How the demo is to run.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Where the page is; everything else takes ports that the kernel chooses. Default 127.0.0.1:8070.
    pub listen: SocketAddr,
    /// What the shop's books and the clients' arrivals are made from.
    pub seed: Seed,
}

/// Why the demo did not start, or could not do what was wanted.
#[derive(Debug, Error)]
pub enum Error {
    /// An address.
    #[error(transparent)]
    Listen(#[from] posthaste_serve::ListenError),
    /// The page's thread.
    #[error(transparent)]
    Start(#[from] posthaste_serve::StartError),
    /// The shop.
    #[error("the shop: {0}")]
    Shop(#[from] posthaste_bookshop::Error),
    /// The gateway's configuration.
    #[error("the gateway's configuration: {0}")]
    Config(#[from] posthaste_gateway::config::ConfigError),
    /// The gateway.
    #[error("the gateway: {0}")]
    Gateway(#[from] posthaste_gateway::Error),
    /// The broker.
    #[error("the broker: {0}")]
    Broker(#[from] posthaste_broker::Error),
    /// What clients ask for.
    #[error("the clients' books: {0}")]
    Data(#[from] posthaste_load::DataError),
    /// A folder for the broker's store.
    #[error("no room for the broker's store: {0}")]
    Folder(io::Error),
    /// No thread or socket to be had.
    #[error("cannot start: {0}")]
    Thread(io::Error),
}

/// The demo at work. Dropping it ends it and leaves nothing behind.
pub struct Running {
    /// Where the page is; the port is the real one when 0 was asked for.
    pub addr: SocketAddr,
    // In this order: pages first, then what they show.
    server: posthaste_serve::Running,
    story: Arc<Story>,
    _director: Director,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: ([127, 0, 0, 1], 8070).into(),
            seed: Seed::default(),
        }
    }
}

/// Starts everything; it lives until the returned handle is dropped.
pub fn start(config: Config) -> Result<Running, Error> {
    // First, so that a port in use is told before anything else is made.
    let listener = posthaste_serve::listen(config.listen, CONNECTIONS as u32)?;
    let story = Arc::new(Story::new());
    let system = System::start(config.seed, &story)?;
    let board = system.board();
    let (director, wanted) = system.direct()?;
    let server = Server {
        concurrency: Some(CONNECTIONS),
        timeouts: Timeouts {
            grace: Span::from_millis(500),
            ..Timeouts::default()
        },
        ..Server::default()
    };
    let told = story.clone();
    let server = server.start(listener, move |_| {
        tokio::task::spawn_local(watch::watch(board.clone(), told.clone()));
        Front::new(told.clone(), wanted.clone())
    })?;
    Ok(Running {
        addr: server.addr,
        server,
        story,
        _director: director,
    })
}

impl Drop for Running {
    fn drop(&mut self) {
        self.story.end();
        self.server.stop();
    }
}
