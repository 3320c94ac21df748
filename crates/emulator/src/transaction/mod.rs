//! Transactions over plain TCP: a request, a pause for processing, a reply, a connection for each.
//!
//! This is the workload of the packet-loss study, without HTTP, so that every byte is accounted for:
//! requests and replies have exactly the length they are to have. The client says in the first bytes
//! of a request what it wants; the rest is filling. What a transaction took is read from what the
//! emulator saw of its packets; here is only whether it ended well.

mod client;
mod message;
mod poll;
mod server;
mod timers;

use std::net::SocketAddr;

use posthaste_units::Span;
use rustix::io::Errno;

pub use client::Client;
pub use message::SHORTEST;
pub use server::Server;

/// One request and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The client's port: unique among those under way, so that a link can know its connection by it.
    pub port: u16,
    /// Bytes of the request, [`SHORTEST`] at least.
    pub request: u32,
    /// Bytes of the reply.
    pub reply: u32,
    /// From the request's last byte to the reply's first, at the server.
    pub processing: Span,
    /// Whether the server's FIN is to ride on the last segment whatever the window allows (TCP_CORK).
    pub fin_on_data: bool,
}

/// How many transactions there may be at a time, and how they follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// Connections under way at most.
    pub at_once: usize,
    /// From one start to the next at least, so that they do not march in step.
    pub spacing: Span,
    /// After so long a transaction has failed.
    pub timeout: Span,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The whole reply came, and then the end of the connection.
    Well,
    /// The connection ended after so many bytes of the reply.
    Short(u32),
    /// The kernel ended it.
    Failed(Errno),
    /// Its time was over.
    TimedOut,
    /// Not begun, or given up, since the run was stopped.
    Stopped,
}

/// Where servers of transactions listen.
pub fn address(of: crate::Addresses) -> SocketAddr {
    SocketAddr::from((of.v4, 7777))
}
