//! Observers of the packets of a transaction.

use posthaste_link::{Departure, Direction};
use posthaste_tcp::{EndpointCounters, Segment};
use posthaste_units::Instant;

use crate::Carried;

/// A segment that arrives at a link.
#[derive(Clone, Copy, Debug)]
pub struct OfferedSegment<'a> {
    /// Time of arrival.
    pub at: Instant,
    /// Direction of the link.
    pub direction: Direction,
    /// The segment.
    pub segment: &'a Segment,
    /// Counters of its sender, including this segment.
    pub counters: &'a EndpointCounters,
}

/// Observer of every packet. Costs nothing if unused.
pub trait Witness {
    /// Handles a segment that arrives at a link.
    fn sent(&mut self, sent: OfferedSegment<'_>);
    /// Handles a packet that leaves a link or is lost on it.
    fn left(&mut self, direction: Direction, departure: &Departure<Carried>);
}

/// Observer without any effect.
pub(crate) struct Nobody;

impl Witness for Nobody {
    fn sent(&mut self, _: OfferedSegment<'_>) {}
    fn left(&mut self, _: Direction, _: &Departure<Carried>) {}
}
