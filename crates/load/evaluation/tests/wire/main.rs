//! The generator with real sockets: good servers, bad servers, and no server.

mod accounting;
mod addresses;
mod bad_servers;
mod buying;
mod decoding;
mod events;
mod find_events;
mod http2;
mod http3;
mod overload;
mod random;
mod retries;
mod seconds;
mod server;
mod tls;
