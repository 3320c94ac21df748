//! The assignment of requests to streams.

use posthaste_http::streams::OpenError;

use super::super::EventLoop;
use super::{ConnectionQueue, StreamQueues};
use crate::exchange::{HttpExchange, OpenStream};
use crate::multiplexed::QueueReason;
use crate::outcome::Outcome;
use crate::protocol::WhenFull;
use crate::slots::{ConnectionSlot, ExchangeSlot, Slot as _};

/// Place for the next request of a queue.
enum NextPlace {
    /// A stream of this connection.
    Stream(ConnectionSlot),
    /// On a connection that does not exist yet.
    NewConnection,
    /// None at present.
    None(QueueReason),
}

impl EventLoop<'_> {
    /// Puts a request into its queue, and sends it if its connection has a free stream.
    pub(in super::super) fn send_on_stream(&mut self, exchange: HttpExchange) {
        self.record_lateness(&exchange);
        let queue = self.streams.queue_of(&exchange, self.server_of(&exchange));
        let open = self.exchanges.insert(exchange, None);
        let deadline = exchange.moments.begun + self.shared.plan.timeout;
        self.replying.push(open, deadline);
        let id = self.exchanges[open].id;
        self.streams.queues[queue].waiting.push_back(id);
        self.exchanges[open].queue = queue;
        if let Some(reason) = self.fill(queue)
            && self.exchanges.get(id).is_some()
        {
            self.tally.streams.queued.count(reason);
        }
    }

    fn server_of(&self, exchange: &HttpExchange) -> usize {
        self.shared.mix.requests[exchange.request].origin
    }

    /// Gives waiting requests of a queue streams, in their order. Returns the reason if some still wait.
    pub(super) fn fill(&mut self, queue: usize) -> Option<QueueReason> {
        while let Some(open) = self.first_waiting(queue) {
            match self.next_place(queue) {
                NextPlace::Stream(slot) => {
                    self.streams.queues[queue].waiting.pop_front();
                    self.open_stream(open, slot);
                }
                NextPlace::NewConnection => self.open_connection(queue),
                NextPlace::None(reason) => match reason {
                    QueueReason::Handshake => return Some(reason),
                    _ if self.streams.when_full() == WhenFull::Drop => {
                        self.streams.queues[queue].waiting.pop_front();
                        let reason = || "no stream of its connection was free".to_owned();
                        self.fail_exchange(open, Outcome::Dropped, reason);
                    }
                    _ => return Some(reason),
                },
            }
        }
        None
    }

    /// Returns the first waiting exchange of a queue. Forgets those that have ended.
    pub(super) fn first_waiting(&mut self, queue: usize) -> Option<ExchangeSlot> {
        let waiting = &mut self.streams.queues.get_mut(queue)?.waiting;
        while let Some(id) = waiting.front().copied() {
            if self.exchanges.get(id).is_some() {
                return Some(id.slot);
            }
            waiting.pop_front();
        }
        None
    }

    fn next_place(&self, queue: usize) -> NextPlace {
        let ConnectionQueue {
            connections,
            opening,
            ..
        } = &self.streams.queues[queue];
        let own = self.streams.options.streams.unwrap_or(usize::MAX);
        let mut reason = QueueReason::ServerLimit;
        for slot in connections {
            let client = &self.connections[slot.index()].streams().client;
            if client.open_streams() >= own {
                reason = QueueReason::OwnLimit;
            } else if client.room() > 0 {
                return NextPlace::Stream(*slot);
            }
        }
        if opening.is_some() {
            return NextPlace::None(QueueReason::Handshake);
        }
        let may_open = self.streams.when_full() == WhenFull::Open
            && self.connections.len() < self.shared.limit;
        if connections.is_empty() || may_open {
            NextPlace::NewConnection
        } else {
            NextPlace::None(reason)
        }
    }

    /// Opens a stream for an exchange.
    fn open_stream(&mut self, open: ExchangeSlot, slot: ConnectionSlot) {
        let now = self.shared.clock.now();
        let entry = &mut self.exchanges[open];
        let exchange = entry.exchange;
        let request = self.shared.mix.requests[exchange.request].numbered();
        let streams = self.connections[slot.index()].streams_mut();
        let (data, row) = (&self.shared.plan.data, exchange.due.number);
        let opened = request.with_head(data, row, &mut entry.body, |head| {
            streams.client.open(open, head)
        });
        match opened {
            Ok(Ok(id)) => {
                entry.connection = Some(slot);
                entry.exchange.moments.has_stream = true;
                entry.stream = Some(OpenStream {
                    id,
                    body_sent: 0,
                    is_sent: false,
                });
                streams.written.push(entry.id);
                let wait = now.saturating_since(exchange.moments.begun);
                self.tally.streams.queued.add_wait(wait);
                self.write_body(open);
                self.list(slot);
            }
            Ok(Err(OpenError::InvalidValue)) => {
                self.fail_exchange(open, Outcome::ClientFailed, || {
                    OpenError::InvalidValue.to_string()
                })
            }
            Ok(Err(error)) => {
                unreachable!("a connection with room for a stream refuses it: {error}")
            }
            Err(reason) => self.fail_exchange(open, Outcome::ClientFailed, || reason),
        }
    }

    /// Passes the rest of a request's body to its connection, as far as flow control permits.
    pub(super) fn write_body(&mut self, open: ExchangeSlot) {
        let entry = &mut self.exchanges[open];
        let request = self.shared.mix.requests[entry.exchange.request].numbered();
        let body = request.fixed_body().unwrap_or(&entry.body);
        let (Some(stream), Some(slot)) = (&mut entry.stream, entry.connection) else {
            return;
        };
        let rest = &body[stream.body_sent..];
        if rest.is_empty() {
            return;
        }
        let streams = self.connections[slot.index()].streams_mut();
        let taken = streams.client.send_body(stream.id, rest, true);
        stream.body_sent += taken;
        if stream.is_sent && taken == rest.len() {
            streams.written.push(entry.id);
        }
    }
}

impl StreamQueues {
    /// Returns the queue of a request: by its number, in a closed loop by its client.
    fn queue_of(&mut self, exchange: &HttpExchange, server: usize) -> usize {
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
}
