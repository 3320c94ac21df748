//! Ends, TCP numbers and mark of an IP packet, also of one whose end was not captured.
//!
//! Lengths come from the headers. Fragments have no ports, as on the emulated link ([`flow`](crate::flow)): only the
//! first one carries them.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::net::IpAddr;
use std::ops::Range;

use etherparse::LaxIpSlice;
use posthaste_link::pattern::infer::{ObservedSegment, PacketMark};

/// Bytes of a packet's content that enter its mark: the longest TCP header. A capture of 128 bytes holds them.
const MARKED: usize = 60;
/// Bytes of the content in the part of the mark that every capture should hold: a TCP header, and any other.
const TCP_HEADER: usize = 20;
const OTHER_HEADER: usize = 8;
/// Bytes of a TCP header up to its flags.
const TCP_NUMBERS: usize = 14;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP_V6: u8 = 58;
/// Protocols whose first four bytes are the two ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [TCP, UDP, 33, 132, 136];
/// IPv6 extension headers.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// Address and port. The port is 0 in fragments and in protocols without ports.
pub(super) type End = (IpAddr, u16);

/// Ends and content of an IP packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecodedPacket {
    pub source: End,
    pub destination: End,
    pub protocol: u8,
    /// Length of the IP packet according to its header.
    pub length: usize,
    pub segment: Option<ObservedSegment>,
    pub opens: Opens,
    /// Another packet that this one belongs to.
    pub related: Option<RelatedPacket>,
    pub mark: PacketMark,
    pub is_fragment: bool,
    /// The TCP numbers were not captured.
    pub is_cut: bool,
}

/// Evidence in a packet of the end that opened the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opens {
    Nothing,
    /// The SYN, with its sequence number.
    ByClient(u32),
    /// The answer to the SYN with this sequence number.
    ByServer(u32),
}

/// A packet with ports that shows the direction of one without.
#[derive(Clone, Copy, Debug)]
pub(super) struct RelatedPacket {
    pub source: End,
    pub destination: End,
    pub protocol: u8,
    /// It travelled in the other direction: an ICMP error answers it.
    pub is_reverse: bool,
}

/// Reads the IP packet at the beginning of these bytes. `None` if its IP header is cut or damaged.
pub(super) fn decode(bytes: &[u8]) -> Option<DecodedPacket> {
    let headers = IpHeaders::read(bytes)?;
    let content = headers.content;
    let protocol = headers.protocol;
    let has_ports = WITH_PORTS.contains(&protocol) && !headers.is_later_fragment();
    let ports = has_ports.then(|| ports(content)).flatten();
    let (source, destination) = headers.ends;
    let with_ports = |(from, to): (u16, u16)| RelatedPacket {
        source: (source, from),
        destination: (destination, to),
        protocol,
        is_reverse: false,
    };
    let is_fragment = headers.fragment.is_some();
    let related = match ports {
        Some(ports) if is_fragment => Some(with_ports(ports)),
        _ => quoted(protocol, content),
    };
    let (from, to) = ports.filter(|_| !is_fragment).unwrap_or_default();
    let is_tcp = protocol == TCP && !is_fragment;
    let tcp = is_tcp
        .then(|| tcp(content, headers.content_length()))
        .flatten();
    Some(DecodedPacket {
        source: (source, from),
        destination: (destination, to),
        protocol,
        length: headers.length,
        segment: tcp.map(|(segment, _)| segment),
        opens: tcp.map_or(Opens::Nothing, |(_, opens)| opens),
        related,
        mark: headers.mark(((source, from), (destination, to))),
        is_fragment,
        is_cut: is_tcp && tcp.is_none(),
    })
}

/// The IP headers of a packet.
struct IpHeaders<'a> {
    ends: (IpAddr, IpAddr),
    protocol: u8,
    /// Length of the packet according to its header.
    length: usize,
    id: u16,
    /// Identification and offset of a fragment.
    fragment: Option<(u32, u16)>,
    /// Captured bytes behind the headers.
    content: &'a [u8],
    /// Bytes before the content.
    header: usize,
}

