//! Connections over QUIC: their datagrams and their ends.

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::super::buffers::LoopBuffers;
use super::Streams;
use super::replies::ReplyWriter;
use crate::exchange::connection::{ConnectionState, StreamState, TURN};
use crate::exchange::slots::{ConnectionSlot, ExchangeSlot};
use crate::exchange::stream_client::StreamClient;
use crate::outcome::Outcome;
use crate::transport::quic::QuicEnd;

impl Streams<'_, '_> {
    /// Handles an epoll event of a connection over QUIC.
    pub(in super::super) fn handle_datagrams(&mut self, slot: ConnectionSlot, flags: EventFlags) {
        if flags.contains(EventFlags::OUT) {
            self.queues.list(&mut self.connections[slot]);
        }
        if flags.intersects(EventFlags::IN | EventFlags::ERR) {
            self.receive_datagrams(slot);
        }
    }

    /// Reads available datagrams, and handles what they end.
    pub(super) fn receive_datagrams(&mut self, slot: ConnectionSlot) {
        let mut taken = 0;
        while taken < TURN {
            let now = self.shared.clock.at(self.shared.clock.now());
            let connection = &mut self.connections[slot];
            let LoopBuffers { input, scratch } = self.buffers;
            match connection.receive_datagrams(input, scratch, now) {
                Ok(length) => {
                    self.requests.recording.tally.bytes_received += length as u64;
                    taken += length;
                }
                Err(Errno::AGAIN) => return,
                Err(errno) => return self.end_by_socket(slot, errno),
            }
            if !self.poll_quic(slot) {
                return;
            }
        }
        self.connections.read_later(slot, false);
    }

    /// Handles the events of a connection after datagrams or a timer. Returns false if the connection has ended.
    pub(super) fn poll_quic(&mut self, slot: ConnectionSlot) -> bool {
        let connection = &mut self.connections[slot];
        let id = connection.id;
        let StreamState {
            client: StreamClient::Http3(quic),
            is_confirmed,
            ..
        } = connection.streams_mut()
        else {
            unreachable!("a connection of HTTP/2 has no datagrams")
        };
        let mut replies = ReplyWriter::new(
            &mut self.requests.exchanges,
            self.queues,
            &mut self.requests.recording.tally,
            is_confirmed,
            self.shared.window.start,
            self.shared.clock.now(),
        );
        let now = self.shared.clock.at(self.shared.clock.now());
        let polled = quic.poll(&mut replies, now);
        let is_established = quic.is_established();
        self.end_streams(slot);
        self.resend_early_data(slot);
        let state = self.connections[slot].state;
        if state == ConnectionState::Closing {
            return self.end_closing(slot, polled.is_err());
        }
        match polled {
            Ok(()) => {}
            Err(QuicEnd::Lost(outcome, reason)) => {
                self.fail(slot, outcome, || reason);
                return false;
            }
            Err(QuicEnd::Violation(error)) => {
                // The datagrams that ended the handshake may also have the violation.
                self.connections.clear_deadlines(slot);
                let guilty = error.token.map(ExchangeSlot::from_token);
                self.end_by_violation(slot, guilty, &error.to_string());
                return false;
            }
        }
        if state == ConnectionState::Connecting && is_established {
            self.connections.establish(slot);
            self.begin(slot);
        }
        self.queues.list(&mut self.connections[slot]);
        if is_established {
            self.continue_connection(slot);
        }
        self.connections.is_current(id)
    }

    /// Ends a connection that waits for tickets only, once they have come or it is lost. Returns false then.
    fn end_closing(&mut self, slot: ConnectionSlot, is_lost: bool) -> bool {
        let quic = self.connections[slot].quic();
        if !is_lost && quic.is_some_and(|quic| quic.awaits_tickets()) {
            self.queues.list(&mut self.connections[slot]);
            return true;
        }
        self.connections.clear_deadlines(slot);
        self.connections.abort(slot);
        false
    }

    /// Handles an error of a socket. On a connected UDP socket, the kernel reports ICMP messages as errors (udp(7)).
    pub(super) fn end_by_socket(&mut self, slot: ConnectionSlot, errno: Errno) {
        let connection = &self.connections[slot];
        let is_connecting = connection.state == ConnectionState::Connecting;
        if connection.is_quic() && is_own(errno) {
            // Interfaces without GSO return EIO or EINVAL.
            let reason = || format!("{errno}: no datagram left; --no-gso may help");
            return self.fail(slot, Outcome::ClientFailed, reason);
        }
        let outcome = match errno {
            Errno::CONNREFUSED if is_connecting => Outcome::Refused,
            _ if is_connecting => Outcome::ConnectAborted,
            _ => Outcome::Reset,
        };
        self.fail(slot, outcome, || errno.to_string());
    }
}

/// True if this machine did not send a datagram, so that the server is not at fault.
const fn is_own(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOBUFS | Errno::NOMEM | Errno::PERM | Errno::MSGSIZE | Errno::IO | Errno::INVAL
    )
}
