//! The set-up of a connection over TCP, from the end of its handshake to its first request.

use rustix::io::Errno;

use super::EventLoop;
use crate::exchange::connection::ConnectionState;
use crate::exchange::slots::ConnectionSlot;
use crate::outcome::Outcome;
use crate::transport::socket;

impl EventLoop<'_> {
    /// Handles the end of a connection attempt.
    pub(super) fn end_connect(&mut self, slot: ConnectionSlot) {
        match socket::take_error(&self.connections[slot].socket) {
            None => self.begin_exchange(slot),
            Some(errno) => self.fail_connect(slot, errno),
        }
    }

    fn fail_connect(&mut self, slot: ConnectionSlot, errno: Errno) {
        match self.connections[slot].streams {
            None => self.http1().fail_connect(slot, errno),
            Some(_) => {
                let outcome = socket::connect_outcome(errno);
                let reason = || socket::connect_failure(errno);
                self.streams().fail(slot, outcome, reason);
            }
        }
    }

    fn begin_exchange(&mut self, slot: ConnectionSlot) {
        self.connections.establish(slot);
        let now = self.shared.clock.now();
        let connection = &mut self.connections[slot];
        if let Some(open) = connection.exchange {
            self.requests.exchanges[open].exchange.moments.connected = Some(now);
        }
        if connection.is_secure() {
            connection.state = ConnectionState::Securing;
            self.secure(slot);
        } else {
            self.begin_requests(slot);
        }
    }

    /// Continues the TLS handshake.
    pub(super) fn secure(&mut self, slot: ConnectionSlot) {
        let connection = &mut self.connections[slot];
        match connection.handshake() {
            Ok(false) => {}
            Ok(true) => {
                let now = self.shared.clock.now();
                if let Some(open) = connection.exchange {
                    self.requests.exchanges[open].exchange.moments.secured = Some(now);
                }
                self.begin_requests(slot);
            }
            Err(error) => self.fail(slot, Outcome::TlsFailed, || error.to_string()),
        }
    }

    /// Sends the first requests of a connection that is established.
    fn begin_requests(&mut self, slot: ConnectionSlot) {
        match self.connections[slot].streams {
            None => self.http1().write_request(slot),
            Some(_) => self.streams().begin(slot),
        }
    }
}
