//! Events of connections, by the state of the connection.

use rustix::event::epoll::{self, EventFlags};

use super::EventLoop;
use super::connections::Unread;
use crate::exchange::connection::ConnectionState;
use crate::exchange::slots::{ConnectionId, ConnectionSlot};

impl EventLoop<'_> {
    /// Handles a batch of events, except those of connections that ended meanwhile.
    pub(super) fn handle_events(&mut self, events: &[epoll::Event]) {
        for event in events {
            let id = ConnectionId::from_token(event.data.u64());
            if self.connections.is_current(id) {
                self.handle(id.slot, event.flags);
            }
        }
    }

    /// Handles an epoll event of a connection.
    fn handle(&mut self, slot: ConnectionSlot, flags: EventFlags) {
        let gone = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        let connection = &self.connections[slot];
        if connection.is_quic() {
            return self.streams().handle_datagrams(slot, flags);
        }
        match connection.state {
            ConnectionState::Connecting => self.end_connect(slot),
            ConnectionState::Securing => self.secure(slot),
            ConnectionState::Exchanging if connection.streams.is_some() => {
                self.streams().handle(slot, flags, gone);
            }
            ConnectionState::Exchanging => self.http1().handle(slot, flags, gone),
            // Space in the socket changes nothing. All else is the server's end, or bytes without a request.
            ConnectionState::Idle if flags.contains(EventFlags::IN) || gone => {
                self.connections.remove_idle(slot);
            }
            ConnectionState::Closing if gone => {
                self.connections.clear_deadlines(slot);
                self.connections.remove(slot);
            }
            ConnectionState::Idle | ConnectionState::Closing => {}
        }
    }

    /// Continues reading replies that were left so that other connections get a turn.
    pub(super) fn receive_rest(&mut self) {
        for Unread { id, closing } in self.connections.take_unread() {
            if !self.connections.is_current(id) {
                continue;
            }
            let connection = &self.connections[id.slot];
            // Over QUIC, the handshake and the end of a connection are datagrams, too.
            if connection.state == ConnectionState::Exchanging || connection.is_quic() {
                match connection.streams {
                    None => self.http1().receive(id.slot, closing, false),
                    Some(_) => self.streams().receive(id.slot, closing),
                }
            }
        }
    }
}
