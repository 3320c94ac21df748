//! One request and its reply on a connection that is ready.

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::{CLOSING, EventLoop};
use crate::connection::{ConnectionState, HttpConnection, HttpExchange, ReceiveStatus};
use crate::decoding;
use crate::http::Violation;
use crate::inspect;
use crate::outcome::Outcome;
use crate::plan::Connections;

/// A connection with more to read than one turn permits. It gets no further event, because epoll reports changes only.
pub(super) struct Unread {
    slot: u32,
    serial: u32,
    closing: bool,
}

/// Result of sending a request.
pub(super) enum Transmitted {
    Yes,
    /// The kernel refuses. `AGAIN` means that the connection is not established yet.
    Refused(Errno),
    /// The template could not be rendered.
    Unwritten(String),
}

impl EventLoop<'_> {
    /// Handles an epoll event of a connection.
    pub(super) fn handle(&mut self, slot: u32, flags: EventFlags) {
        let gone = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        match self.connections[slot as usize].state {
            ConnectionState::Connecting => self.connect_ended(slot),
            ConnectionState::Securing => self.secure(slot),
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
                let origin = self.connections[slot as usize].origin;
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

    /// Sends the request of a connection that is ready.
    pub(super) fn write_request(&mut self, slot: u32) {
        match self.transmit(slot) {
            Transmitted::Yes if self.connections[slot as usize].has_unsent() => {
                self.watch_for_room(slot);
            }
            Transmitted::Yes => {}
            Transmitted::Refused(errno) => self.fail(slot, Outcome::Reset, || errno.to_string()),
            Transmitted::Unwritten(reason) => self.fail(slot, Outcome::ClientFailed, || reason),
        }
    }

    /// Passes the request of a connection to the kernel.
    pub(super) fn transmit(&mut self, slot: u32) -> Transmitted {
        let connection = &mut self.connections[slot as usize];
        let Some(mut exchange) = connection.exchange else {
            return Transmitted::Yes;
        };
        let request = &self.shared.mix.requests[exchange.request];
        let mut quoted = false;
        let bytes = if let (Some(bytes), None) = (request.fixed(), &self.buyer) {
            bytes
        } else {
            self.scratch.clear();
            let row = exchange.due.number;
            if let Err(reason) = request.write(&self.shared.plan.data, row, &mut self.scratch) {
                return Transmitted::Unwritten(reason);
            }
            if let Some(buyer) = &self.buyer {
                let quote = buyer.quotes.due(self.shared.clock.now());
                quoted = quote.is_some();
                buyer.sign(quote, &mut self.scratch);
            }
            &self.scratch
        };
        connection.reader.begin(request.head);
        match connection.send(bytes) {
            Ok(()) => {
                self.tally.bytes_sent += bytes.len() as u64;
                connection.state = ConnectionState::Exchanging;
                exchange.moments.written = self.shared.clock.now();
                exchange.quoted = quoted;
                connection.exchange = Some(exchange);
                if quoted {
                    self.note_quoted(&exchange);
                }
                Transmitted::Yes
            }
            Err(errno) => Transmitted::Refused(errno),
        }
    }

    /// Sends the rest of a request. Returns false if the peer accepts no more.
    fn flush(&mut self, slot: u32) -> bool {
        let connection = &mut self.connections[slot as usize];
        let waited = connection.has_unsent();
        match connection.flush() {
            Ok(()) => {
                if waited
                    && !connection.has_unsent()
                    && let Some(exchange) = &mut connection.exchange
                    && exchange.moments.first_byte.is_none()
                {
                    // Only now has the kernel accepted all of it.
                    exchange.moments.written = self.shared.clock.now();
                }
                true
            }
            Err(_) => false,
        }
    }

    /// Continues reading replies that were left so that other connections get a turn.
    pub(super) fn read_on(&mut self) {
        for Unread {
            slot,
            serial,
            closing,
        } in std::mem::take(&mut self.unread)
        {
            let connection = self.connections.get(slot as usize);
            let goes_on = |connection: &HttpConnection| {
                connection.serial == serial && connection.state == ConnectionState::Exchanging
            };
            if connection.is_some_and(goes_on) {
                self.receive(slot, closing, false);
            }
        }
    }

    /// Reads available bytes. If the rest of the request was `refused`, they must contain the reply.
    fn receive(&mut self, slot: u32, closing: bool, refused: bool) {
        let clock = self.shared.clock;
        let connection = &mut self.connections[slot as usize];
        let bytes = &mut self.tally.bytes_received;
        match connection.receive(&mut self.buffer, closing, bytes, || clock.now()) {
            ReceiveStatus::Partial if refused => self.fail(slot, Outcome::Reset, || {
                "the connection took a part of the request only".to_owned()
            }),
            ReceiveStatus::Partial => {}
            ReceiveStatus::More => {
                let serial = connection.serial;
                let known = |unread: &&mut Unread| unread.slot == slot && unread.serial == serial;
                match self.unread.iter_mut().find(known) {
                    Some(unread) => unread.closing |= closing,
                    None => self.unread.push(Unread {
                        slot,
                        serial,
                        closing,
                    }),
                }
            }
            ReceiveStatus::Complete { surplus: false } => self.complete(slot, closing),
            ReceiveStatus::Complete { surplus: true } => {
                self.fail(slot, Outcome::ProtocolError, || {
                    Violation::Surplus.to_string()
                });
            }
            ReceiveStatus::Wrong(violation) => {
                let outcome = match violation {
                    Violation::Memory => Outcome::MemoryLimit,
                    _ => Outcome::ProtocolError,
                };
                self.fail(slot, outcome, || violation.to_string());
            }
            ReceiveStatus::Broken(error) => {
                self.fail(slot, Outcome::TlsFailed, || error.to_string());
            }
            ReceiveStatus::Ended => self.fail(slot, Outcome::Reset, || {
                "the connection ended before the reply".to_owned()
            }),
        }
    }

    /// Decodes a complete reply if the plan says so, and returns its outcome.
    fn judge(&mut self, slot: u32, exchange: &mut HttpExchange) -> (Outcome, Option<String>) {
        let reader = &self.connections[slot as usize].reader;
        let slowdown = self.shared.plan.decoding;
        let decoded = match slowdown.map_or(Ok(None), |times| decoding::decode(reader, times)) {
            Ok(decoded) => decoded,
            Err(reason) => return (Outcome::Undecodable, Some(reason)),
        };
        let judgement = inspect::judge(reader);
        if let Some((took, decoded)) = decoded {
            exchange.moments.decoding = Some(took);
            if self.is_recorded(exchange) {
                self.tally.decoded.merge(&decoded);
            }
        }
        judgement
    }

    /// Handles a complete reply: determines its outcome, records it, and reuses or ends the connection.
    fn complete(&mut self, slot: u32, closed: bool) {
        let connection = &mut self.connections[slot as usize];
        let Some(mut exchange) = connection.exchange.take() else {
            return;
        };
        let now = self.shared.clock.now();
        let (outcome, reason) = self.judge(slot, &mut exchange);
        self.note_told(slot, &exchange);
        self.connections[slot as usize].reader.forget_body();
        let connection = &mut self.connections[slot as usize];
        let status = connection.reader.status();
        let reusable = connection.reader.keep_alive() && !closed;
        // A server may answer before it has read the whole request. The unsent rest would precede the next request.
        let is_sent = !connection.has_unsent();
        let origin = connection.origin;
        if self.is_recorded(&exchange) {
            *self.tally.statuses.entry(status).or_default() += 1;
            *self.tally.tick.statuses.entry(status).or_default() += 1;
        }
        if let Some(reason) = reason {
            self.tally.explain(outcome, || reason);
        }
        self.replying.remove(slot);
        let done = now + exchange.moments.decoding.unwrap_or_default();
        self.settle(&exchange, outcome, done);
        let connection = &mut self.connections[slot as usize];
        if closed {
            self.remove(slot);
        } else if reusable && is_sent && self.shared.plan.connections == Connections::KeepAlive {
            connection.state = ConnectionState::Idle;
            self.idle[origin].push(slot);
        } else if reusable {
            self.abort(slot);
        } else {
            connection.state = ConnectionState::Closing;
            self.closing.push(slot, now + CLOSING);
        }
    }
}
