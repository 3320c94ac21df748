//! The serving layer shared by all services: HTTP server and client, TLS, CPU affinity, signals, graceful shutdown.
//!
//! A service calls [`listen`], gives an [`HttpServer`] one [`Handler`] per thread, and gets a [`RunningServer`] whose
//! `stop` drains it. Each thread is a separate event loop that accepts from the shared listening sockets; no request
//! changes threads. Every phase of a connection has a time limit, and every reason for its end has a counter. Routing,
//! bodies and their limits are left to the handlers.

mod background;
mod body;
mod certificate_choice;
mod certificate_names;
mod certificate_subject;
mod check;
pub mod client;
mod client_verification;
mod clock;
mod config;
mod connect;
mod connection;
mod counters;
mod cpus;
mod descriptors;
mod eviction;
pub mod exposition;
pub mod framing;
mod handler;
mod http;
mod http3;
mod http3_settings;
mod in_service;
mod incoming;
mod linger;
mod listen;
mod listener;
mod mark;
mod networks;
mod open_connection;
mod options;
mod peer;
pub mod proxy_protocol;
mod queues;
mod reply_body;
mod server;
mod service;
mod signal;
mod slow;
mod socket_mark;
pub mod sse;
mod stated_source;
mod stream;
mod switch;
mod tcp_info;
mod thread;
mod timer;
mod tls;
mod transport;
mod tunnel;
pub mod verification;
mod worker;

pub use background::Background;
pub use body::{BodyError, read_body};
pub use certificate_names::certificate_names;
pub use certificate_subject::certificate_subject;
pub use config::{ConfigError, read_config};
pub use connect::{ClientTls, Trust, connect, lacks_common_protocol, trust};
pub use counters::{ConnectionCounters, Snapshot};
pub use cpus::{available_cpus, pin_thread};
pub use descriptors::open_files;
pub use handler::Handler;
pub use http3_settings::Http3;
pub use incoming::Incoming;
pub use listen::{AddressError, ListenError, listen, listen_address, listen_udp};
pub use listener::Listener;
pub use networks::Networks;
pub use options::{Hooks, HttpServer, Timeouts};
pub use peer::Peer;
pub use server::{RunningServer, StartError};
pub use signal::{Signal, Signals};
pub use slow::{SlowMachine, Slowness};
pub use stream::Stream;
pub use switch::{SwitchTask, SwitchedStream};
pub use tcp_info::{NetworkPath, TcpInfo, tcp_info};
pub use tls::{Certificate, ClientAuthority, ServerTls, TlsError, TlsSettings};
