//! The serving layer shared by all services: HTTP server and client, TLS, CPU affinity, signals, graceful shutdown.
//!
//! A service calls [`listen`], gives an [`HttpServer`] one [`Handler`] per thread, and gets a [`RunningServer`] whose
//! `stop` drains it. Each thread is a separate event loop that accepts from the shared listening sockets; no request
//! changes threads. Every phase of a connection has a time limit, and every reason for its end has a counter. Routing,
//! bodies and their limits are left to the handlers.
//!
//! | module | content |
//! |---|---|
//! | `listening` | Listening sockets, and the addresses of clients |
//! | `tls` | Certificates and their verification, of servers and of clients |
//! | `socket` | Byte streams, and the kernel's data about them |
//! | [`framing`] | Checks of messages before any service gets them |
//! | `connection` | State of a connection, its time limits and its sender |
//! | `exchange` | One request and its reply: bodies, marks, switches of protocol |
//! | `handler` | The interface of a service |
//! | `http`, `http3` | The life of a connection over TCP, and over QUIC |
//! | `worker`, `server` | One thread's event loop, and all of them |
//! | [`client`] | A client of other services |
//! | [`environment`] | The outside: the machine, or a simulation |
//! | `machine` | Processors, descriptors and signals |
//!
//! Without the feature `server`, the crate has the client, background work and the properties of the machine.

#![cfg_attr(
    not(feature = "server"),
    expect(dead_code, reason = "streams have parts that only a server uses")
)]

mod background;
pub mod client;
mod config;
#[cfg(feature = "server")]
mod connection;
#[cfg(feature = "server")]
mod counters;
pub mod environment;
#[cfg(feature = "server")]
mod exchange;
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
mod listening;
mod machine;
#[cfg(feature = "server")]
mod options;
#[cfg(feature = "server")]
mod server;
mod socket;
pub mod sse;
mod task;
mod tls;
#[cfg(feature = "server")]
mod worker;

pub use background::Background;
pub use client::connect::{ClientTls, Trust, connect, lacks_common_protocol, trust};
pub use config::{ConfigError, read_config};
#[cfg(feature = "server")]
pub use connection::peer::Peer;
#[cfg(feature = "server")]
pub use connection::switch::{SwitchTask, SwitchedStream};
#[cfg(feature = "server")]
pub use counters::{ConnectionCounters, Snapshot};
pub use environment::Environment;
#[cfg(feature = "server")]
pub use exchange::body::{BodyError, read_body};
#[cfg(feature = "server")]
pub use exchange::incoming::Incoming;
#[cfg(feature = "server")]
pub use framing::check::Rejection;
#[cfg(feature = "server")]
pub use framing::unreadable::UnreadableRequest;
#[cfg(feature = "server")]
pub use handler::Handler;
#[cfg(feature = "server")]
pub use handler::slow::{SlowMachine, Slowness};
#[cfg(feature = "http3")]
pub use http3_settings::Http3;
#[cfg(feature = "server")]
pub use listening::listen::{AddressError, ListenError, listen, listen_address, listen_udp};
#[cfg(feature = "server")]
pub use listening::listener::Listener;
pub use listening::networks::Networks;
#[cfg(feature = "server")]
pub use listening::proxy_protocol;
pub use machine::cpus::{available_cpus, pin_thread};
pub use machine::descriptors::open_files;
#[cfg(feature = "server")]
pub use machine::signal::{ReloadSignal, Signal, Signals};
#[cfg(feature = "server")]
pub use options::{Hooks, HttpServer, MAX_FIELDS, Timeouts};
#[cfg(feature = "server")]
pub use server::{RunningServer, StartError};
pub use socket::simulated;
pub use socket::stream::Stream;
pub use socket::tcp_info::{NetworkPath, TcpInfo, tcp_info};
pub use task::spawn_task;
#[cfg(feature = "server")]
pub use tls::certificate_names::certificate_names;
#[cfg(feature = "server")]
pub use tls::certificate_subject::certificate_subject;
pub use tls::error::TlsError;
#[cfg(feature = "server")]
pub use tls::server::{Certificate, ClientAuthority, ServerTls, TlsSettings};
pub use tls::verification;
