//! What the relay has carried, and what it has refused, by reason.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a relay has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relayed {
    /// Connections carried to a host outside.
    pub connections: u64,
    /// Connections that the host outside refused or that did not reach it; reset inside.
    pub unreachable: u64,
    /// Connections that ended with a reset from either side, passed on to the other.
    pub resets: u64,
    /// Flows of datagrams carried: one for each pair of ports.
    pub flows: u64,
    /// Datagrams that were not carried: refused outside, or more flows than are kept at once.
    pub datagrams_lost: u64,
    /// Destinations at which no socket could be opened: the server itself uses their port, there
    /// were too many, or none was ready for a packet; there the next one asks again.
    pub refused: u64,
}

/// The same while it is being counted.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) connections: AtomicU64,
    pub(super) unreachable: AtomicU64,
    pub(super) resets: AtomicU64,
    pub(super) flows: AtomicU64,
    pub(super) datagrams_lost: AtomicU64,
    pub(super) refused: AtomicU64,
}

impl Counters {
    pub(super) fn read(&self) -> Relayed {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Relayed {
            connections: of(&self.connections),
            unreachable: of(&self.unreachable),
            resets: of(&self.resets),
            flows: of(&self.flows),
            datagrams_lost: of(&self.datagrams_lost),
            refused: of(&self.refused),
        }
    }
}

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
