//! Kinds of packets: TCP segments, and packets with less detail.

use posthaste_tcp::trace::SegmentKind;

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketKind {
    /// A TCP segment.
    Segment(SegmentKind),
    /// A UDP datagram.
    Udp,
    /// An ICMP or ICMPv6 message.
    Icmp,
    /// A fragment of a packet.
    Fragment,
    /// Another protocol.
    Other,
    /// An unreadable header, or one that the link damaged so that it no longer fits the connection.
    Unreadable,
}

impl PacketKind {
    /// Name in traces.
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
