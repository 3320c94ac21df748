//! Complete replies: judged, recorded, and the end or reuse of their connections.

use posthaste_units::{Instant, Span};

use super::EventLoop;
use crate::connection::ConnectionState;
use crate::decoding;
use crate::exchange::{HttpExchange, OpenExchange};
use crate::inspect;
use crate::outcome::Outcome;
use crate::plan::Connections;
use crate::slots::{ConnectionSlot, ExchangeSlot, Slot as _};

/// Grace period for the server to close a connection before we reset it.
pub(super) const CLOSING: Span = Span::from_secs(1);

impl EventLoop<'_> {
    /// Handles a complete reply: determines its outcome, records it, and reuses or ends the connection.
    pub(super) fn complete(&mut self, slot: ConnectionSlot, closed: bool) {
        let open = self.connections[slot.index()].exchange.take();
        let open = open.expect("a reply belongs to an exchange");
        let now = self.shared.clock.now();
        self.end_replied(open, now);
        self.reuse_or_close(slot, closed, now);
    }

    /// Judges and records the complete reply of an exchange.
    pub(super) fn end_replied(&mut self, open: ExchangeSlot, now: Instant) {
        self.end_events(open);
        let (outcome, reason) = self.judge(open);
        self.read_offers(open);
        let exchange = &mut self.exchanges[open];
        exchange.exchange.status = Some(exchange.reply.status());
        let exchange = self.exchanges.remove(open);
        self.record_status(&exchange);
        if let Some(reason) = reason {
            self.tally.explain(outcome, exchange.numbers(), || reason);
        }
        self.replying.remove(open);
        let done = now + exchange.moments.decoding.unwrap_or_default();
        self.record_end(&exchange, outcome, done);
    }

    /// Reads the end of a stream of events, which can complete an event.
    fn end_events(&mut self, open: ExchangeSlot) {
        let open = &mut self.exchanges[open];
        open.reply.end_events();
        open.record_gaps(&mut self.tally.events, self.shared.window.start);
    }

    /// Decodes a complete reply if the plan says so, and returns its outcome.
    fn judge(&mut self, open: ExchangeSlot) -> (Outcome, Option<String>) {
        let slowdown = self.shared.plan.decoding;
        let OpenExchange {
            exchange, reply, ..
        } = &mut self.exchanges[open];
        if let Some(call) = reply.call() {
            let request = self.shared.mix.requests[exchange.request].numbered();
            let kind = request.call().expect("a plan has calls only, or none");
            let end = call.judge(reply.status(), kind);
            exchange.code = end.code;
            return (end.outcome, end.reason);
        }
        let decoded = match slowdown.map_or(Ok(None), |times| decoding::decode(reply, times)) {
            Ok(decoded) => decoded,
            Err(reason) => return (Outcome::Undecodable, Some(reason)),
        };
        let mut judgement = inspect::judge(reply);
        if judgement == (Outcome::Ok, None) {
            judgement.1 = reply.eventless_in_words();
        }
        if let Some((took, decoded)) = decoded {
            exchange.moments.decoding = Some(took);
            if exchange.due.at >= self.shared.window.start {
                self.tally.decoded.merge(&decoded);
            }
        }
        judgement
    }

    fn record_status(&mut self, exchange: &HttpExchange) {
        if let Some(status) = exchange.status.filter(|_| self.is_recorded(exchange)) {
            *self.tally.statuses.entry(status).or_default() += 1;
        }
        if let Some(code) = exchange.code.filter(|_| self.is_recorded(exchange)) {
            self.tally.grpc.count(code);
        }
    }

    /// Returns a connection to the pool, if the plan and the server permit, or ends it.
    fn reuse_or_close(&mut self, slot: ConnectionSlot, closed: bool, now: Instant) {
        let connection = &mut self.connections[slot.index()];
        // A server may answer before it has read the whole request. The unsent rest would precede the next request.
        let is_sent = !connection.has_unsent();
        let keep_alive = self.shared.plan.connections == Connections::KeepAlive;
        if closed {
            self.remove(slot);
        } else if !connection.reader.keep_alive() {
            connection.state = ConnectionState::Closing;
            self.closing.push(slot, now + CLOSING);
        } else if is_sent && keep_alive {
            connection.state = ConnectionState::Idle;
            let idle = &mut self.idle[connection.origin];
            debug_assert!(!idle.contains(&slot), "a connection is in the pool twice");
            idle.push(slot);
        } else {
            self.abort(slot);
        }
    }
}
