//! Transactions over plain TCP: a request, processing time and a reply, on a connection of its own.
//!
//! This is the workload of the packet-loss study without HTTP, so that requests and replies have exactly the given
//! lengths. The first bytes of a request hold the instructions for the server; the rest is padding. Response times are
//! read from packet records. This module reports only the end of each transaction.

mod client;
mod message;
mod poll;
mod server;
mod timers;

use std::net::SocketAddr;

use posthaste_units::Span;
use rustix::io::Errno;

pub use client::TransactionClient;
pub use message::SHORTEST;
pub use server::TransactionServer;

/// A request and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Port of the client. It is unique among the transactions under way, so that a link can identify the connection.
    pub port: u16,
    /// Bytes of the request, at least [`SHORTEST`].
    pub request: u32,
    /// Bytes of the reply.
    pub reply: u32,
    /// Time at the server from the request's last byte to the reply's first.
    pub processing: Span,
    /// Sends the server's FIN on the last segment, regardless of the window (TCP_CORK).
    pub fin_on_data: bool,
}

/// Concurrency and pacing of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// Maximum number of connections under way.
    pub at_once: usize,
    /// Minimum time between two starts, so that transactions do not synchronise.
    pub spacing: Span,
    /// Time limit of a transaction.
    pub timeout: Span,
}

/// End of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionEnd {
    /// The whole reply arrived, then the end of the connection.
    Well,
    /// The connection ended after this number of bytes, other than the reply's length.
    Short(u32),
    /// The kernel reported an error.
    Failed(Errno),
    /// The time limit was exceeded.
    TimedOut,
    /// Not begun, or given up, because the run was stopped.
    Stopped,
}

/// Address of a server of transactions.
pub fn address(host: crate::Addresses) -> SocketAddr {
    SocketAddr::from((host.v4, 7777))
}
