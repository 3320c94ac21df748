//! Departure of a packet from a link, with its time and its fate.

use posthaste_units::Instant;

/// A packet that has left a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure<P> {
    /// Position among all packets pushed into this link, from 1 as in KauNet.
    pub position: u64,
    /// 0 for the pushed packet, 1 and up for copies made by the link.
    pub copy: u32,
    /// Arrival.
    pub arrived: Instant,
    /// Departure or drop: exact, whenever it is popped.
    pub left: Instant,
    /// Delivered or dropped, with marks or reason.
    pub fate: Fate,
    /// The packet, with flipped bits if delivered.
    pub packet: P,
}

impl<P> Departure<P> {
    /// The same departure with another packet.
    pub(crate) fn map<Q>(self, packet: impl FnOnce(P) -> Q) -> Departure<Q> {
        Departure {
            position: self.position,
            copy: self.copy,
            arrived: self.arrived,
            left: self.left,
            fate: self.fate,
            packet: packet(self.packet),
        }
    }
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Delivered to the other end.
    Delivered(DeliveryMarks),
    /// Dropped by the link.
    Dropped(DropReason),
}

/// Impairments of a delivered packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryMarks {
    /// Number of flipped bits.
    pub flipped: u32,
    /// It left before an earlier packet.
    pub overtook: bool,
    /// It was held back until later packets had left.
    pub held: bool,
    /// The queue marked it: congestion experienced.
    pub congested: bool,
}

/// Reason of a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// Dropped by the pattern.
    Pattern,
    /// Arrived during an outage.
    Outage,
    /// Drawn by the loss model.
    Random,
    /// The queue was full on arrival.
    QueueFull,
    /// The oldest in a full queue that makes room for new packets.
    PushedOut,
    /// Dropped by CoDel because packets had been waiting too long.
    CoDel,
    /// Longer than the MTU behind the link, and not to be fragmented.
    TooBig,
}

impl DropReason {
    /// All reasons.
    pub const ALL: [Self; 7] = [
        Self::Pattern,
        Self::Outage,
        Self::Random,
        Self::QueueFull,
        Self::PushedOut,
        Self::CoDel,
        Self::TooBig,
    ];

    /// Name in traces and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pattern => "pattern",
            Self::Outage => "outage",
            Self::Random => "random",
            Self::QueueFull => "queue-full",
            Self::PushedOut => "pushed-out",
            Self::CoDel => "codel",
            Self::TooBig => "too-big",
        }
    }
}
