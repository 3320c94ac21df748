//! A packet that has come out of a link: when, and what happened to it.

use posthaste_units::Instant;

/// How a packet came out of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage<P> {
    /// Place among all packets pushed into this link; the first is 1, as in KauNet.
    pub position: u64,
    /// 0 for the packet that was pushed; 1 and up for copies that the link made of it.
    pub copy: u32,
    /// When it arrived.
    pub arrived: Instant,
    /// When it left or was dropped: exact, whenever it was asked for.
    pub left: Instant,
    /// What became of it.
    pub fate: Fate,
    /// The packet, with its flipped bits where it was delivered.
    pub packet: P,
}

impl<P> Passage<P> {
    /// The same passage of another packet.
    pub(crate) fn map<Q>(self, packet: impl FnOnce(P) -> Q) -> Passage<Q> {
        Passage {
            position: self.position,
            copy: self.copy,
            arrived: self.arrived,
            left: self.left,
            fate: self.fate,
            packet: packet(self.packet),
        }
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It reached the other end.
    Delivered(Marks),
    /// It did not.
    Dropped(Reason),
}

/// What a delivered packet has been through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// How many of its bits flipped.
    pub flipped: u32,
    /// It leaves before one that was sent before it.
    pub overtook: bool,
    /// It was made to wait until later ones had gone.
    pub held: bool,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The pattern says so.
    Pattern,
    /// The loss model drew it.
    Random,
    /// It arrived when the queue was full.
    QueueFull,
    /// It was the oldest in a full queue that makes room for new ones.
    PushedOut,
    /// CoDel found that packets had been waiting too long.
    CoDel,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 5] = [
        Self::Pattern,
        Self::Random,
        Self::QueueFull,
        Self::PushedOut,
        Self::CoDel,
    ];

    /// The name in traces and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pattern => "pattern",
            Self::Random => "random",
            Self::QueueFull => "queue-full",
            Self::PushedOut => "pushed-out",
            Self::CoDel => "codel",
        }
    }
}
