//! Assigns packets to connections, and rejects some packets for named reasons.
//!
//! A connection is identified by protocol and by address and port of both ends, the client's end first, so that both
//! directions agree. No state is kept between packets. Later fragments carry no ports, so the ports of the first are
//! not used either: all fragments between two hosts share the link of their protocol. The link keeps the state of
//! connections.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use etherparse::{IpSlice, TcpHeaderSlice};
use posthaste_link::Direction;
use posthaste_tcp::wire::SegmentRoute;

/// Bytes of the Ethernet header in front of each packet.
pub(crate) const ETHERNET: usize = 14;

/// EtherType values.
const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: [u16; 2] = [0x8100, 0x88a8];

/// Protocols whose first four bytes are the two ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// A connection, or its equivalent in a protocol without connections.
///
/// Ports are zero for ICMP and other protocols without ports, and for fragments. Those share one link between two
/// addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flow {
    /// IP protocol number: 6 for TCP, 17 for UDP, 1 for ICMP, 58 for ICMPv6.
    pub protocol: u8,
    /// The end on the client's side.
    pub client: SocketAddr,
    /// The end on the server's side.
    pub server: SocketAddr,
}

impl Flow {
    /// IP protocol number of TCP.
    pub(crate) const TCP: u8 = 6;

    /// Messages between the two addresses, in the ICMP of their IP version.
    pub(crate) fn of_icmp(client: IpAddr, server: IpAddr) -> Self {
        Self {
            protocol: if client.is_ipv4() { 1 } else { 58 },
            client: end(client, 0),
            server: end(server, 0),
        }
    }

    /// The TCP connection of a segment that travels in `direction`.
    pub(crate) fn of_tcp(route: &SegmentRoute, direction: Direction) -> Self {
        let (client, server) = match direction {
            Direction::Up => (route.from(), route.to()),
            Direction::Down => (route.to(), route.from()),
        };
        Self {
            protocol: Self::TCP,
            client,
            server,
        }
    }
}

/// Initial sequence number of an IP packet of `flow` that opens a TCP connection (a SYN without ACK).
pub(crate) fn opening(flow: &Flow, packet: &[u8]) -> Option<u32> {
    if flow.protocol != Flow::TCP || flow.client.port() == 0 {
        return None;
    }
    let ip = IpSlice::from_slice(packet).ok()?;
    let tcp = TcpHeaderSlice::from_slice(ip.payload().payload).ok()?;
    let opens = tcp.syn() && !tcp.ack() && !tcp.rst();
    opens.then(|| tcp.sequence_number())
}

/// A packet that may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Connection of the packet.
    pub flow: Flow,
    /// Bytes of the IP packet. The rest of the frame is padding.
    pub length: usize,
}

/// Reason to reject a frame. None of them occurs in a host as it is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameRefusal {
    /// A request for a hardware address. The neighbours are known, so none is needed.
    Arp,
    /// To a group or to all. There is only one other host.
    Multicast,
    /// A frame with a VLAN tag.
    Vlan,
    /// Neither IPv4 nor IPv6.
    Protocol,
    /// Longer than [`MTU`](crate::MTU): a jumbo frame, or unsplit segments (GSO left on).
    Oversized,
    /// Without its checksum, left to a device to add (offload left on).
    Unsummed,
    /// Headers that contradict themselves or the frame's length.
    Malformed,
}

impl FrameRefusal {
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; 7] = [
        Self::Arp,
        Self::Multicast,
        Self::Vlan,
        Self::Protocol,
        Self::Oversized,
        Self::Unsummed,
        Self::Malformed,
    ];

    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arp => "arp",
            Self::Multicast => "multicast",
            Self::Vlan => "vlan",
            Self::Protocol => "not-ip",
            Self::Oversized => "oversized",
            Self::Unsummed => "no-checksum",
            Self::Malformed => "malformed",
        }
    }

    /// Instruction for the user that avoids this reason.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Arp => "name the neighbour: ip neigh add",
            Self::Multicast => "address the other end itself",
            Self::Vlan => "send without a tag",
            Self::Protocol => "send IPv4 or IPv6",
            Self::Oversized => "keep the device's MTU at 1500 and gso, tso off (ethtool -K)",
            Self::Unsummed => "keep tx off (ethtool -K)",
            Self::Malformed => "look at the sender",
        }
    }
}

