//! The connections of an event loop: their sockets, addresses and deadlines, and those that are idle.
//!
//! Exchanges and streams belong to the parts that use the connections.

mod addresses;
mod establishing;
mod unread;

use std::ops::{Index, IndexMut};

use posthaste_units::{Instant, Span};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use slab::Slab;

use self::addresses::AddressTurns;
pub(super) use self::unread::Unread;
use super::shared::Shared;
use crate::exchange::connection::{ConnectionState, HttpConnection};
use crate::exchange::fifo::Fifo;
use crate::exchange::slots::{ConnectionId, ConnectionSlot, Slot as _};
use crate::tally::LoadTally;

/// Grace period for the server to close a connection before we reset it.
const CLOSING: Span = Span::from_secs(1);

/// The open connections of an event loop.
pub(super) struct LoopConnections<'r> {
    shared: &'r Shared<'r>,
    epoll: OwnedFd,
    open: Slab<HttpConnection>,
    /// Serial number of the last connection.
    serial: u32,
    /// Connections of HTTP/1.1 without an exchange, by server.
    idle: Vec<Vec<ConnectionSlot>>,
    /// The addresses of each server.
    turns: Vec<AddressTurns>,
    unread: Vec<Unread>,
    /// Deadlines of connections that are being established.
    connecting: Fifo<ConnectionSlot>,
    /// Deadlines of connections that the server has to close.
    closing: Fifo<ConnectionSlot>,
}

impl<'r> LoopConnections<'r> {
    /// Creates the connections of the loop at this position in the run.
    pub(super) fn new(shared: &'r Shared<'r>, position: usize) -> Result<Self, Errno> {
        let origins = shared.origins.iter();
        let turns = origins.map(|origin| AddressTurns::new(&origin.addresses, position));
        Ok(Self {
            shared,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            open: Slab::new(),
            serial: 0,
            idle: vec![Vec::new(); shared.origins.len()],
            turns: turns.collect(),
            unread: Vec::new(),
            connecting: Fifo::new(),
            closing: Fifo::new(),
        })
    }

    /// True if the limit of open connections is reached.
    pub(super) fn is_full(&self) -> bool {
        self.open.len() >= self.shared.limit
    }

    /// True if this connection is open.
    pub(super) fn is_current(&self, id: ConnectionId) -> bool {
        let connection = self.open.get(id.slot.index());
        connection.is_some_and(|connection| connection.id == id)
    }

    /// Returns the connection in a slot that may be free.
    pub(super) fn get_mut(&mut self, slot: ConnectionSlot) -> Option<&mut HttpConnection> {
        self.open.get_mut(slot.index())
    }

    /// Waits for a batch of events, at most for this time. Returns their number.
    pub(super) fn wait(&self, events: &mut Vec<epoll::Event>, time: Span) -> Result<usize, Errno> {
        events.clear();
        let timeout = rustix::event::Timespec {
            tv_sec: (time.as_nanos() / 1_000_000_000) as i64,
            tv_nsec: (time.as_nanos() % 1_000_000_000) as _,
        };
        let spare = rustix::buffer::spare_capacity(events);
        epoll::wait(&self.epoll, spare, Some(&timeout))
    }

    /// Registers a connection with epoll, edge-triggered.
    pub(super) fn watch(&self, slot: ConnectionSlot, also: EventFlags) -> Result<(), Errno> {
        let connection = &self[slot];
        let (data, flags) = interest(connection, also);
        epoll::add(&self.epoll, &connection.socket, data, flags)
    }

    /// Also registers for space in the socket, if that was not requested before.
    pub(super) fn watch_writable(&self, slot: ConnectionSlot) -> Result<(), Errno> {
        let connection = &self[slot];
        let (data, flags) = interest(connection, EventFlags::OUT);
        epoll::modify(&self.epoll, &connection.socket, data, flags)
    }

    /// Takes an idle connection to a server: the one used last.
    pub(super) fn take_idle(&mut self, origin: usize) -> Option<ConnectionSlot> {
        self.idle[origin].pop()
    }

