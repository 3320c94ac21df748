//! Counters of the relay: its traffic, and its refusals by reason.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a relay so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relayed {
    /// Connections carried to a host outside.
    pub connections: u64,
    /// Connections that the host outside refused, or that did not reach it. They are reset inside.
    pub unreachable: u64,
    /// Connections that ended with a reset from either side, passed on to the other.
    pub resets: u64,
    /// Flows of datagrams carried: one for each pair of ports.
    pub flows: u64,
    /// Datagrams not carried: refused outside, or beyond the maximum number of flows.
    pub datagrams_lost: u64,
    /// Destinations without a socket: the server itself uses their port, there were too many, or no spare socket was
    /// ready for a packet. In the last case the next packet tries again.
    pub refused: u64,
}

/// The same counters while counting.
#[derive(Debug, Default)]
pub(super) struct RelayCounters {
    pub(super) connections: AtomicU64,
    pub(super) unreachable: AtomicU64,
    pub(super) resets: AtomicU64,
    pub(super) flows: AtomicU64,
    pub(super) datagrams_lost: AtomicU64,
    pub(super) refused: AtomicU64,
}

impl RelayCounters {
    pub(super) fn read(&self) -> Relayed {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Relayed {
            connections: count(&self.connections),
            unreachable: count(&self.unreachable),
            resets: count(&self.resets),
            flows: count(&self.flows),
            datagrams_lost: count(&self.datagrams_lost),
            refused: count(&self.refused),
        }
    }
}

/// Increments a counter.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
