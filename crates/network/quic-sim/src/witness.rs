//! Observers of the datagrams of a transaction.

use posthaste_link::{Departure, Direction};
use posthaste_units::Instant;

use crate::{CarriedDatagram, Frames, SentCause};

/// A datagram that arrives at a link.
#[derive(Clone, Copy, Debug)]
pub struct OfferedDatagram<'a> {
    /// Time of arrival.
    pub at: Instant,
    /// Direction of the link.
    pub direction: Direction,
    /// The datagram.
    pub datagram: &'a CarriedDatagram,
    /// Types of its frames, as far as known.
    pub frames: Frames,
    /// Cause of the transmission.
    pub cause: SentCause,
}

/// Observer of every datagram.
pub trait DatagramWitness {
    /// Handles a datagram that arrives at a link.
    fn sent(&mut self, sent: OfferedDatagram<'_>);
    /// Handles a datagram that leaves a link or is lost on it.
    fn left(&mut self, direction: Direction, departure: &Departure<CarriedDatagram>);
}

/// Observer without any effect.
pub(crate) struct Nobody;

impl DatagramWitness for Nobody {
    fn sent(&mut self, _: OfferedDatagram<'_>) {}
    fn left(&mut self, _: Direction, _: &Departure<CarriedDatagram>) {}
}
