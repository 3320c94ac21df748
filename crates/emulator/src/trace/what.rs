//! What a packet was: a segment of TCP, or one of which less is told.

use posthaste_tcp::trace::Kind;

/// What a packet was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// A segment of TCP.
    Segment(Kind),
    /// A datagram.
    Udp,
    /// A message of ICMP or ICMPv6.
    Icmp,
    /// A part of a larger packet.
    Fragment,
    /// Of another protocol.
    Other,
    /// Its header cannot be read, or was damaged by the link so that it does not fit.
    Unreadable,
}

impl What {
    /// The name in traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Segment(kind) => kind.name(),
            Self::Udp => "udp",
            Self::Icmp => "icmp",
            Self::Fragment => "fragment",
            Self::Other => "other",
            Self::Unreadable => "unreadable",
        }
    }
}
