//! HTTP without a network: bytes in, values and bytes out.
//!
//! | module | content | feature |
//! |---|---|---|
//! | [`fields`] | Syntax of HTTP fields: lists, senders of forwarded requests, switches of protocol, gRPC deadlines | |
//! | [`path`] | Normal form of a path, and the path as written | |
//! | [`streams`] | Clients of HTTP/2 and HTTP/3 as state machines, and the streams of an HTTP/3 server | `streams` |
//! | [`grpc`] | gRPC: message framing, statuses | `grpc` |
//!
//! The modules do not use one another. They share the reason to change: what a peer on a wire means. Sockets, clocks,
//! TLS and the time limits of exchanges are left to `serve`, `load` and `bookshop`.

pub mod fields;
#[cfg(feature = "grpc")]
pub mod grpc;
pub mod path;
#[cfg(feature = "streams")]
pub mod streams;
