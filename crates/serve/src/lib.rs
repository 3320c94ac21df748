//! The serving layer shared by all services: HTTP server, TLS, CPU affinity, signals, graceful shutdown.
//!
//! A service calls [`listen`], gives a [`Server`] one [`Handler`] per thread, and gets a [`Running`] whose `stop`
//! drains it. Each thread is a separate event loop that accepts from the shared listening socket; no request changes
//! threads. Every phase of a connection has a time limit, and every reason for its end has a counter. Routing, bodies
//! and their limits are left to the handlers.

mod background;
mod body;
mod check;
mod config;
mod connect;
mod connection;
mod counters;
mod cpus;
mod descriptors;
pub mod exposition;
pub mod framing;
mod incoming;
mod listen;
mod mark;
mod network_path;
mod queues;
mod replying;
mod room;
mod server;
mod signal;
mod slow;
mod speak;
mod stream;
mod tls;
mod transport;
pub mod verification;
mod worker;

pub use background::Background;
pub use body::{BodyError, read_body};
pub use config::{ConfigError, read_config};
pub use connect::{ClientTls, Trust, connect, trust};
pub use connection::Peer;
pub use counters::{Counters, Snapshot};
pub use cpus::{available_cpus, pin_thread};
pub use descriptors::open_files;
pub use incoming::Incoming;
pub use listen::{AddressError, ListenError, listen, listen_address};
pub use network_path::NetworkPath;
pub use server::{Handler, Hooks, Running, Server, StartError, Timeouts};
pub use signal::{Signal, Signals};
pub use slow::{SlowMachine, Slowness};
pub use stream::Stream;
pub use tls::{Certificate, ServerTls, TlsError};
