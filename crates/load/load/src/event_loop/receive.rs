//! Events of connections, and the reading of replies.

use rustix::event::epoll::{self, EventFlags};

use super::EventLoop;
use crate::connection::{ConnectionState, ReceiveStatus};
use crate::http::Violation;
use crate::outcome::Outcome;
use crate::slots::{ConnectionId, ConnectionSlot, Slot as _};

/// A connection with more to read than one turn permits. It gets no further event, because epoll reports changes only.
pub(super) struct Unread {
    pub(super) connection: ConnectionId,
    pub(super) closing: bool,
}

impl EventLoop<'_> {
    /// Handles a batch of events, except those of connections that ended meanwhile.
    pub(super) fn handle_events(&mut self, events: &[epoll::Event]) {
        for event in events {
            let id = ConnectionId::from_token(event.data.u64());
            if self.is_current(id) {
                self.handle(id.slot, event.flags);
            }
        }
    }

    /// True if this connection is open.
    pub(super) fn is_current(&self, id: ConnectionId) -> bool {
        let connection = self.connections.get(id.slot.index());
        connection.is_some_and(|connection| connection.id == id)
    }

    /// Handles an epoll event of a connection.
    fn handle(&mut self, slot: ConnectionSlot, flags: EventFlags) {
        let gone = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        let connection = &self.connections[slot.index()];
        if connection.is_quic() {
            return self.handle_datagrams(slot, flags);
        }
        match connection.state {
            ConnectionState::Connecting => self.end_connect(slot),
            ConnectionState::Securing => self.secure(slot),
            ConnectionState::Exchanging if connection.streams.is_some() => {
                self.handle_streams(slot, flags, gone);
            }
            ConnectionState::Exchanging => {
                let sent = !flags.contains(EventFlags::OUT) || self.flush(slot);
                // A server that does not read the rest of a request may have answered before.
                if !sent {
                    self.receive(slot, true, true);
                } else if flags.intersects(EventFlags::IN) || gone {
                    self.receive(slot, gone, false);
                }
            }
            // Space in the socket changes nothing. All else is the server's end, or bytes without a request.
            ConnectionState::Idle if flags.contains(EventFlags::IN) || gone => {
                let origin = self.connections[slot.index()].origin;
                self.idle[origin].retain(|other| *other != slot);
                self.remove(slot);
            }
            ConnectionState::Closing if gone => {
                self.closing.remove(slot);
                self.remove(slot);
            }
            ConnectionState::Idle | ConnectionState::Closing => {}
        }
    }

    /// Continues reading replies that were left so that other connections get a turn.
    pub(super) fn receive_rest(&mut self) {
        for Unread {
            connection: id,
            closing,
        } in std::mem::take(&mut self.unread)
        {
            if !self.is_current(id) {
                continue;
            }
            let slot = id.slot;
            let connection = &self.connections[slot.index()];
            // Over QUIC, the handshake and the end of a connection are datagrams, too.
            if connection.state == ConnectionState::Exchanging || connection.is_quic() {
                match self.connections[slot.index()].streams {
                    None => self.receive(slot, closing, false),
                    Some(_) => self.receive_streams(slot, closing),
                }
            }
        }
    }

    /// Reads available bytes. If the rest of the request was `refused`, they must contain the reply.
    fn receive(&mut self, slot: ConnectionSlot, closing: bool, refused: bool) {
        let clock = self.shared.clock;
        let connection = &mut self.connections[slot.index()];
        let open = connection.exchange.expect("an exchange is read");
        let open = &mut self.exchanges[open];
        let bytes = &mut self.tally.bytes_received;
        let received = connection.receive(open, &mut self.buffer, closing, bytes, || clock.now());
        open.record_gaps(&mut self.tally.events, self.shared.window.start);
        match received {
            ReceiveStatus::Partial if refused => {
                self.fail_reset(slot, "the connection took a part of the request only");
            }
            ReceiveStatus::Partial => {}
            ReceiveStatus::More => self.read_later(slot, closing),
            // Surplus bytes may also come later, when the connection is idle. In both cases only the connection ends.
            ReceiveStatus::Complete { surplus } => self.complete(slot, closing || surplus),
            ReceiveStatus::Wrong(violation) => {
                let outcome = match violation {
                    Violation::Memory(_) => Outcome::MemoryLimit,
                    _ => Outcome::ProtocolError,
                };
                self.fail(slot, outcome, || violation.to_string());
            }
            ReceiveStatus::Broken(error) => {
                self.fail(slot, Outcome::TlsFailed, || error.to_string());
            }
            ReceiveStatus::Ended => self.fail_reset(slot, "the connection ended before the reply"),
        }
    }

    /// Reads on in the next turn.
    pub(super) fn read_later(&mut self, slot: ConnectionSlot, closing: bool) {
        let connection = self.connections[slot.index()].id;
        let is_same = |unread: &&mut Unread| unread.connection == connection;
        match self.unread.iter_mut().find(is_same) {
            Some(unread) => unread.closing |= closing,
            None => self.unread.push(Unread {
                connection,
                closing,
            }),
        }
    }
}
