//! The end of exchanges and connections whose deadline has passed.

use posthaste_units::Instant;

use super::EventLoop;
use crate::exchange::slots::ConnectionSlot;
use crate::outcome::Outcome;

impl EventLoop<'_> {
    /// Ends exchanges and connections whose deadline has passed.
    pub(super) fn expire_timeouts(&mut self, now: Instant) {
        while let Some(slot) = self.connections.pop_late_connecting(now) {
            let connection = &self.connections[slot];
            if connection.streams.is_none() {
                let (origin, address) = (connection.origin, connection.address);
                let tally = &mut self.requests.recording.tally;
                self.connections.fail_address(origin, address, tally);
            }
            self.fail(slot, Outcome::ConnectAborted, || {
                "no connection within the connect timeout".to_owned()
            });
        }
        while let Some(open) = self.requests.exchanges.pop_late(now) {
            match self.requests.exchanges[open].connection {
                Some(slot) if self.connections[slot].streams.is_none() => self.http1().expire(slot),
                _ => self.streams().expire(open),
            }
        }
        while let Some(slot) = self.connections.pop_late_closing(now) {
            self.connections.abort(slot);
        }
    }

    /// Ends the exchanges of a connection without complete replies, and the connection.
    pub(super) fn fail(
        &mut self,
        slot: ConnectionSlot,
        outcome: Outcome,
        reason: impl FnOnce() -> String,
    ) {
        match self.connections[slot].streams {
            None => self.http1().fail(slot, outcome, reason),
            Some(_) => self.streams().fail(slot, outcome, reason),
        }
    }
}
