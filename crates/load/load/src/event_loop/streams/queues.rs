//! The queues of requests, each with its connection.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use posthaste_http::streams::StreamEnd;
use slab::Slab;

use super::super::connections::LoopConnections;
use super::timers::QuicTimers;
use crate::exchange::connection::HttpConnection;
use crate::exchange::slots::{ConnectionSlot, ExchangeId, ExchangeSlot};
use crate::exchange::{Exchanges, HttpExchange};
use crate::plan::protocol::{Multiplexing, WhenFull, WhenRejected};
use crate::plan::{Connections, Plan};
use crate::transport::multiplexed::QueueReason;

/// The queues of an event loop, and the work that its stages pass on.
pub(in super::super) struct StreamQueues {
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
    pub(super) ended: Vec<(ExchangeSlot, StreamEnd)>,
    /// Exchanges without memory for their replies.
    pub(super) given_up: Vec<ExchangeSlot>,
    /// Timers of connections over QUIC.
    pub(in super::super) timers: QuicTimers,
}

/// The requests of one connection, and the connection.
pub(in super::super) struct ConnectionQueue {
    pub(super) server: usize,
    /// Waiting exchanges.
    pub(super) waiting: VecDeque<ExchangeId>,
    /// Connections that take requests: established, or with early data. Several only for [`WhenFull::Open`].
    pub(super) connections: Vec<ConnectionSlot>,
    /// The connection that is being established, unless it has early data.
    pub(super) opening: Option<ConnectionSlot>,
    /// Connections in a row that were not established, each at another address.
    pub(super) refusals: u32,
    /// True if the queue is for one request.
    is_single: bool,
}

/// The carrier of the next request of a queue.
pub(super) enum NextCarrier {
    /// A stream of this connection.
    Stream(ConnectionSlot),
    /// A connection that does not exist yet.
    NewConnection,
    /// None at present.
    None(QueueReason),
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

    /// True if no connection takes its requests, or will.
    pub(super) const fn is_without_connection(&self) -> bool {
        self.connections.is_empty() && self.opening.is_none()
    }
}

impl StreamQueues {
    pub(in super::super) fn new(plan: &Plan, servers: usize) -> Self {
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

    pub(super) const fn when_full(&self) -> WhenFull {
        self.options.when_full
    }

    pub(super) const fn when_rejected(&self) -> WhenRejected {
        self.options.rejected
    }

    /// Returns a queue, unless it was that of a single request that has ended.
    pub(super) fn get(&self, queue: usize) -> Option<&ConnectionQueue> {
        self.queues.get(queue)
    }

    /// True if the queue is for one request, or was.
    pub(super) fn is_single(&self, queue: usize) -> bool {
        self.get(queue).is_none_or(|queue| queue.is_single)
    }

    /// Returns the queue of a request: by its number, in a closed loop by its client.
    pub(super) fn choose(&mut self, exchange: &HttpExchange, server: usize) -> usize {
        if self.per_server == 0 {
            return self.queues.insert(ConnectionQueue::new(server, true));
        }
        let number = if self.by_number {
            exchange.due.number
        } else {
            exchange.due.client.into()
        };
        // The loop has every n-th number.
        let mine = (number / self.loops) as usize % self.per_server;
        server * self.per_server + mine
    }

    /// Returns the first waiting exchange of a queue. Forgets those that have ended.
    pub(super) fn first_waiting(
        &mut self,
        queue: usize,
        exchanges: &Exchanges,
    ) -> Option<ExchangeSlot> {
        let waiting = &mut self.queues.get_mut(queue)?.waiting;
        while let Some(id) = waiting.front().copied() {
            if exchanges.contains(id) {
                return Some(id.slot);
            }
            waiting.pop_front();
        }
        None
    }

    /// Finds the carrier of the next request of a queue.
    pub(super) fn next_carrier(
        &self,
        queue: usize,
        open_connections: &LoopConnections<'_>,
    ) -> NextCarrier {
        let ConnectionQueue {
            connections,
            opening,
            ..
        } = &self.queues[queue];
        let own = self.options.streams.unwrap_or(usize::MAX);
        let mut reason = QueueReason::ServerLimit;
        for slot in connections {
            let client = &open_connections[*slot].streams().client;
            if client.open_streams() >= own {
                reason = QueueReason::OwnLimit;
            } else if client.room() > 0 {
                return NextCarrier::Stream(*slot);
            }
        }
        if opening.is_some() {
            return NextCarrier::None(QueueReason::Handshake);
        }
        let may_open = self.when_full() == WhenFull::Open && !open_connections.is_full();
        if connections.is_empty() || may_open {
            NextCarrier::NewConnection
        } else {
            NextCarrier::None(reason)
        }
    }

    /// Lets a new connection take the requests of its queue, if it has early data.
    pub(super) fn begin_early_data(&mut self, connection: &mut HttpConnection) {
        if !connection.quic().is_some_and(|quic| quic.is_early()) {
            return;
        }
        let slot = connection.id.slot;
        let queue = &mut self.queues[connection.streams().queue];
        debug_assert!(queue.opening == Some(slot), "two connections are opening");
        queue.opening = None;
        queue.connections.push(slot);
    }

    /// Removes a connection from its queue: it takes no more requests. Its streams continue.
    pub(super) fn leave(&mut self, slot: ConnectionSlot, queue: usize) {
        let Some(queue) = self.queues.get_mut(queue) else {
            return;
        };
        queue.connections.retain(|other| *other != slot);
        if queue.opening == Some(slot) {
            queue.opening = None;
        }
    }

    /// Removes the queue of a single request that has ended.
    pub(super) fn forget_single(&mut self, queue: usize) {
        let is_unused = self.get(queue).is_some_and(|queue| {
            queue.is_single && queue.waiting.is_empty() && queue.is_without_connection()
        });
        if is_unused {
            self.queues.remove(queue);
        }
    }

    /// Lists a connection for the next flush.
    pub(super) fn list(&mut self, connection: &mut HttpConnection) {
        let slot = connection.id.slot;
        let streams = connection.streams_mut();
        if !streams.is_listed {
            streams.is_listed = true;
            self.listed.push(slot);
        }
    }

    /// Takes a connection from the list.
    pub(super) fn take_listed(&mut self) -> Option<ConnectionSlot> {
        self.listed.pop()
    }
}

impl Index<usize> for StreamQueues {
    type Output = ConnectionQueue;

    fn index(&self, queue: usize) -> &ConnectionQueue {
        &self.queues[queue]
    }
}

impl IndexMut<usize> for StreamQueues {
    fn index_mut(&mut self, queue: usize) -> &mut ConnectionQueue {
        &mut self.queues[queue]
    }
}
