//! The serving layer shared by all services: HTTP server and client, TLS, CPU affinity, signals, graceful shutdown.
//!
//! A service calls [`listen`], gives an [`HttpServer`] one [`Handler`] per thread, and gets a [`RunningServer`] whose
//! `stop` drains it. Each thread is a separate event loop that accepts from the shared listening sockets; no request
//! changes threads. Every phase of a connection has a time limit, and every reason for its end has a counter. Routing,
//! bodies and their limits are left to the handlers.
//!
//! Without the feature `server`, the crate has the client, background work and the properties of the machine.

#![cfg_attr(
    not(feature = "server"),
    expect(dead_code, reason = "streams have parts that only a server uses")
)]

#[cfg(feature = "server")]
mod any_handler;
mod background;
#[cfg(feature = "server")]
mod body;
#[cfg(feature = "server")]
mod certificate_choice;
#[cfg(feature = "server")]
mod certificate_names;
#[cfg(feature = "server")]
mod certificate_subject;
#[cfg(feature = "server")]
mod check;
pub mod client;
#[cfg(feature = "server")]
mod client_verification;
#[cfg(feature = "server")]
mod clock;
mod config;
mod connect;
#[cfg(feature = "server")]
mod connection;
#[cfg(feature = "server")]
mod counters;
mod cpus;
mod descriptors;
pub mod environment;
#[cfg(feature = "server")]
mod eviction;
#[cfg(feature = "exposition")]
pub mod exposition;
#[cfg(feature = "server")]
pub mod framing;
#[cfg(feature = "server")]
mod handler;
#[cfg(feature = "server")]
mod http;
#[cfg(feature = "http3")]
mod http3;
#[cfg(feature = "http3")]
mod http3_settings;
#[cfg(feature = "server")]
mod in_service;
#[cfg(feature = "server")]
mod incoming;
#[cfg(feature = "server")]
mod interim;
#[cfg(feature = "server")]
mod linger;
#[cfg(feature = "server")]
mod listen;
#[cfg(feature = "server")]
mod listener;
#[cfg(feature = "server")]
mod mark;
mod networks;
#[cfg(feature = "server")]
mod open_connection;
#[cfg(feature = "server")]
mod options;
#[cfg(feature = "server")]
mod peer;
#[cfg(feature = "server")]
pub mod proxy_protocol;
mod queues;
#[cfg(feature = "server")]
mod reply_body;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "server")]
mod service;
#[cfg(feature = "server")]
mod signal;
pub mod simulated;
#[cfg(feature = "server")]
mod slow;
mod socket_handle;
mod socket_mark;
pub mod sse;
#[cfg(feature = "server")]
mod stated_source;
mod stream;
#[cfg(feature = "server")]
mod switch;
mod task;
mod tcp_info;
#[cfg(feature = "server")]
mod thread;
#[cfg(feature = "server")]
mod timer;
#[cfg(feature = "server")]
mod tls;
mod tls_error;
#[cfg(feature = "server")]
mod transport;
#[cfg(feature = "server")]
mod tunnel;
#[cfg(feature = "server")]
mod unreadable;
pub mod verification;
#[cfg(feature = "server")]
mod worker;

pub use background::Background;
#[cfg(feature = "server")]
pub use body::{BodyError, read_body};
#[cfg(feature = "server")]
pub use certificate_names::certificate_names;
#[cfg(feature = "server")]
pub use certificate_subject::certificate_subject;
#[cfg(feature = "server")]
pub use check::Rejection;
pub use config::{ConfigError, read_config};
pub use connect::{ClientTls, Trust, connect, lacks_common_protocol, trust};
#[cfg(feature = "server")]
pub use counters::{ConnectionCounters, Snapshot};
pub use cpus::{available_cpus, pin_thread};
pub use descriptors::open_files;
pub use environment::Environment;
#[cfg(feature = "server")]
pub use handler::Handler;
#[cfg(feature = "http3")]
pub use http3_settings::Http3;
#[cfg(feature = "server")]
pub use incoming::Incoming;
#[cfg(feature = "server")]
pub use listen::{AddressError, ListenError, listen, listen_address, listen_udp};
#[cfg(feature = "server")]
pub use listener::Listener;
pub use networks::Networks;
#[cfg(feature = "server")]
pub use options::{Hooks, HttpServer, MAX_FIELDS, Timeouts};
#[cfg(feature = "server")]
pub use peer::Peer;
#[cfg(feature = "server")]
pub use server::{RunningServer, StartError};
#[cfg(feature = "server")]
pub use signal::{ReloadSignal, Signal, Signals};
#[cfg(feature = "server")]
pub use slow::{SlowMachine, Slowness};
pub use stream::Stream;
#[cfg(feature = "server")]
pub use switch::{SwitchTask, SwitchedStream};
pub use task::spawn_task;
pub use tcp_info::{NetworkPath, TcpInfo, tcp_info};
#[cfg(feature = "server")]
pub use tls::{Certificate, ClientAuthority, ServerTls, TlsSettings};
pub use tls_error::TlsError;
#[cfg(feature = "server")]
pub use unreadable::UnreadableRequest;
