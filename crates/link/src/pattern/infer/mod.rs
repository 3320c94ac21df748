//! What a network did, read off captures: a pattern that does it again.
//!
//! A capture shows less than people hope. [`Receiver`] sees holes in what arrived, [`Sender`] sees
//! what was sent twice, and [`Pair`] compares both ends packet by packet; each says in its
//! documentation what it takes for what, and counts what it could not tell. Reading files and
//! headers is left to the caller.

mod pair;
mod receiver;
mod sender;

#[cfg(test)]
mod tests;

use posthaste_units::{Instant, Span};

use super::{Draft, Effect, Entry, Place, Refusal};
use crate::Direction;

pub use pair::Pair;
pub use receiver::Receiver;
pub use sender::Sender;

/// A packet in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When it was captured.
    pub at: Instant,
    /// Which way it went.
    pub direction: Direction,
    /// Which connection it belongs to.
    pub connection: u64,
    /// What TCP says in it; `None` for everything else and for fragments.
    pub segment: Option<Segment>,
}

/// What TCP says in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// Sequence numbers it takes: its bytes, one for SYN and one for FIN.
    pub length: u32,
    /// What it acknowledges.
    pub acknowledges: Option<u32>,
}

/// What was found in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Packets by which positions were counted, the lost ones included.
    pub packets: u64,
    /// Positions of lost packets, in order.
    pub lost: Vec<u64>,
    /// Positions of packets that later ones overtook, and how many did.
    pub overtaken: Vec<(u64, u32)>,
    /// Positions of packets that came more than once, and how often more.
    pub copied: Vec<(u64, u32)>,
    /// Positions and delays beyond the smallest.
    pub delayed: Vec<(u64, Span)>,
    /// Packets that must have arrived, since they were acknowledged, and that the capture lacks.
    pub uncaptured: u64,
    /// Jumps in sequence numbers too large to be packets: nothing was made of them.
    pub jumps: u64,
    /// Packets that only the receiver's capture holds: nothing was made of them.
    pub unsent: u64,
    /// Packets that only the sender's capture holds, from before the receiver's began or after it
    /// ended: nothing was made of them.
    pub outside: u64,
}

impl Findings {
    /// Adds what was found to a pattern.
    pub fn add_to(&self, direction: Direction, draft: &mut Draft) -> Result<(), Refusal> {
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
            draft.add(Entry {
                direction,
                place: Place::packets(at, at),
                effect,
            })
        })
    }
}

/// A sequence number that does not wrap: the one nearest to `last` that ends in `sequence`.
fn unwrapped(last: u64, sequence: u32) -> u64 {
    let ahead = sequence.wrapping_sub(last as u32);
    match i64::from(ahead as i32) {
        forward if forward >= 0 => last.saturating_add(forward.unsigned_abs()),
        backward => last.saturating_sub(backward.unsigned_abs()),
    }
}

/// The first sequence number of a connection, high enough that none before it is below zero.
fn first(sequence: u32) -> u64 {
    (1 << 32) + u64::from(sequence)
}