/// Reads an Ethernet frame that travels in `direction`. Never panics, for any bytes.
pub fn admit(frame: &[u8], direction: Direction) -> Result<Admitted, FrameRefusal> {
    let Some((header, packet)) = frame.split_at_checked(ETHERNET) else {
        return Err(FrameRefusal::Malformed);
    };
    let kind = u16::from_be_bytes([header[12], header[13]]);
    if VLAN.contains(&kind) {
        return Err(FrameRefusal::Vlan);
    } else if kind == ARP {
        return Err(FrameRefusal::Arp);
    } else if kind != IPV4 && kind != IPV6 {
        return Err(FrameRefusal::Protocol);
    } else if header[0] & 1 == 1 {
        return Err(FrameRefusal::Multicast);
    }
    // The length in the header counts. Padding after it could be taken for a part of the packet.
    let length = match packet {
        [_, _, a, b, ..] if kind == IPV4 => usize::from(u16::from_be_bytes([*a, *b])),
        [_, _, _, _, a, b, ..] => 40 + usize::from(u16::from_be_bytes([*a, *b])),
        _ => return Err(FrameRefusal::Malformed),
    };
    if length > crate::MTU as usize {
        return Err(FrameRefusal::Oversized);
    }
    let packet = packet.get(..length).ok_or(FrameRefusal::Malformed)?;
    let ip = IpSlice::from_slice(packet).map_err(|_| FrameRefusal::Malformed)?;
    if matches!(ip, IpSlice::Ipv4(_)) != (kind == IPV4) {
        return Err(FrameRefusal::Malformed);
    }
    let protocol = ip.payload_ip_number().0;
    let ports = if ip.is_fragmenting_payload() || !WITH_PORTS.contains(&protocol) {
        (0, 0)
    } else {
        match ip.payload().payload {
            [a, b, c, d, ..] => (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])),
            _ => return Err(FrameRefusal::Malformed),
        }
    };
    let source = end(ip.source_addr(), ports.0);
    let destination = end(ip.destination_addr(), ports.1);
    let (client, server) = match direction {
        Direction::Up => (source, destination),
        Direction::Down => (destination, source),
    };
    let flow = Flow {
        protocol,
        client,
        server,
    };
    debug_assert!(
        ETHERNET + length <= frame.len(),
        "an admitted packet is longer than its frame"
    );
    Ok(Admitted { flow, length })
}

