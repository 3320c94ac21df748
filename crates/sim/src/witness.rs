//! Observers of the packets of a transaction.

use posthaste_link::{Direction, Passage};
use posthaste_tcp::{Counters, Segment};
use posthaste_units::Instant;

use crate::Carried;

/// A segment that arrives at a link.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// Time of arrival.
    pub at: Instant,
    /// Direction of the link.
    pub direction: Direction,
    /// The segment.
    pub segment: &'a Segment,
    /// Counters of its sender, including this segment.
    pub counters: &'a Counters,
}

/// Observer of every packet. Costs nothing if unused.
pub trait Witness {
    /// Handles a segment that arrives at a link.
    fn sent(&mut self, sent: Sent<'_>);
    /// Handles a packet that leaves a link or is lost on it.
    fn left(&mut self, direction: Direction, passage: &Passage<Carried>);
}

/// Observer without any effect.
pub(crate) struct Nobody;

impl Witness for Nobody {
    fn sent(&mut self, _: Sent<'_>) {}
    fn left(&mut self, _: Direction, _: &Passage<Carried>) {}
}
