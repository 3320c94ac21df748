//! The transport of requests: system calls of sockets, TLS, QUIC, and counts of connections with streams.

pub(crate) mod multiplexed;
pub(crate) mod quic;
pub(crate) mod socket;
pub(crate) mod tls;
