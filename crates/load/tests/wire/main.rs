//! The generator against real sockets: good servers, bad ones, and none.

mod accounting;
mod bad_servers;
mod buying;
mod decoding;
mod overload;
mod server;
mod tls;
