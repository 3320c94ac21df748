//! The connection of an exchange: an idle one, or a new one to an address that does not refuse it.

use std::net::SocketAddr;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::Http1;
use super::send::Transmitted;
use crate::exchange::HttpExchange;
use crate::exchange::connection::{ConnectionState, HttpConnection};
use crate::exchange::slots::{ConnectionSlot, ExchangeSlot};
use crate::outcome::Outcome;
use crate::plan::Connections;
use crate::transport::socket::{self, ConnectAttempt};

impl Http1<'_, '_> {
    /// Sends a request on an idle connection or on a new one.
    pub(in super::super) fn send(&mut self, exchange: HttpExchange) {
        let sent = exchange.moments.sent;
        if !self.requests.choose_offer(&exchange) {
            return;
        }
        let deadline = sent + self.shared.plan.timeout;
        let origin = self.shared.mix.requests[exchange.request].origin;
        if let Some(slot) = self.connections.take_idle(origin) {
            self.requests.recording.record_sent(&exchange);
            let connection = &mut self.connections[slot];
            debug_assert!(
                connection.state == ConnectionState::Idle && connection.exchange.is_none(),
                "a busy connection is in the pool"
            );
            connection.is_reused = true;
            let exchanges = &mut self.requests.exchanges;
            connection.exchange = Some(exchanges.insert(exchange, Some(slot), deadline));
            self.write_request(slot);
        } else if self.connections.is_full() && !self.connections.evict_idle() {
            self.requests.end_attempt(&exchange, Outcome::Dropped, sent);
        } else {
            let open = self.requests.exchanges.insert(exchange, None, deadline);
            self.connect(origin, open);
        }
    }

    /// Opens a connection for an exchange: to one address after the other, as long as they refuse at once. If all do, the
    /// exchange ends.
    fn connect(&mut self, origin: usize, open: ExchangeSlot) {
        let keep_alive = self.shared.plan.connections == Connections::KeepAlive;
        // TLS writes record by record. Nagle's algorithm would delay the second record.
        let no_delay = keep_alive || self.shared.names.contains_key(&origin);
        loop {
            let tally = &mut self.requests.recording.tally;
            let address = self.connections.take_address(origin, tally);
            let now = self.shared.clock.now();
            let attempt = socket::connect(&address, self.shared.local_port(), no_delay);
            let (outcome, reason) = match attempt {
                ConnectAttempt::Started(socket) => {
                    self.requests.record_first_sent(open);
                    let tally = &mut self.requests.recording.tally;
                    let connections = &mut self.connections;
                    match connections.insert(socket, origin, address, now, tally) {
                        Ok(slot) => return self.carry(slot, open, address),
                        Err(failed) => failed,
                    }
                }
                failed => {
                    let failed = failed.outcome();
                    if failed.0.was_attempted() {
                        self.requests.record_first_sent(open);
                    }
                    failed
                }
            };
            if !self.tries_another(origin, address, outcome, open) {
                return self.requests.fail(open, outcome, now, || reason);
            }
        }
    }

    /// Lets a new connection carry an exchange.
    fn carry(&mut self, slot: ConnectionSlot, open: ExchangeSlot, address: SocketAddr) {
        self.connections[slot].exchange = Some(open);
        self.requests.exchanges[open].connection = Some(slot);
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
        if !socket::is_of_address(outcome) {
            return false;
        }
        let tally = &mut self.requests.recording.tally;
        self.connections.fail_address(origin, address, tally);
        let exchange = &mut self.requests.exchanges[open].exchange;
        exchange.refusals += 1;
        self.connections.has_another(origin, exchange.refusals)
    }

    /// Sends the request without polling first. On loopback the handshake is over before `connect` returns, unless the
    /// accept queue is full.
    fn send_at_once(&mut self, slot: ConnectionSlot) {
        let now = self.shared.clock.now();
        match self.transmit(slot) {
            Transmitted::Yes => {
                self.connections.establish(slot);
                let connection = &self.connections[slot];
                if let Some(open) = connection.exchange {
                    self.requests.exchanges[open].exchange.moments.connected = Some(now);
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

    /// Registers a connection for events. Its exchange ends if that is impossible.
    fn watch(&mut self, slot: ConnectionSlot, also: EventFlags) {
        if let Err(errno) = self.connections.watch(slot, also) {
            self.fail(slot, Outcome::ClientFailed, || errno.to_string());
        }
    }

    /// Handles a connection that was not established: its exchange gets another one, or ends.
    pub(in super::super) fn fail_connect(&mut self, slot: ConnectionSlot, errno: Errno) {
        let outcome = socket::connect_outcome(errno);
        let HttpConnection {
            origin,
            address,
            exchange,
            ..
        } = self.connections[slot];
        match exchange {
            Some(open) if self.tries_another(origin, address, outcome, open) => {
                self.connections[slot].exchange = None;
                self.connections.clear_deadlines(slot);
                self.connections.abort(slot);
                self.connect(origin, open);
            }
            _ => self.fail(slot, outcome, || socket::connect_failure(errno)),
        }
    }
}