fn end(address: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(address, port)
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.protocol {
            1 => "icmp",
            6 => "tcp",
            17 => "udp",
            58 => "icmpv6",
            other => return write!(f, "{other} {} {}", self.client, self.server),
        };
        write!(f, "{name} {} {}", self.client, self.server)
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{Ipv4Header, Ipv6FragmentHeader, Ipv6Header, PacketBuilder, ip_number};

    const MACS: ([u8; 6], [u8; 6]) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);

    fn ethernet(kind: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = [MACS.1, MACS.0].concat();
        frame.extend(kind.to_be_bytes());
        frame.extend(packet);
        frame
    }

    fn udp(payload: usize) -> Vec<u8> {
        let builder = PacketBuilder::ethernet2(MACS.0, MACS.1)
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .udp(4000, 53);
        let mut frame = Vec::new();
        builder.write(&mut frame, &vec![0; payload]).unwrap();
        frame
    }

    #[test]
    fn both_directions_are_one_connection() {
        let up = admit(&udp(100), Direction::Up).unwrap();
        assert_eq!(up.flow.to_string(), "udp 10.0.0.1:4000 10.0.0.2:53");
        assert_eq!(up.length, 128);
        let back = PacketBuilder::ethernet2(MACS.1, MACS.0)
            .ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64)
            .udp(53, 4000);
        let mut frame = Vec::new();
        back.write(&mut frame, &[0; 9]).unwrap();
        let down = admit(&frame, Direction::Down).unwrap();
        assert_eq!(down.flow, up.flow);
    }

    #[test]
    fn padding_is_not_part_of_the_packet() {
        let mut frame = udp(1);
        frame.resize(60, 0);
        assert_eq!(admit(&frame, Direction::Up).unwrap().length, 29);
    }

    #[test]
    fn fragments_keep_together() {
        let fragment = |offset: u16, more: bool, payload: &[u8]| {
            let mut header = Ipv4Header::new(
                payload.len() as u16,
                64,
                ip_number::UDP,
                [10, 0, 0, 1],
                [10, 0, 0, 2],
            )
            .unwrap();
            header.more_fragments = more;
            header.fragment_offset = offset.try_into().unwrap();
            let mut packet = Vec::new();
            header.write(&mut packet).unwrap();
            packet.extend(payload);
            admit(&ethernet(IPV4, &packet), Direction::Up).unwrap().flow
        };
        let first = fragment(0, true, &[1; 1480]);
        assert_eq!(first, fragment(185, false, &[2; 1]));
        assert_eq!((first.client.port(), first.server.port()), (0, 0));
    }

    #[test]
    fn headers_of_ipv6_are_followed_to_the_ports() {
        let v6 = |next, payload: &[u8]| {
            let header = Ipv6Header {
                payload_length: payload.len() as u16,
                next_header: next,
                hop_limit: 64,
                source: [1; 16],
                destination: [2; 16],
                ..Default::default()
            };
            let mut packet = Vec::new();
            header.write(&mut packet).unwrap();
            packet.extend(payload);
            admit(&ethernet(IPV6, &packet), Direction::Up)
        };
        // A hop-by-hop header of eight bytes, then UDP.
        let mut payload = vec![17, 0, 1, 4, 0, 0, 0, 0];
        payload.extend([0x0f, 0xa0, 0, 53, 0, 8, 0, 0]);
        let options = v6(ip_number::IPV6_HEADER_HOP_BY_HOP, &payload).unwrap();
        assert_eq!(
            (options.flow.protocol, options.flow.server.port()),
            (17, 53)
        );
        let header = Ipv6FragmentHeader::new(ip_number::UDP, 0.try_into().unwrap(), true, 7);
        let mut payload = header.to_bytes().to_vec();
        payload.extend([0x0f, 0xa0, 0, 53, 0, 8, 0, 0]);
        let fragment = v6(ip_number::IPV6_FRAGMENTATION_HEADER, &payload).unwrap();
        assert_eq!(
            (fragment.flow.protocol, fragment.flow.server.port()),
            (17, 0)
        );
    }

    #[test]
    fn frames_that_do_not_pass_are_refused_by_name() {
        let refused = |frame: &[u8]| admit(frame, Direction::Up).unwrap_err();
        assert_eq!(refused(&ethernet(ARP, &[0; 28])), FrameRefusal::Arp);
        assert_eq!(refused(&ethernet(0x8100, &[0; 50])), FrameRefusal::Vlan);
        assert_eq!(refused(&ethernet(0x88cc, &[0; 50])), FrameRefusal::Protocol);
        assert_eq!(refused(&udp(1473)), FrameRefusal::Oversized);
        assert!(admit(&udp(1472), Direction::Up).is_ok());
        let mut group = udp(1);
        group[0] |= 1;
        assert_eq!(refused(&group), FrameRefusal::Multicast);
        let whole = udp(40);
        for length in 0..whole.len() {
            assert_eq!(
                refused(&whole[..length]),
                FrameRefusal::Malformed,
                "{length}"
            );
        }
        let mut crossed = udp(40);
        crossed[12..14].copy_from_slice(&IPV6.to_be_bytes());
        assert_eq!(refused(&crossed), FrameRefusal::Malformed);
        let names: std::collections::BTreeSet<_> = FrameRefusal::ALL
            .iter()
            .map(|refusal| refusal.name())
            .collect();
        assert_eq!(names.len(), FrameRefusal::ALL.len());
        for (index, refusal) in FrameRefusal::ALL.iter().enumerate() {
            assert_eq!(*refusal as usize, index);
        }
    }
}