impl<'a> IpHeaders<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (ip, _) = LaxIpSlice::from_slice(bytes).ok()?;
        let (length, id, fragment) = match &ip {
            LaxIpSlice::Ipv4(ip) => {
                let header = ip.header();
                let offset = header.fragments_offset().value();
                let id = header.identification();
                let fragment = ip
                    .is_payload_fragmented()
                    .then_some((u32::from(id), offset));
                (usize::from(header.total_len()), id, fragment)
            }
            LaxIpSlice::Ipv6(ip) => {
                let extensions = ip.extensions();
                let first = extensions.first_header().map(|number| number.0);
                let fragment = first.and_then(|first| fragment_header(first, extensions.slice()));
                let fragment = fragment.filter(|_| ip.is_payload_fragmented());
                match usize::from(ip.header().payload_length()) {
                    0 => (0, 0, fragment),
                    length => (length + 40, 0, fragment),
                }
            }
        };
        // Offloading may omit the length. The captured bytes are then the only evidence.
        let length = if length == 0 { bytes.len() } else { length };
        let content = ip.payload().payload;
        let header = length.min(bytes.len()).checked_sub(content.len())?;
        Some(Self {
            ends: (ip.source_addr(), ip.destination_addr()),
            protocol: ip.payload().ip_number.0,
            length,
            id,
            fragment,
            content,
            header,
        })
    }

    fn is_later_fragment(&self) -> bool {
        self.fragment.is_some_and(|(_, offset)| offset > 0)
    }

    fn content_length(&self) -> usize {
        self.length - self.header
    }

    fn mark(&self, ends: (End, End)) -> PacketMark {
        // A checksum may be filled in after the sender's capture.
        let checksum = match self.protocol {
            _ if self.is_later_fragment() => 0..0,
            TCP => 16..18,
            UDP => 6..8,
            _ => 0..0,
        };
        let least = if self.protocol == TCP {
            TCP_HEADER
        } else {
            OTHER_HEADER
        };
        let mut hasher = DefaultHasher::new();
        (ends, self.protocol, self.length, self.fragment).hash(&mut hasher);
        // Routers of tunnels lower the maximum segment size of a SYN.
        let size = if self.protocol == TCP && !self.is_later_fragment() {
            segment_size(self.content)
        } else {
            0..0
        };
        let captured = self.content.iter().enumerate();
        let mut marked = captured
            .filter(|(index, _)| !checksum.contains(index) && !size.contains(index))
            .peekable();
        while let Some((_, byte)) = marked.next_if(|(index, _)| *index < least) {
            byte.hash(&mut hasher);
        }
        let headers = hasher.finish();
        while let Some((_, byte)) = marked.next_if(|(index, _)| *index < MARKED) {
            byte.hash(&mut hasher);
        }
        let is_whole = self.content.len() >= MARKED.min(self.content_length());
        PacketMark {
            headers,
            content: is_whole.then(|| hasher.finish()),
            id: self.id,
        }
    }
}

/// Bytes of the value of the option Maximum Segment Size in a TCP segment (RFC 9293, section 3.2). Empty without one.
fn segment_size(segment: &[u8]) -> Range<usize> {
    let header = segment.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    let mut at = 20;
    while at < header {
        match (segment.get(at), segment.get(at + 1)) {
            (Some(1), _) => at += 1,
            (Some(2), Some(4)) => return at + 2..at + 4,
            (Some(kind), Some(length)) if *kind != 0 && *length >= 2 => at += usize::from(*length),
            _ => break,
        }
    }
    0..0
}

/// Identification and offset in the fragment header among IPv6 extension headers (RFC 8200, section 4), the first of
/// which has this number. They may be cut, which the iterator of etherparse 0.21 does not allow for.
fn fragment_header(first: u8, headers: &[u8]) -> Option<(u32, u16)> {
    let (mut number, mut rest) = (first, headers);
    loop {
        let length = usize::from(*rest.get(1)?);
        match (number, rest) {
            (FRAGMENT, [_, _, a, b, id @ ..]) => {
                let id = u32::from_be_bytes(*id.first_chunk()?);
                return Some((id, u16::from_be_bytes([*a, *b]) >> 3));
            }
            (AUTHENTICATION, _) => (number, rest) = (rest[0], rest.get((length + 2) * 4..)?),
            (HOP_BY_HOP | ROUTING | DESTINATION, _) => {
                (number, rest) = (rest[0], rest.get((length + 1) * 8..)?);
            }
            _ => return None,
        }
    }
}

fn ports(content: &[u8]) -> Option<(u16, u16)> {
    let [a, b, c, d, ..] = content else {
        return None;
    };
    Some((u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])))
}

/// Reads the first part of a TCP header. `length` is that of the segment with its header.
fn tcp(content: &[u8], length: usize) -> Option<(ObservedSegment, Opens)> {
    let header = content.first_chunk::<TCP_NUMBERS>()?;
    let number = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let flags = header[13];
    let is_set = |flag: u8| flags & flag != 0;
    let payload = length.saturating_sub(usize::from(header[12] >> 4) * 4);
    let segment = ObservedSegment {
        sequence: number(4),
        length: u32::try_from(payload)
            .unwrap_or(u32::MAX)
            .saturating_add(u32::from(is_set(SYN)) + u32::from(is_set(FIN))),
        acknowledges: is_set(ACK).then(|| number(8)),
    };
    let opens = match (is_set(SYN), is_set(ACK)) {
        (true, false) => Opens::ByClient(segment.sequence),
        (true, true) => Opens::ByServer(number(8).wrapping_sub(1)),
        _ => Opens::Nothing,
    };
    Some((segment, opens))
}

/// The packet that an ICMP error quotes (RFC 792; RFC 4443, section 3).
fn quoted(protocol: u8, content: &[u8]) -> Option<RelatedPacket> {
    let kind = *content.first()?;
    let is_error = match protocol {
        ICMP => matches!(kind, 3 | 4 | 5 | 11 | 12),
        ICMP_V6 => kind < 128,
        _ => false,
    };
    if !is_error {
        return None;
    }
    let headers = IpHeaders::read(content.get(8..)?)?;
    let has_ports = WITH_PORTS.contains(&headers.protocol) && !headers.is_later_fragment();
    let (from, to) = has_ports.then(|| ports(headers.content)).flatten()?;
    Some(RelatedPacket {
        source: (headers.ends.0, from),
        destination: (headers.ends.1, to),
        protocol: headers.protocol,
        is_reverse: true,
    })
}
