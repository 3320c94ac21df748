//! Replies, and the reuse or the end of their connections.

use posthaste_units::Instant;
use rustix::event::epoll::EventFlags;

use super::Http1;
use crate::exchange::connection::ReceiveStatus;
use crate::exchange::slots::ConnectionSlot;
use crate::outcome::Outcome;
use crate::plan::Connections;
use crate::reply::http::Violation;

impl Http1<'_, '_> {
    /// Handles an epoll event of a connection with an exchange.
    pub(in super::super) fn handle(&mut self, slot: ConnectionSlot, flags: EventFlags, gone: bool) {
        let sent = !flags.contains(EventFlags::OUT) || self.flush(slot);
        // A server that does not read the rest of a request may have answered before.
        if !sent {
            self.receive(slot, true, true);
        } else if flags.intersects(EventFlags::IN) || gone {
            self.receive(slot, gone, false);
        }
    }

    /// Reads available bytes. If the rest of the request was `refused`, they must contain the reply.
    pub(in super::super) fn receive(&mut self, slot: ConnectionSlot, closing: bool, refused: bool) {
        let clock = self.shared.clock;
        let connection = &mut self.connections[slot];
        let open = connection.exchange.expect("an exchange is read");
        let open = &mut self.requests.exchanges[open];
        let tally = &mut self.requests.recording.tally;
        let (input, bytes) = (&mut self.buffers.input, &mut tally.bytes_received);
        let received = connection.receive(open, input, closing, bytes, || clock.now());
        open.record_gaps(&mut tally.events, self.shared.window.start);
        match received {
            ReceiveStatus::Partial if refused => {
                self.fail_reset(slot, "the connection took a part of the request only");
            }
            ReceiveStatus::Partial => {}
            ReceiveStatus::More => self.connections.read_later(slot, closing),
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

    /// Handles a complete reply: determines its outcome, records it, and reuses or ends the connection.
    fn complete(&mut self, slot: ConnectionSlot, closed: bool) {
        let open = self.connections[slot].exchange.take();
        let open = open.expect("a reply belongs to an exchange");
        let now = self.shared.clock.now();
        self.requests.end_replied(open, now);
        self.reuse_or_close(slot, closed, now);
    }

    /// Returns a connection to the pool, if the plan and the server permit, or ends it.
    fn reuse_or_close(&mut self, slot: ConnectionSlot, closed: bool, now: Instant) {
        let connection = &self.connections[slot];
        // A server may answer before it has read the whole request. The unsent rest would precede the next request.
        let is_sent = !connection.has_unsent();
        let keep_alive = self.shared.plan.connections == Connections::KeepAlive;
        if closed {
            self.connections.remove(slot);
        } else if !connection.reader.keep_alive() {
            self.connections.await_close(slot, now);
        } else if is_sent && keep_alive {
            self.connections.add_idle(slot);
        } else {
            self.connections.abort(slot);
        }
    }
}
