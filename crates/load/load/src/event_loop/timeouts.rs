//! The end of exchanges without a complete reply, by a timeout or an error.

use posthaste_units::Instant;

use super::EventLoop;
use crate::connection::ConnectionState;
use crate::exchange::OpenExchange;
use crate::outcome::Outcome;
use crate::slots::{ConnectionSlot, Slot as _};
use crate::socket;

impl EventLoop<'_> {
    /// Ends exchanges and connections whose deadline has passed.
    pub(super) fn expire_timeouts(&mut self, now: Instant) {
        while let Some(slot) = self.connecting.pop_due(now) {
            let connection = &self.connections[slot.index()];
            let (origin, address) = (connection.origin, connection.address);
            if connection.streams.is_none() {
                self.fail_address(origin, address);
            }
            self.fail(slot, Outcome::ConnectAborted, || {
                "no connection within the connect timeout".to_owned()
            });
        }
        while let Some(open) = self.replying.pop_due(now) {
            let OpenExchange {
                exchange,
                connection,
                ..
            } = self.exchanges[open];
            let slot = match connection {
                Some(slot) if self.connections[slot.index()].streams.is_none() => slot,
                _ => {
                    self.expire_stream(open);
                    continue;
                }
            };
            let connection = &self.connections[slot.index()];
            let silent = exchange.moments.first_byte.is_none();
            let phantom = silent && !socket::is_acknowledged(&connection.socket);
            let (origin, address) = (connection.origin, connection.address);
            let outcome = match connection.state {
                ConnectionState::Connecting => {
                    self.fail_address(origin, address);
                    Outcome::ConnectAborted
                }
                _ if phantom => Outcome::Unanswered,
                _ => Outcome::TimedOut,
            };
            self.fail(slot, outcome, || outcome.meaning().to_owned());
        }
        while let Some(slot) = self.closing.pop_due(now) {
            self.abort(slot);
        }
    }

    /// Ends an exchange without a complete reply, and its connection.
    pub(super) fn fail(
        &mut self,
        slot: ConnectionSlot,
        outcome: Outcome,
        reason: impl FnOnce() -> String,
    ) {
        self.connecting.remove(slot);
        if self.connections[slot.index()].state == ConnectionState::Closing {
            // Its exchanges have ended.
            self.closing.remove(slot);
            return self.abort(slot);
        }
        if self.connections[slot.index()].streams.is_some() {
            return self.fail_streams(slot, outcome, &reason());
        }
        if let Some(open) = self.connections[slot.index()].exchange.take() {
            self.replying.remove(open);
            let exchange = self.exchanges.remove(open);
            self.tally.explain(outcome, exchange.numbers(), reason);
            let now = self.shared.clock.now();
            self.record_end(&exchange, outcome, now);
        }
        self.abort(slot);
    }

    /// Ends an exchange of HTTP/1.1 whose connection the server has ended. A server may close a connection that was idle
    /// for too long just as the next request is sent (RFC 9112, section 9.3.1), so such ends are counted apart.
    pub(super) fn fail_reset(&mut self, slot: ConnectionSlot, reason: &str) {
        let connection = &self.connections[slot.index()];
        let open = connection.exchange.expect("an exchange was under way");
        let exchange = &self.exchanges[open].exchange;
        let reason = if exchange.moments.first_byte.is_some() {
            "the connection ended in the middle of the reply"
        } else if connection.is_reused {
            self.tally.reused_resets += u64::from(self.is_recorded(exchange));
            "the server ended a reused connection before it replied, perhaps because it was idle for too long"
        } else {
            reason
        };
        self.fail(slot, Outcome::Reset, || reason.to_owned());
    }

    /// Closes a connection.
    pub(super) fn remove(&mut self, slot: ConnectionSlot) {
        self.check_removable(slot);
        drop(self.connections.remove(slot.index()));
    }

    /// Resets a connection.
    pub(super) fn abort(&mut self, slot: ConnectionSlot) {
        self.check_removable(slot);
        let now = self.shared.clock.at(self.shared.clock.now());
        self.connections.remove(slot.index()).abort(now);
    }

    fn check_removable(&self, slot: ConnectionSlot) {
        let deadlines = [&self.connecting, &self.closing];
        debug_assert!(
            deadlines.iter().all(|fifo| !fifo.contains(slot)),
            "a connection is removed before its deadlines"
        );
        debug_assert!(
            self.connections[slot.index()].exchange.is_none(),
            "a connection is removed before its exchange has ended"
        );
    }
}
