//! Requests on connections with several streams (HTTP/2, HTTP/3).
//!
//! Request n belongs to queue n mod N. A queue has one connection; a request that finds it full waits in the queue.
//! Sending it elsewhere would hide a stalled connection from the measurement.
//!
//! | module | stage |
//! |---|---|
//! | `assign` | puts a request into its queue, and gives waiting requests a stream |
//! | `connect` | opens the connection of a queue |
//! | `flush` | passes the output of a turn to the kernel, one call per connection |
//! | `receive` | reads frames, and collects the ends of streams |
//! | `end` | records the end of each stream |
//! | `close` | ends connections: after GOAWAY, at the server's end, after an error |
//! | `quic` | reads datagrams of HTTP/3, and handles the ends of its connections |
//! | `early` | requests in early data, and those that were rejected |
//! | `timers` | calls connections over QUIC when their timers expire |

mod assign;
mod close;
mod connect;
mod early;
mod end;
mod flush;
mod quic;
mod receive;
mod timers;

use std::collections::VecDeque;

use posthaste_http::streams::StreamEnd;
use posthaste_units::Instant;
use slab::Slab;

use self::timers::QuicTimers;
use crate::plan::{Connections, Plan};
use crate::protocol::{Multiplexing, WhenFull, WhenRejected};
use crate::slots::{ConnectionSlot, ExchangeId, ExchangeSlot};

/// The queues of an event loop, and the work that its stages pass on.
pub(super) struct StreamQueues {
    options: Multiplexing,
    /// By server, then by connection. With a connection per request, each request has a queue of its own.
    queues: Slab<ConnectionQueue>,
    /// Queues of each server in this loop. Zero with a connection per request.
    per_server: usize,
    /// Event loops of the run.
    loops: u64,
    /// True if request numbers choose the queue; otherwise client numbers do.
    by_number: bool,
    /// Connections with output.
    listed: Vec<ConnectionSlot>,
    /// Streams that have ended, with their exchanges.
    ended: Vec<(ExchangeSlot, StreamEnd)>,
    /// Exchanges without memory for their replies.
    given_up: Vec<ExchangeSlot>,
    timers: QuicTimers,
}

/// The requests of one connection, and the connection.
struct ConnectionQueue {
    server: usize,
    /// Waiting exchanges.
    waiting: VecDeque<ExchangeId>,
    /// Connections that take requests: established, or with early data. Several only for [`WhenFull::Open`].
    connections: Vec<ConnectionSlot>,
    /// The connection that is being established, unless it has early data.
    opening: Option<ConnectionSlot>,
    /// Connections in a row that were not established, each at another address.
    refusals: u32,
    /// True if the queue is for one request.
    is_single: bool,
}

impl ConnectionQueue {
    const fn new(server: usize, is_single: bool) -> Self {
        Self {
            server,
            waiting: VecDeque::new(),
            connections: Vec::new(),
            opening: None,
            refusals: 0,
            is_single,
        }
    }
}

impl StreamQueues {
    pub(super) fn new(plan: &Plan, servers: usize) -> Self {
        let options = plan.protocol.multiplexing();
        let per_server = match plan.connections {
            Connections::New => 0,
            Connections::KeepAlive => {
                options.map_or(0, |options| options.connections / plan.threads)
            }
        };
        let mut queues = Slab::with_capacity(servers * per_server);
        for server in 0..servers {
            for _ in 0..per_server {
                queues.insert(ConnectionQueue::new(server, false));
            }
        }
        Self {
            options: options.copied().unwrap_or_default(),
            queues,
            per_server,
            loops: plan.threads as u64,
            by_number: plan.expected().is_some(),
            listed: Vec::new(),
            ended: Vec::new(),
            given_up: Vec::new(),
            timers: QuicTimers::default(),
        }
    }

    /// The earliest timer of a connection.
    pub(super) fn timer(&self) -> Option<Instant> {
        self.timers.next_due()
    }

    const fn when_full(&self) -> WhenFull {
        self.options.when_full
    }

    const fn when_rejected(&self) -> WhenRejected {
        self.options.rejected
    }
}
