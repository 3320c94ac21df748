//! Kinds of packets: TCP segments, and packets with less detail.

use std::fmt;

use posthaste_link::quic::QuicDatagram;
use posthaste_tcp::trace::SegmentKind;

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketKind {
    /// A TCP segment.
    Segment(SegmentKind),
    /// A UDP datagram with QUIC packets.
    Quic(QuicDatagram),
    /// Another UDP datagram.
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

/// The name in traces. That of a QUIC datagram lists its packets: `Initial+Handshake`.
impl fmt::Display for PacketKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Segment(kind) => f.write_str(kind.name()),
            Self::Quic(datagram) => datagram.fmt(f),
            Self::Udp => f.write_str("udp"),
            Self::Icmp => f.write_str("icmp"),
            Self::Fragment => f.write_str("fragment"),
            Self::Other => f.write_str("other"),
            Self::Unreadable => f.write_str("unreadable"),
        }
    }
}
