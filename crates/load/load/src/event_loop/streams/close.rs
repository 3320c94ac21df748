//! The ends of connections.

use super::Streams;
use crate::exchange::connection::ConnectionState;
use crate::exchange::slots::{ConnectionSlot, ExchangeSlot};
use crate::outcome::Outcome;
use crate::transport::socket;

impl Streams<'_, '_> {
    /// Closes a connection without streams that takes no more requests. Over TCP the server has to close first, so that the
    /// server keeps TIME_WAIT. Over QUIC, tickets for early data have to come first.
    pub(super) fn close_if_unused(&mut self, slot: ConnectionSlot) {
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        let is_established = connection.state == ConnectionState::Exchanging;
        let streams = connection.streams_mut();
        let is_single = self.queues.is_single(streams.queue);
        if !is_established || !streams.client.is_idle() || streams.client.is_usable() && !is_single
        {
            return;
        }
        streams.client.close();
        streams
            .client
            .add_counts(&mut self.requests.recording.tally.streams);
        let queue = streams.queue;
        let now = self.shared.clock.now();
        // The GOAWAY is a courtesy: the server need not take it.
        let _ = connection.flush_streams(&mut self.buffers.scratch, self.shared.clock.at(now));
        // Ports of UDP have no TIME_WAIT.
        if connection.quic().is_some_and(|quic| !quic.awaits_tickets()) {
            self.connections.abort(slot);
        } else {
            self.connections.await_close(slot, now);
        }
        self.queues.leave(slot, queue);
        self.queues.forget_single(queue);
    }

    /// Ends the streams of a connection and the connection. Waiting requests of its queue get another connection, unless
    /// this one never worked.
    pub(in super::super) fn fail(
        &mut self,
        slot: ConnectionSlot,
        outcome: Outcome,
        reason: impl FnOnce() -> String,
    ) {
        self.connections.clear_deadlines(slot);
        if self.connections[slot].state == ConnectionState::Closing {
            // Its exchanges have ended.
            return self.connections.abort(slot);
        }
        let reason = reason();
        self.end_open_streams(slot, None, outcome, &reason);
        self.discard(slot, outcome, &reason);
    }

    /// Ends a connection on which the server violated the protocol. The request whose reply did so is named; the others
    /// are not at fault.
    pub(super) fn end_by_violation(
        &mut self,
        slot: ConnectionSlot,
        guilty: Option<ExchangeSlot>,
        reason: &str,
    ) {
        let open = self.connections[slot].streams().client.open_exchanges();
        if let Some(guilty) = guilty.filter(|guilty| open.contains(guilty)) {
            self.fail_exchange(guilty, Outcome::ProtocolError, || reason.to_owned());
            let others = format!("another reply on the connection: {reason}");
            self.end_open_streams(slot, Some(guilty), Outcome::Collateral, &others);
        } else {
            self.end_open_streams(slot, None, Outcome::ProtocolError, reason);
        }
        // The last frame states the reason to the server, if the socket takes it.
        let now = self.shared.clock.at(self.shared.clock.now());
        let connection = &mut self.connections[slot];
        let _ = connection.flush_streams(&mut self.buffers.scratch, now);
        self.discard(slot, Outcome::ProtocolError, reason);
    }

    /// Ends the exchanges with open streams on a connection, except one that has ended.
    fn end_open_streams(
        &mut self,
        slot: ConnectionSlot,
        ended: Option<ExchangeSlot>,
        outcome: Outcome,
        reason: &str,
    ) {
        let mut open = self.connections[slot].streams().client.open_exchanges();
        open.retain(|open| Some(*open) != ended);
        open.sort_unstable();
        self.requests.recording.tally.streams.connections_lost += u64::from(!open.is_empty());
        for open in open {
            self.fail_exchange(open, outcome, || reason.to_owned());
        }
    }

    /// Removes a connection whose exchanges have ended. If it never had a stream, the waiting requests end like those on
    /// the connection: another one would fare no better.
    fn discard(&mut self, slot: ConnectionSlot, outcome: Outcome, reason: &str) {
        let connection = &self.connections[slot];
        let (server, address) = (connection.origin, connection.address);
        let was_connecting = connection.state == ConnectionState::Connecting;
        let streams = connection.streams();
        let (queue, is_confirmed) = (streams.queue, streams.is_confirmed);
        let was_used = is_confirmed && streams.client.opened() > 0;
        streams
            .client
            .add_counts(&mut self.requests.recording.tally.streams);
        self.queues.leave(slot, queue);
        self.connections.abort(slot);
        let Some(others) = self.queues.get(queue) else {
            return;
        };
        let is_alone = others.is_without_connection();
        if was_connecting && socket::is_of_address(outcome) {
            let tally = &mut self.requests.recording.tally;
            self.connections.fail_address(server, address, tally);
            if is_alone && self.opens_another(queue) {
                return;
            }
        }
        if !was_used && is_alone {
            self.fail_waiting(queue, outcome, reason);
        } else {
            self.fill(queue);
            self.queues.forget_single(queue);
        }
    }
}