    /// Keeps a connection for the next exchange.
    pub(super) fn add_idle(&mut self, slot: ConnectionSlot) {
        let connection = &mut self.open[slot.index()];
        connection.state = ConnectionState::Idle;
        let idle = &mut self.idle[connection.origin];
        debug_assert!(!idle.contains(&slot), "a connection is in the pool twice");
        idle.push(slot);
    }

    /// Closes an idle connection.
    pub(super) fn remove_idle(&mut self, slot: ConnectionSlot) {
        let origin = self[slot].origin;
        self.idle[origin].retain(|other| *other != slot);
        self.remove(slot);
    }

    /// Closes an idle connection to another origin: the oldest of the first origin that has one. Returns false if there is
    /// none.
    pub(super) fn evict_idle(&mut self) -> bool {
        let mut idle = self.idle.iter_mut().filter(|idle| !idle.is_empty());
        let Some(slot) = idle.next().map(|idle| idle.remove(0)) else {
            return false;
        };
        self.remove(slot);
        true
    }

    /// Waits from `now` on for the server to close a connection.
    pub(super) fn await_close(&mut self, slot: ConnectionSlot, now: Instant) {
        self[slot].state = ConnectionState::Closing;
        self.closing.push(slot, now + CLOSING);
    }

    /// Clears the deadlines of a connection.
    pub(super) fn clear_deadlines(&mut self, slot: ConnectionSlot) {
        self.connecting.remove(slot);
        self.closing.remove(slot);
    }

    /// The earliest deadline of a connection.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let deadlines = [self.connecting.next_due(), self.closing.next_due()];
        deadlines.into_iter().flatten().min()
    }

    /// Takes the next connection that was not established by its deadline.
    pub(super) fn pop_late_connecting(&mut self, now: Instant) -> Option<ConnectionSlot> {
        self.connecting.pop_due(now)
    }

    /// Takes the next connection that the server has not closed by its deadline.
    pub(super) fn pop_late_closing(&mut self, now: Instant) -> Option<ConnectionSlot> {
        self.closing.pop_due(now)
    }

    /// Closes a connection.
    pub(super) fn remove(&mut self, slot: ConnectionSlot) {
        self.check_removable(slot);
        drop(self.open.remove(slot.index()));
    }

    /// Resets a connection.
    pub(super) fn abort(&mut self, slot: ConnectionSlot) {
        self.check_removable(slot);
        let now = self.shared.clock.at(self.shared.clock.now());
        self.open.remove(slot.index()).abort(now);
    }

    /// Resets all connections at the end of the run, and counts their streams.
    pub(super) fn end(&mut self, tally: &mut LoadTally) {
        let now = self.shared.clock.at(self.shared.clock.now());
        for connection in self.open.drain() {
            let is_counted = connection.state == ConnectionState::Closing;
            if let (Some(streams), false) = (&connection.streams, is_counted) {
                streams.client.add_counts(&mut tally.streams);
            }
            connection.abort(now);
        }
    }

    fn check_removable(&self, slot: ConnectionSlot) {
        let deadlines = [&self.connecting, &self.closing];
        debug_assert!(
            deadlines.iter().all(|fifo| !fifo.contains(slot)),
            "a connection is removed before its deadlines"
        );
        debug_assert!(
            self[slot].exchange.is_none(),
            "a connection is removed before its exchange has ended"
        );
    }
}

impl Index<ConnectionSlot> for LoopConnections<'_> {
    type Output = HttpConnection;

    fn index(&self, slot: ConnectionSlot) -> &HttpConnection {
        &self.open[slot.index()]
    }
}

impl IndexMut<ConnectionSlot> for LoopConnections<'_> {
    fn index_mut(&mut self, slot: ConnectionSlot) -> &mut HttpConnection {
        &mut self.open[slot.index()]
    }
}

/// Returns the epoll registration of a connection: its token and its events.
fn interest(connection: &HttpConnection, also: EventFlags) -> (EventData, EventFlags) {
    let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET | also;
    (EventData::new_u64(connection.id.token()), flags)
}
