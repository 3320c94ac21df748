//! Inference of a pattern from captures of a real network.
//!
//! A capture shows only a part of the events. [`ReceiverCapture`] sees holes in the received data, [`SenderCapture`]
//! sees retransmissions, and [`CapturePair`] compares both ends packet by packet. Each documents its inferences, and
//! counts the packets that it could not judge. Reading files and headers is left to the caller.

mod matching;
mod pair;
mod receiver;
mod sender;

#[cfg(test)]
mod tests;

use posthaste_units::{Instant, Span};

use super::{Draft, Effect, PatternEntry, PatternRange, PatternRefusal};
use crate::Direction;

pub use matching::PacketMark;
pub use pair::CapturePair;
pub use receiver::ReceiverCapture;
pub use sender::SenderCapture;

/// A packet in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedPacket {
    /// Time of capture; `None` if the capture has no times.
    pub at: Option<Instant>,
    /// Direction of the packet.
    pub direction: Direction,
    /// Number of its connection.
    pub connection: u64,
    /// TCP numbers; `None` for other protocols and for fragments.
    pub segment: Option<ObservedSegment>,
}

/// TCP numbers of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedSegment {
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// Sequence numbers that it occupies: its bytes, one for SYN and one for FIN.
    pub length: u32,
    /// Acknowledgement number.
    pub acknowledges: Option<u32>,
}

/// Findings in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Number of positions, lost packets included.
    pub packets: u64,
    /// Positions of lost packets, in order.
    pub lost: Vec<u64>,
    /// Positions of packets overtaken by later ones, with the number of those.
    pub overtaken: Vec<(u64, u32)>,
    /// Positions of packets that arrived more than once, with the number of extra copies.
    pub copied: Vec<(u64, u32)>,
    /// Positions of delayed packets, with the delay in excess of the smallest.
    pub delayed: Vec<(u64, Span)>,
    /// Packets that the capture lacks although they were acknowledged, and so must have arrived.
    pub uncaptured: u64,
    /// Jumps in sequence numbers too large to be packets. They are ignored.
    pub jumps: u64,
    /// Lost packets that are equal to an arrived one and were sent nearly at the same time. It may be the other one.
    pub uncertain: u64,
    /// Packets in groups of equal packets too large to find the missing ones. They are ignored.
    pub unassigned: u64,
    /// Packets that only the receiver's capture holds. They are ignored.
    pub unsent: u64,
    /// Packets arrived, and none of them was sent: the captures are not of the same packets.
    pub foreign: bool,
    /// Smallest time from sending to arrival in nanoseconds, by two clocks that need not agree. Known if packets arrived
    /// and have times.
    pub least_ns: Option<i128>,
    /// Packets that only the sender's capture holds, from before or after the receiver's capture. They are ignored.
    pub outside: u64,
}

impl Findings {
    /// Adds the findings to a pattern.
    pub fn add_to(&self, direction: Direction, draft: &mut Draft) -> Result<(), PatternRefusal> {
        let lost = self.lost.iter().map(|at| (*at, Effect::Drop));
        let overtaken = self
            .overtaken
            .iter()
            .map(|(at, by)| (*at, Effect::Hold(*by)));
        let copied = self
            .copied
            .iter()
            .map(|(at, more)| (*at, Effect::Copy(*more)));
        let delayed = self
            .delayed
            .iter()
            .map(|(at, delay)| (*at, Effect::Delay(*delay)));
        let all = lost.chain(overtaken).chain(copied).chain(delayed);
        all.into_iter().try_for_each(|(at, effect)| {
            draft.add(PatternEntry {
                direction,
                range: PatternRange::packets(at, at),
                effect,
            })
        })
    }
}

/// The sequence number without wrap-around: the one nearest to `last` that ends in `sequence`.
fn unwrapped(last: u64, sequence: u32) -> u64 {
    let ahead = sequence.wrapping_sub(last as u32);
    match i64::from(ahead as i32) {
        forward if forward >= 0 => last.saturating_add(forward.unsigned_abs()),
        backward => last.saturating_sub(backward.unsigned_abs()),
    }
}

/// The first sequence number of a connection, high enough that no earlier one is below zero.
fn first(sequence: u32) -> u64 {
    (1 << 32) + u64::from(sequence)
}
