//! Connection set-up, from an address to a usable connection: SYN, handshake, TLS.

use std::net::SocketAddr;

use posthaste_units::Instant;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::EventLoop;
use super::send::Transmitted;
use crate::connection::{ConnectionState, HttpConnection};
use crate::exchange::HttpExchange;
use crate::outcome::Outcome;
use crate::plan::Connections;
use crate::slots::{ConnectionId, ConnectionSlot, ExchangeSlot, Slot as _};
use crate::socket::{self, ConnectAttempt};
use crate::tls::TlsStream;

impl EventLoop<'_> {
    /// Opens a connection for an exchange.
    pub(super) fn connect(&mut self, origin: usize, exchange: HttpExchange) {
        let deadline = exchange.moments.sent + self.shared.plan.timeout;
        let open = self.exchanges.insert(exchange, None);
        self.replying.push(open, deadline);
        self.connect_open(origin, open);
    }

    /// Opens a connection for an exchange that has a deadline: to one address after the other, as long as they refuse at
    /// once. If all do, the exchange ends.
    fn connect_open(&mut self, origin: usize, open: ExchangeSlot) {
        let keep_alive = self.shared.plan.connections == Connections::KeepAlive;
        // TLS writes record by record. Nagle's algorithm would delay the second record.
        let no_delay = keep_alive || self.shared.names.contains_key(&origin);
        loop {
            let address = self.take_address(origin);
            let now = self.shared.clock.now();
            let attempt = socket::connect(&address, self.shared.local_port(), no_delay);
            let (outcome, reason) = match attempt {
                ConnectAttempt::Started(socket) => {
                    self.record_first_sent(open);
                    match self.insert_connection(socket, (origin, address), now) {
                        Ok(slot) => return self.carry(slot, open, address),
                        Err(failed) => failed,
                    }
                }
                failed => failed.outcome(),
            };
            if outcome.was_attempted() {
                self.record_first_sent(open);
            }
            if !self.tries_another(origin, address, outcome, open) {
                self.replying.remove(open);
                let exchange = self.exchanges.remove(open);
                self.tally.explain(outcome, exchange.numbers(), || reason);
                return self.record_end(&exchange, outcome, now);
            }
        }
    }

    /// Records that an exchange was sent, unless an address has refused it before.
    fn record_first_sent(&mut self, open: ExchangeSlot) {
        let exchange = self.exchanges[open].exchange;
        if exchange.refusals == 0 {
            self.record_sent(&exchange);
        }
    }

    /// Lets a new connection carry an exchange.
    fn carry(&mut self, slot: ConnectionSlot, open: ExchangeSlot, address: SocketAddr) {
        self.connections[slot.index()].exchange = Some(open);
        self.exchanges[open].connection = Some(slot);
        if address.ip().is_loopback() && self.shared.tls.is_none() {
            self.send_at_once(slot);
        } else {
            self.watch(slot, EventFlags::OUT);
        }
    }

    /// Counts a connection that was not established. Returns true if the server has an address that has not refused its
    /// exchange.
    fn tries_another(
        &mut self,
        origin: usize,
        address: SocketAddr,
        outcome: Outcome,
        open: ExchangeSlot,
    ) -> bool {
        if !is_of_address(outcome) {
            return false;
        }
        self.fail_address(origin, address);
        let exchange = &mut self.exchanges[open].exchange;
        exchange.refusals += 1;
        let refusals = exchange.refusals;
        self.has_another(origin, refusals)
    }

    /// Assigns a slot and a deadline to a new socket.
    pub(super) fn insert_connection(
        &mut self,
        socket: OwnedFd,
        server: (usize, SocketAddr),
        now: Instant,
    ) -> Result<ConnectionSlot, (Outcome, String)> {
        let secure = match (&self.shared.tls, self.shared.names.get(&server.0)) {
            (Some(config), Some(name)) => {
                let secure = TlsStream::new(config, name);
                Some(secure.map_err(|error| (Outcome::TlsFailed, error.to_string()))?)
            }
            _ => None,
        };
        self.serial = self.serial.wrapping_add(1);
        let entry = self.connections.vacant_entry();
        let id = ConnectionId {
            slot: ConnectionSlot::from_index(entry.key()),
            serial: self.serial,
        };
        entry.insert(HttpConnection::new(socket, server, id, secure));
        debug_assert!(
            self.connections.len() <= self.shared.limit,
            "more connections are open than the plan allows"
        );
        self.tally.connections += 1;
        self.connecting
            .push(id.slot, now + self.shared.plan.connect_timeout);
        Ok(id.slot)
    }

    /// Sends the request without polling first. On loopback the handshake is over before `connect` returns, unless the
    /// accept queue is full.
    fn send_at_once(&mut self, slot: ConnectionSlot) {
        let now = self.shared.clock.now();
        match self.transmit(slot) {
            Transmitted::Yes => {
                self.connecting.remove(slot);
                self.address_answers(slot);
                let connection = &self.connections[slot.index()];
                if let Some(open) = connection.exchange {
                    self.exchanges[open].exchange.moments.connected = Some(now);
                }
                let also = if connection.has_unsent() {
                    EventFlags::OUT
                } else {
                    EventFlags::empty()
                };
                self.watch(slot, also);
            }
            Transmitted::Refused(Errno::AGAIN) => self.watch(slot, EventFlags::OUT),
            Transmitted::Refused(errno) => self.fail_connect(slot, errno),
            Transmitted::Unwritten(reason) => self.fail(slot, Outcome::ClientFailed, || reason),
        }
    }

    /// Registers a connection with epoll, edge-triggered.
    pub(super) fn watch(&mut self, slot: ConnectionSlot, also: EventFlags) {
        let connection = &self.connections[slot.index()];
        let (data, flags) = interest(connection, also);
        if let Err(errno) = epoll::add(&self.epoll, &connection.socket, data, flags) {
            self.fail(slot, Outcome::ClientFailed, || errno.to_string());
        }
    }

    /// Also registers for space in the socket, if that was not requested before.
    pub(super) fn watch_writable(&mut self, slot: ConnectionSlot) {
        let connection = &self.connections[slot.index()];
        let (data, flags) = interest(connection, EventFlags::OUT);
        if let Err(errno) = epoll::modify(&self.epoll, &connection.socket, data, flags) {
            self.fail(slot, Outcome::ClientFailed, || errno.to_string());
        }
    }

    /// Handles the end of a connection attempt.
    pub(super) fn end_connect(&mut self, slot: ConnectionSlot) {
        match socket::take_error(&self.connections[slot.index()].socket) {
            None => self.begin_exchange(slot),
            Some(errno) => self.fail_connect(slot, errno),
        }
    }

    fn fail_connect(&mut self, slot: ConnectionSlot, errno: Errno) {
        let outcome = match errno {
            Errno::CONNREFUSED | Errno::CONNRESET => Outcome::Refused,
            Errno::ADDRNOTAVAIL | Errno::NOBUFS | Errno::NOMEM => Outcome::ClientFailed,
            _ => Outcome::ConnectAborted,
        };
        let HttpConnection {
            origin, address, ..
        } = self.connections[slot.index()];
        // The requests of connections with streams are in the queue.
        let open = match self.connections[slot.index()].streams {
            None => self.connections[slot.index()].exchange,
            Some(_) => None,
        };
        match open {
            Some(open) if self.tries_another(origin, address, outcome, open) => {
                self.connecting.remove(slot);
                self.connections[slot.index()].exchange = None;
                self.abort(slot);
                self.connect_open(origin, open);
            }
            _ => self.fail(slot, outcome, || socket::connect_failure(errno)),
        }
    }

    fn begin_exchange(&mut self, slot: ConnectionSlot) {
        self.connecting.remove(slot);
        self.address_answers(slot);
        let now = self.shared.clock.now();
        let connection = &mut self.connections[slot.index()];
        if let Some(open) = connection.exchange {
            self.exchanges[open].exchange.moments.connected = Some(now);
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
        let connection = &mut self.connections[slot.index()];
        match connection.handshake() {
            Ok(false) => {}
            Ok(true) => {
                let now = self.shared.clock.now();
                if let Some(open) = connection.exchange {
                    self.exchanges[open].exchange.moments.secured = Some(now);
                }
                self.begin_requests(slot);
            }
            Err(error) => self.fail(slot, Outcome::TlsFailed, || error.to_string()),
        }
    }

    /// Sends the first requests of a connection that is established.
    fn begin_requests(&mut self, slot: ConnectionSlot) {
        match self.connections[slot.index()].streams {
            None => self.write_request(slot),
            Some(_) => self.begin_streams(slot),
        }
    }
}

/// True if a connection failed because of the address, and not of this machine.
pub(super) const fn is_of_address(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Refused | Outcome::ConnectAborted)
}

/// Returns the epoll registration of a connection: its token and its events.
fn interest(connection: &HttpConnection, also: EventFlags) -> (EventData, EventFlags) {
    let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET | also;
    (EventData::new_u64(connection.id.token()), flags)
}
