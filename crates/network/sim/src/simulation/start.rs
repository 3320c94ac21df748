//! Random start of a transaction.

use posthaste_units::{Instant, Seed};

/// Transactions begin at a random one of 2^33 nanoseconds (8.6 s), because the behaviour of a coarse clock depends on
/// the phase at which a timer is set.
const PHASE_BITS: u32 = 33;

/// Start of a transaction, as drawn from its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnStart {
    /// Time of the first packet.
    pub at: Instant,
    /// The drawn number. Its high bits are the time.
    pub chance: u64,
}

/// Draws the start of the transaction that has this seed.
pub fn drawn_start(seed: Seed) -> DrawnStart {
    let chance = seed.child("begin").0;
    DrawnStart {
        at: Instant::from_nanos(chance >> (u64::BITS - PHASE_BITS)),
        chance,
    }
}
