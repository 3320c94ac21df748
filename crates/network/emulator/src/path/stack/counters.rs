//! Counters of a stack: traffic and refusals.

use posthaste_tcp::wire::PacketRefusal;
use posthaste_tcp::{ConnectionEnd, Endpoint, TcpState};

/// Counters of a stack so far. Segments are those in the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackCounters {
    /// Connections requested.
    pub connections: u64,
    /// SYNs dropped because of too many connections.
    pub overfull: u64,
    /// Packets without a connection, answered by a reset.
    pub strays: u64,
    /// Connections that ended by a reset, or because the peer was silent for too long.
    pub broken: u64,
    /// Segments sent.
    pub segments_out: u64,
    /// Segments received.
    pub segments_in: u64,
    /// Segments with data that was sent before.
    pub retransmissions: u64,
    /// Expirations of a retransmission timer.
    pub timeouts: u64,
    refused: [u64; PacketRefusal::ALL.len()],
}

impl StackCounters {
    pub(super) fn refuse(&mut self, refusal: PacketRefusal) {
        self.refused[refusal as usize] += 1;
    }

    /// Packets that are not valid segments, by reason, without reasons that did not occur.
    pub fn refusals(&self) -> impl Iterator<Item = (PacketRefusal, u64)> + '_ {
        PacketRefusal::ALL
            .into_iter()
            .map(|refusal| (refusal, self.refused[refusal as usize]))
            .filter(|(_, count)| *count > 0)
    }

    /// Counters of one endpoint.
    pub(super) fn from_endpoint(endpoint: &Endpoint) -> Self {
        let counters = endpoint.counters();
        let broken = matches!(
            endpoint.state(),
            TcpState::Closed(ConnectionEnd::Reset | ConnectionEnd::TimedOut)
        );
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
