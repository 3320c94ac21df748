//! The ends of connections.

use super::super::EventLoop;
use super::super::complete::CLOSING;
use super::super::connect::is_of_address;
use crate::connection::ConnectionState;
use crate::outcome::Outcome;
use crate::slots::{ConnectionSlot, ExchangeSlot, Slot as _};

impl EventLoop<'_> {
    /// Removes a connection from its queue: it takes no more requests. Its streams continue.
    pub(super) fn leave_queue(&mut self, slot: ConnectionSlot, queue: usize) {
        let Some(queue) = self.streams.queues.get_mut(queue) else {
            return;
        };
        queue.connections.retain(|other| *other != slot);
        if queue.opening == Some(slot) {
            queue.opening = None;
        }
    }

    /// Closes a connection without streams that takes no more requests. Over TCP the server has to close first, so that the
    /// server keeps TIME_WAIT. Over QUIC, tickets for early data have to come first.
    pub(super) fn close_if_unused(&mut self, slot: ConnectionSlot) {
        let Some(connection) = self.connections.get_mut(slot.index()) else {
            return;
        };
        let is_established = connection.state == ConnectionState::Exchanging;
        let streams = connection.streams_mut();
        let is_single = self
            .streams
            .queues
            .get(streams.queue)
            .is_none_or(|q| q.is_single);
        if !is_established || !streams.client.is_idle() || streams.client.is_usable() && !is_single
        {
            return;
        }
        streams.client.close();
        streams.client.add_counts(&mut self.tally.streams);
        let queue = streams.queue;
        let now = self.shared.clock.now();
        // The GOAWAY is a courtesy: the server need not take it.
        let _ = connection.flush_streams(&mut self.scratch, self.shared.clock.at(now));
        // Ports of UDP have no TIME_WAIT.
        if connection.quic().is_some_and(|quic| !quic.awaits_tickets()) {
            self.abort(slot);
        } else {
            connection.state = ConnectionState::Closing;
            self.closing.push(slot, now + CLOSING);
        }
        self.leave_queue(slot, queue);
        self.forget_single(queue);
    }

    /// Handles the server's end of an established connection.
    pub(super) fn end_of_connection(&mut self, slot: ConnectionSlot) {
        let reason = "the connection ended before the reply was complete";
        self.fail_streams(slot, Outcome::Reset, reason);
    }

    /// Ends the streams of a connection and the connection. Waiting requests of its queue get another connection, unless
    /// this one never worked.
    pub(in super::super) fn fail_streams(
        &mut self,
        slot: ConnectionSlot,
        outcome: Outcome,
        reason: &str,
    ) {
        self.end_open_streams(slot, None, outcome, reason);
        self.discard(slot, outcome, reason);
    }

    /// Ends a connection on which the server violated the protocol. The request whose reply did so is named; the others
    /// are not at fault.
    pub(super) fn end_by_violation(
        &mut self,
        slot: ConnectionSlot,
        guilty: Option<ExchangeSlot>,
        reason: &str,
    ) {
        if let Some(guilty) = guilty.filter(|open| self.has_stream(slot, *open)) {
            self.fail_exchange(guilty, Outcome::ProtocolError, || reason.to_owned());
            let others = format!("another reply on the connection: {reason}");
            self.end_open_streams(slot, Some(guilty), Outcome::Collateral, &others);
        } else {
            self.end_open_streams(slot, None, Outcome::ProtocolError, reason);
        }
        // The last frame states the reason to the server, if the socket takes it.
        let now = self.shared.clock.at(self.shared.clock.now());
        let connection = &mut self.connections[slot.index()];
        let _ = connection.flush_streams(&mut self.scratch, now);
        self.discard(slot, Outcome::ProtocolError, reason);
    }

    fn has_stream(&mut self, slot: ConnectionSlot, open: ExchangeSlot) -> bool {
        self.open_exchanges(slot).contains(&open)
    }

    fn open_exchanges(&self, slot: ConnectionSlot) -> Vec<ExchangeSlot> {
        let streams = self.connections[slot.index()].streams();
        streams.client.open_exchanges()
    }

    /// Ends the exchanges with open streams on a connection, except one that has ended.
    fn end_open_streams(
        &mut self,
        slot: ConnectionSlot,
        ended: Option<ExchangeSlot>,
        outcome: Outcome,
        reason: &str,
    ) {
        let mut open = self.open_exchanges(slot);
        open.retain(|open| Some(*open) != ended);
        open.sort_unstable();
        self.tally.streams.connections_lost += u64::from(!open.is_empty());
        for open in open {
            self.fail_exchange(open, outcome, || reason.to_owned());
        }
    }

    /// Removes a connection whose exchanges have ended. If it never had a stream, the waiting requests end like those on
    /// the connection: another one would fare no better.
    fn discard(&mut self, slot: ConnectionSlot, outcome: Outcome, reason: &str) {
        let connection = &self.connections[slot.index()];
        let (server, address) = (connection.origin, connection.address);
        let was_connecting = connection.state == ConnectionState::Connecting;
        let streams = connection.streams();
        let (queue, is_confirmed) = (streams.queue, streams.is_confirmed);
        let was_used = is_confirmed && streams.client.opened() > 0;
        streams.client.add_counts(&mut self.tally.streams);
        self.leave_queue(slot, queue);
        self.abort(slot);
        let Some(others) = self.streams.queues.get(queue) else {
            return;
        };
        let is_alone = others.connections.is_empty() && others.opening.is_none();
        if was_connecting && is_of_address(outcome) {
            self.fail_address(server, address);
            if is_alone && self.opens_another(queue) {
                return;
            }
        }
        if !was_used && is_alone {
            self.fail_waiting(queue, outcome, reason);
        } else {
            self.fill(queue);
            self.forget_single(queue);
        }
    }

    /// Removes the queue of a single request that has ended.
    pub(super) fn forget_single(&mut self, queue: usize) {
        let is_unused = self.streams.queues.get(queue).is_some_and(|queue| {
            let is_empty = queue.waiting.is_empty() && queue.connections.is_empty();
            queue.is_single && is_empty && queue.opening.is_none()
        });
        if is_unused {
            self.streams.queues.remove(queue);
        }
    }
}
