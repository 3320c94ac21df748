//! Who watches the packets.

use posthaste_link::{Direction, Passage};
use posthaste_tcp::{Counters, Segment};
use posthaste_units::Instant;

use crate::Carried;

/// A segment that comes to a link.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// When.
    pub at: Instant,
    /// To which.
    pub direction: Direction,
    /// The segment.
    pub segment: &'a Segment,
    /// What its sender has counted, this segment included.
    pub counters: &'a Counters,
}

/// Is told of every packet; costs nothing where nobody is.
pub trait Witness {
    /// A segment comes to a link.
    fn sent(&mut self, sent: Sent<'_>);
    /// A packet leaves a link or is lost on it.
    fn left(&mut self, direction: Direction, passage: &Passage<Carried>);
}

/// Nobody.
pub(crate) struct Nobody;

impl Witness for Nobody {
    fn sent(&mut self, _: Sent<'_>) {}
    fn left(&mut self, _: Direction, _: &Passage<Carried>) {}
}
