//! Types of the frames of a datagram, from the counters of its sender.
//!
//! Packets are encrypted, but both ends belong to the simulation: their counters before and after a datagram name its
//! frames. The counters do not tell which frame is in which of several coalesced packets.

use quinn_proto::FrameStats;

/// Frames of one datagram by type, without padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    counts: [u64; NAMES.len()],
    /// The datagram has a CONNECTION_CLOSE frame.
    pub close: bool,
}

/// Cause of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SentCause {
    /// New data, acknowledgements, or the first transmission.
    #[default]
    Ordinary,
    /// A probe timeout expired (RFC 9002, section 6.2).
    Probe,
    /// The first datagram after the sender has declared this number of packets lost (RFC 9002, section 6.1).
    Losses(u64),
    /// A stateless reset, or another answer without a connection.
    Stateless,
}

/// Types that quinn-proto counts and that the simulated programs can cause.
const NAMES: [&str; 14] = [
    "ACK",
    "CRYPTO",
    "STREAM",
    "PING",
    "IMMEDIATE_ACK",
    "HANDSHAKE_DONE",
    "NEW_CONNECTION_ID",
    "RETIRE_CONNECTION_ID",
    "ACK_FREQUENCY",
    "MAX_DATA",
    "MAX_STREAM_DATA",
    "MAX_STREAMS",
    "NEW_TOKEN",
    "DATA_BLOCKED",
];
const ACK: usize = 0;
const CRYPTO: usize = 1;
const STREAM: usize = 2;
const PING: usize = 3;
const IMMEDIATE_ACK: usize = 4;
const HANDSHAKE_DONE: usize = 5;

fn counts(stats: &FrameStats) -> [u64; NAMES.len()] {
    [
        stats.acks,
        stats.crypto,
        stats.stream,
        stats.ping,
        stats.immediate_ack,
        u64::from(stats.handshake_done),
        stats.new_connection_id,
        stats.retire_connection_id,
        stats.ack_frequency,
        stats.max_data,
        stats.max_stream_data,
        stats.max_streams_bidi + stats.max_streams_uni,
        stats.new_token,
        stats.data_blocked + stats.stream_data_blocked,
    ]
}

impl Frames {
    /// The frames that a sender has sent between two states of its counters.
    pub(crate) fn between(before: &FrameStats, after: &FrameStats) -> Self {
        let mut frames = Self {
            counts: counts(after),
            close: false,
        };
        for (count, before) in frames.counts.iter_mut().zip(counts(before)) {
            *count -= before;
        }
        frames
    }

    /// Names of the types, in the order of their importance for a reader of the specification.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        let counted = NAMES.into_iter().zip(self.counts);
        let counted = counted
            .filter(|(_, count)| *count > 0)
            .map(|(name, _)| name);
        counted.chain(self.close.then_some("CONNECTION_CLOSE"))
    }

    /// The most important type, for a short label. `None` if the frames are unknown.
    pub fn principal(&self) -> Option<&'static str> {
        let first = [STREAM, CRYPTO, HANDSHAKE_DONE, PING, IMMEDIATE_ACK];
        let others = (IMMEDIATE_ACK + 2..NAMES.len()).chain([ACK]);
        let mut order = first.into_iter().chain(others);
        if self.close {
            Some("CONNECTION_CLOSE")
        } else {
            order
                .find(|kind| self.counts[*kind] > 0)
                .map(|kind| NAMES[kind])
        }
    }

    /// True if it has a STREAM frame.
    pub const fn has_stream(&self) -> bool {
        self.counts[STREAM] > 0
    }

    /// True if the receiver has to acknowledge it (RFC 9002, section 2).
    pub fn elicits_ack(&self) -> bool {
        self.counts[ACK + 1..].iter().any(|count| *count > 0)
    }

    /// True if a probe has such frames: a request for an immediate acknowledgement, or a part of the handshake.
    pub(crate) const fn can_probe(&self) -> bool {
        let counts = &self.counts;
        counts[PING] > 0 || counts[IMMEDIATE_ACK] > 0 || counts[CRYPTO] > 0
    }
}
