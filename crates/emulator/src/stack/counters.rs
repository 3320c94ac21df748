//! What a stack has done and refused.

use posthaste_tcp::wire::Refusal;
use posthaste_tcp::{End, Endpoint, State};

/// What a stack has done so far; segments are those in the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections that were asked for.
    pub connections: u64,
    /// SYNs dropped for want of room.
    pub overfull: u64,
    /// Packets of no connection, answered by a reset.
    pub strays: u64,
    /// Connections that ended by a reset, or because nothing came back for too long.
    pub broken: u64,
    /// Segments sent.
    pub segments_out: u64,
    /// Segments received.
    pub segments_in: u64,
    /// Segments with what had been sent before.
    pub retransmissions: u64,
    /// Times that a retransmission timer ran out.
    pub timeouts: u64,
    refused: [u64; Refusal::ALL.len()],
}

impl Counters {
    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.refused[refusal as usize] += 1;
    }

    /// Packets that are no segments, by reason; those that did not come are left out.
    pub fn refusals(&self) -> impl Iterator<Item = (Refusal, u64)> + '_ {
        Refusal::ALL
            .into_iter()
            .map(|refusal| (refusal, self.refused[refusal as usize]))
            .filter(|(_, count)| *count > 0)
    }

    /// What one endpoint did.
    pub(super) fn of(endpoint: &Endpoint) -> Self {
        let counters = endpoint.counters();
        let broken = matches!(endpoint.state(), State::Closed(End::Reset | End::TimedOut));
        Self {
            broken: broken.into(),
            segments_out: counters.segments_out,
            segments_in: counters.segments_in,
            retransmissions: counters.retransmissions,
            timeouts: counters.timeouts,
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.broken += other.broken;
        self.segments_out += other.segments_out;
        self.segments_in += other.segments_in;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
    }
}
