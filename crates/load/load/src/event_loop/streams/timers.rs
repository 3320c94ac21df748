//! The timers of QUIC connections: acknowledgements, probes, pacing and idle connections.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use posthaste_units::Instant;

use super::Streams;
use crate::clock::RunClock;
use crate::exchange::connection::HttpConnection;
use crate::exchange::slots::ConnectionId;

/// Times at which connections have to be called.
///
/// A timer that moves later keeps its entry, so the connection is called too early once, without an effect. A timer that
/// moves earlier gets another entry, and the old one is skipped.
#[derive(Default)]
pub(in super::super) struct QuicTimers(BinaryHeap<Reverse<(Instant, ConnectionId)>>);

impl QuicTimers {
    /// The earliest time.
    pub(in super::super) fn next_due(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((due, ..))| *due)
    }

    fn pop_due(&mut self, now: Instant) -> Option<(Instant, ConnectionId)> {
        let due = self.next_due()?;
        (due <= now).then(|| self.0.pop().expect("the heap has an entry").0)
    }

    /// Enters the timer of a connection, unless an earlier entry exists.
    pub(super) fn schedule(&mut self, connection: &mut HttpConnection, clock: RunClock) {
        let id = connection.id;
        let Some(quic) = connection.quic() else {
            return;
        };
        let Some(due) = quic.timer() else {
            return;
        };
        let due = clock.instant(due);
        if quic.scheduled.is_none_or(|scheduled| due < scheduled) {
            quic.scheduled = Some(due);
            self.0.push(Reverse((due, id)));
        }
    }
}

impl Streams<'_, '_> {
    /// Calls the connections whose timers have expired.
    pub(in super::super) fn expire_timers(&mut self, now: Instant) {
        while let Some((due, id)) = self.queues.timers.pop_due(now) {
            if !self.connections.is_current(id) {
                continue;
            }
            let Some(quic) = self.connections[id.slot].quic() else {
                continue;
            };
            if quic.scheduled != Some(due) {
                continue;
            }
            quic.scheduled = None;
            quic.expire(self.shared.clock.at(now));
            self.poll_quic(id.slot);
        }
    }
}
