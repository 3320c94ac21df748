//! The assignment of requests to streams.

use posthaste_http::streams::OpenError;

use super::Streams;
use super::queues::NextCarrier;
use crate::exchange::slots::{ConnectionSlot, ExchangeSlot};
use crate::exchange::{HttpExchange, OpenStream};
use crate::outcome::Outcome;
use crate::plan::protocol::WhenFull;
use crate::transport::multiplexed::QueueReason;

impl Streams<'_, '_> {
    /// Puts a request into its queue, and sends it if its connection has a free stream.
    pub(in super::super) fn send(&mut self, exchange: HttpExchange) {
        self.requests.recording.record_lateness(&exchange);
        let server = self.shared.mix.requests[exchange.request].origin;
        let queue = self.queues.choose(&exchange, server);
        let deadline = exchange.moments.begun + self.shared.plan.timeout;
        let open = self.requests.exchanges.insert(exchange, None, deadline);
        let entry = &mut self.requests.exchanges[open];
        entry.queue = queue;
        let id = entry.id;
        self.queues[queue].waiting.push_back(id);
        if let Some(reason) = self.fill(queue)
            && self.requests.exchanges.contains(id)
        {
            self.requests.recording.tally.streams.queued.count(reason);
        }
    }

    /// Gives waiting requests of a queue streams, in their order. Returns the reason if some still wait.
    pub(super) fn fill(&mut self, queue: usize) -> Option<QueueReason> {
        while let Some(open) = self.queues.first_waiting(queue, &self.requests.exchanges) {
            match self.queues.next_carrier(queue, self.connections) {
                NextCarrier::Stream(slot) => {
                    self.queues[queue].waiting.pop_front();
                    self.open_stream(open, slot);
                }
                NextCarrier::NewConnection => self.open_connection(queue),
                NextCarrier::None(reason) => match reason {
                    QueueReason::Handshake => return Some(reason),
                    _ if self.queues.when_full() == WhenFull::Drop => {
                        self.queues[queue].waiting.pop_front();
                        let reason = || "no stream of its connection was free".to_owned();
                        self.fail_exchange(open, Outcome::Dropped, reason);
                    }
                    _ => return Some(reason),
                },
            }
        }
        None
    }

    /// Opens a stream for an exchange.
    fn open_stream(&mut self, open: ExchangeSlot, slot: ConnectionSlot) {
        let now = self.shared.clock.now();
        let entry = &mut self.requests.exchanges[open];
        let exchange = entry.exchange;
        let request = self.shared.mix.requests[exchange.request].numbered();
        let streams = self.connections[slot].streams_mut();
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
                self.requests.recording.tally.streams.queued.add_wait(wait);
                self.write_body(open);
                self.queues.list(&mut self.connections[slot]);
            }
            Ok(Err(OpenError::InvalidValue)) => {
                let reason = || OpenError::InvalidValue.to_string();
                self.fail_exchange(open, Outcome::ClientFailed, reason);
            }
            Ok(Err(error)) => {
                unreachable!("a connection with room for a stream refuses it: {error}")
            }
            Err(reason) => self.fail_exchange(open, Outcome::ClientFailed, || reason),
        }
    }

    /// Passes the rest of a request's body to its connection, as far as flow control permits.
    pub(super) fn write_body(&mut self, open: ExchangeSlot) {
        let entry = &mut self.requests.exchanges[open];
        let request = self.shared.mix.requests[entry.exchange.request].numbered();
        let body = request.fixed_body().unwrap_or(&entry.body);
        let (Some(stream), Some(slot)) = (&mut entry.stream, entry.connection) else {
            return;
        };
        let rest = &body[stream.body_sent..];
        if rest.is_empty() {
            return;
        }
        let streams = self.connections[slot].streams_mut();
        let taken = streams.client.send_body(stream.id, rest, true);
        stream.body_sent += taken;
        if stream.is_sent && taken == rest.len() {
            streams.written.push(entry.id);
        }
    }
}
