//! New connections: their addresses, their entries and their deadlines.

use std::net::SocketAddr;

use posthaste_units::Instant;
use rustix::fd::OwnedFd;

use super::LoopConnections;
use crate::exchange::connection::HttpConnection;
use crate::exchange::slots::{ConnectionId, ConnectionSlot, Slot as _};
use crate::outcome::Outcome;
use crate::tally::LoadTally;

impl LoopConnections<'_> {
    /// Takes the address of a server's next connection, and counts the connection.
    pub(in super::super) fn take_address(
        &mut self,
        origin: usize,
        tally: &mut LoadTally,
    ) -> SocketAddr {
        let now = self.shared.clock.now();
        let address = self.turns[origin].take(now);
        tally.addresses.entry(address).or_default().connections += 1;
        address
    }

    /// Counts a connection that was not established, and lets the next ones pass over its address.
    pub(in super::super) fn fail_address(
        &mut self,
        origin: usize,
        address: SocketAddr,
        tally: &mut LoadTally,
    ) {
        let now = self.shared.clock.now();
        self.turns[origin].fail(address, now);
        tally.addresses.entry(address).or_default().failed += 1;
    }

    /// True if a server has an address that this many failures have not tried.
    pub(in super::super) fn has_another(&self, origin: usize, failures: u32) -> bool {
        (failures as usize) < self.turns[origin].len()
    }

    /// Assigns a slot and a deadline to a new socket, and counts the connection.
    pub(in super::super) fn insert(
        &mut self,
        socket: OwnedFd,
        origin: usize,
        address: SocketAddr,
        now: Instant,
        tally: &mut LoadTally,
    ) -> Result<ConnectionSlot, (Outcome, String)> {
        let secure = self.shared.secure(origin)?;
        self.serial = self.serial.wrapping_add(1);
        let entry = self.open.vacant_entry();
        let id = ConnectionId {
            slot: ConnectionSlot::from_index(entry.key()),
            serial: self.serial,
        };
        entry.insert(HttpConnection::new(socket, origin, address, id, secure));
        debug_assert!(
            self.open.len() <= self.shared.limit,
            "more connections are open than the plan allows"
        );
        tally.connections += 1;
        let deadline = now + self.shared.plan.connect_timeout;
        self.connecting.push(id.slot, deadline);
        Ok(id.slot)
    }

    /// Records that the transport of a connection is established. The next connections use its address.
    pub(in super::super) fn establish(&mut self, slot: ConnectionSlot) {
        self.connecting.remove(slot);
        let connection = &self.open[slot.index()];
        self.turns[connection.origin].answer(connection.address);
    }
}
