//! The ends of exchanges without a complete reply, and of their connections.

use super::Http1;
use crate::exchange::connection::ConnectionState;
use crate::exchange::slots::ConnectionSlot;
use crate::outcome::Outcome;
use crate::transport::socket;

impl Http1<'_, '_> {
    /// Ends the exchange of a connection whose deadline has passed.
    pub(in super::super) fn expire(&mut self, slot: ConnectionSlot) {
        let connection = &self.connections[slot];
        let open = connection.exchange.expect("an exchange was under way");
        let moments = &self.requests.exchanges[open].exchange.moments;
        let silent = moments.first_byte.is_none();
        let phantom = silent && !socket::is_acknowledged(&connection.socket);
        let (origin, address) = (connection.origin, connection.address);
        let outcome = match connection.state {
            ConnectionState::Connecting => {
                let tally = &mut self.requests.recording.tally;
                self.connections.fail_address(origin, address, tally);
                Outcome::ConnectAborted
            }
            _ if phantom => Outcome::Unanswered,
            _ => Outcome::TimedOut,
        };
        self.fail(slot, outcome, || outcome.meaning().to_owned());
    }

    /// Ends an exchange without a complete reply, and its connection.
    pub(in super::super) fn fail(
        &mut self,
        slot: ConnectionSlot,
        outcome: Outcome,
        reason: impl FnOnce() -> String,
    ) {
        if let Some(open) = self.connections[slot].exchange.take() {
            let now = self.shared.clock.now();
            self.requests.fail(open, outcome, now, reason);
        }
        self.connections.clear_deadlines(slot);
        self.connections.abort(slot);
    }

    /// Ends an exchange whose connection the server has ended. A server may close a connection that was idle for too long
    /// just as the next request is sent (RFC 9112, section 9.5), so such ends are counted apart.
    pub(super) fn fail_reset(&mut self, slot: ConnectionSlot, reason: &str) {
        let connection = &self.connections[slot];
        let open = connection.exchange.expect("an exchange was under way");
        let exchange = &self.requests.exchanges[open].exchange;
        let reason = if exchange.moments.first_byte.is_some() {
            "the connection ended in the middle of the reply"
        } else if connection.is_reused {
            let recording = &mut self.requests.recording;
            recording.tally.reused_resets += u64::from(recording.is_recorded(exchange));
            "the server ended a reused connection before it replied, perhaps because it was idle for too long"
        } else {
            reason
        };
        self.fail(slot, Outcome::Reset, || reason.to_owned());
    }
}
