//! Conversion between segments and IP packets.
//!
//! etherparse handles header fields and checksums. This module reads options itself: like real stacks it skips unknown
//! options, and a malformed option ends the reading without an error for the segment. The endpoint interprets segments.
//! Not supported: reassembly of fragments, urgent data (treated as data), and ECN.

mod options;

use std::net::{IpAddr, SocketAddr};

use etherparse::checksum::Sum16BitWords;
use etherparse::{IpSlice, Ipv4Header, Ipv6Header, TcpHeader, TcpSlice, ip_number};
use thiserror::Error;

use crate::Segment;

/// Initial hop limit of a packet, as in Linux and the BSDs (RFC 1700).
const HOP_LIMIT: u8 = 64;
/// Offset of the checksum in a TCP header (RFC 9293, section 3.1).
const CHECKSUM: usize = 16;

/// Sender and receiver of a segment: both IPv4, or both IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentRoute {
    from: SocketAddr,
    to: SocketAddr,
}

impl SegmentRoute {
    /// Creates a route. None if one end is IPv4 and the other IPv6.
    pub fn new(from: SocketAddr, to: SocketAddr) -> Option<Self> {
        (from.is_ipv4() == to.is_ipv4()).then_some(Self { from, to })
    }

    /// Address of the sender.
    pub const fn from(&self) -> SocketAddr {
        self.from
    }

    /// Address of the receiver.
    pub const fn to(&self) -> SocketAddr {
        self.to
    }

    /// The route with sender and receiver exchanged.
    pub const fn reverse(&self) -> Self {
        Self {
            from: self.to,
            to: self.from,
        }
    }
}

/// Reason for which a packet is not accepted as a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[repr(u8)]
pub enum PacketRefusal {
    /// A protocol other than TCP.
    #[error("not TCP: send another protocol past the endpoint")]
    Protocol,
    /// A fragment of a packet.
    #[error("a fragment: keep packets within the MTU")]
    Fragment,
    /// IP headers that are inconsistent or do not match the packet's length.
    #[error("malformed IP headers: look at the sender")]
    Ip,
    /// A TCP header that is inconsistent or does not match the packet's length.
    #[error("a malformed TCP header: look at the sender")]
    Tcp,
    /// A wrong checksum, of the IPv4 header or of TCP.
    #[error("a wrong checksum: damaged on the way, or sent with checksum offload on")]
    Checksum,
}

impl PacketRefusal {
    /// All refusals, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::Protocol,
        Self::Fragment,
        Self::Ip,
        Self::Tcp,
        Self::Checksum,
    ];

    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Protocol => "not-tcp",
            Self::Fragment => "fragment",
            Self::Ip => "malformed-ip",
            Self::Tcp => "malformed-tcp",
            Self::Checksum => "checksum",
        }
    }
}

/// Reason for which a segment cannot be written as a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unwritable {
    /// Options of more than 40 bytes, the maximum of a header.
    #[error("options of more than 40 bytes: send fewer SACK blocks")]
    Options,
    /// Parity exists only in simulations: its option has no number.
    #[error("parity cannot leave a simulation: choose another remedy")]
    Parity,
    /// The length of the payload differs from that of the segment.
    #[error("{given} bytes for a segment of {needed}")]
    Payload {
        /// Length of the segment.
        needed: u32,
        /// Bytes of the payload.
        given: usize,
    },
    /// More bytes than an IP packet can hold.
    #[error("{0} bytes are too long for a packet: at most 65,535 with all headers")]
    Long(usize),
}

/// A received segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedPacket<'a> {
    /// Sender and receiver.
    pub route: SegmentRoute,
    /// Header and options.
    pub segment: Segment,
    /// Data, [`Segment::len`] bytes.
    pub payload: &'a [u8],
}

/// Reads an IP packet, ignoring padding after it. Never panics for any input.
pub fn read(packet: &[u8]) -> Result<ReceivedPacket<'_>, PacketRefusal> {
    let ip = IpSlice::from_slice(packet).map_err(|_| PacketRefusal::Ip)?;
    if ip.payload_ip_number() != ip_number::TCP {
        return Err(PacketRefusal::Protocol);
    } else if ip.is_fragmenting_payload() {
        return Err(PacketRefusal::Fragment);
    }
    if ip
        .ipv6()
        .is_some_and(|ip| ip.header().payload_length() == 0)
    {
        // Only a jumbogram may omit its length (RFC 2675), and they are not supported.
        return Err(PacketRefusal::Ip);
    }
    let from_ip = ip.payload().payload;
    let tcp = TcpSlice::from_slice(from_ip).map_err(|_| PacketRefusal::Tcp)?;
    let route = SegmentRoute {
        from: SocketAddr::new(ip.source_addr(), tcp.source_port()),
        to: SocketAddr::new(ip.destination_addr(), tcp.destination_port()),
    };
    if !is_whole(&ip, &route, from_ip) {
        return Err(PacketRefusal::Checksum);
    }
    let payload = &from_ip[tcp.header_slice().len()..];
    let segment = Segment {
        seq: tcp.sequence_number(),
        ack: tcp.ack().then(|| tcp.acknowledgment_number()),
        syn: tcp.syn(),
        fin: tcp.fin(),
        rst: tcp.rst(),
        psh: tcp.psh(),
        window: tcp.window_size(),
        options: options::read(tcp.options(), tcp.syn()),
        // An IP packet has at most 65,575 bytes.
        len: payload.len() as u32,
    };
    Ok(ReceivedPacket {
        route,
        segment,
        payload,
    })
}

/// Returns true if both checksums are right: the sum over the received bytes, including the checksum field, is all
/// ones. A sum of zero may be written in either form. Linux writes it as for UDP, 0xffff (`skb_checksum_help`,
/// CSUM_MANGLED_0); a comparison with a computed sum of 0 would fail.
fn is_whole(ip: &IpSlice<'_>, route: &SegmentRoute, tcp: &[u8]) -> bool {
    let header = match ip {
        IpSlice::Ipv4(ip) => Sum16BitWords::new()
            .add_slice(ip.header().slice())
            .ones_complement(),
        IpSlice::Ipv6(_) => 0,
    };
    header == 0 && checksum(route, tcp) == 0
}

/// Writes a segment and its data as an IP packet into `packet`, replacing its content and reusing its memory. The data
/// may have two pieces, as in a ring buffer.
pub fn write(
    packet: &mut Vec<u8>,
    route: &SegmentRoute,
    segment: &Segment,
    payload: [&[u8]; 2],
) -> Result<(), Unwritable> {
    let given = payload[0].len() + payload[1].len();
    if given != segment.len as usize {
        return Err(Unwritable::Payload {
            needed: segment.len,
            given,
        });
    }
    let tcp = header(route, segment)?;
    packet.clear();
    let length = tcp.header_len() + given;
    write_ip(packet, route, length).ok_or(Unwritable::Long(given))?;
    let start = packet.len();
    packet.extend_from_slice(&tcp.to_bytes());
    payload
        .iter()
        .for_each(|piece| packet.extend_from_slice(piece));
    let sum = checksum(route, &packet[start..]).to_be_bytes();
    packet[start + CHECKSUM..start + CHECKSUM + 2].copy_from_slice(&sum);
    Ok(())
}

fn header(route: &SegmentRoute, segment: &Segment) -> Result<TcpHeader, Unwritable> {
    let (from, to) = (route.from.port(), route.to.port());
    let mut tcp = TcpHeader::new(from, to, segment.seq, segment.window);
    tcp.ack = segment.ack.is_some();
    tcp.acknowledgment_number = segment.ack.unwrap_or_default();
    tcp.syn = segment.syn;
    tcp.fin = segment.fin;
    tcp.rst = segment.rst;
    tcp.psh = segment.psh;
    if segment.options.parity.is_some() {
        return Err(Unwritable::Parity);
    }
    tcp.options = options::write(&segment.options).ok_or(Unwritable::Options)?;
    Ok(tcp)
}

/// Writes the IP header for `length` bytes of TCP. None if they are too many.
fn write_ip(packet: &mut Vec<u8>, route: &SegmentRoute, length: usize) -> Option<()> {
    let length = u16::try_from(length).ok()?;
    match (route.from.ip(), route.to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let (from, to) = (from.octets(), to.octets());
            let mut ip = Ipv4Header::new(length, HOP_LIMIT, ip_number::TCP, from, to).ok()?;
            ip.header_checksum = ip.calc_header_checksum();
            packet.extend_from_slice(&ip.to_bytes());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let ip = Ipv6Header {
                payload_length: length,
                next_header: ip_number::TCP,
                hop_limit: HOP_LIMIT,
                source: from.octets(),
                destination: to.octets(),
                ..Ipv6Header::default()
            };
            packet.extend_from_slice(&ip.to_bytes());
        }
        _ => unreachable!("a route has two ends of one version"),
    }
    Some(())
}

/// Checksum over the pseudo-header and a TCP segment (RFC 9293, section 3.1; RFC 8200, section 8.1). With a zero
/// checksum field it is the value of the field. With the right value in the field it is 0.
fn checksum(route: &SegmentRoute, tcp: &[u8]) -> u16 {
    let mut sum = Sum16BitWords::new().add_2bytes([0, ip_number::TCP.0]);
    for address in [route.from.ip(), route.to.ip()] {
        sum = match address {
            IpAddr::V4(address) => sum.add_4bytes(address.octets()),
            IpAddr::V6(address) => sum.add_16bytes(address.octets()),
        };
    }
    sum = sum.add_4bytes((tcp.len() as u32).to_be_bytes());
    sum.add_slice(tcp).ones_complement().to_be()
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;
    use proptest::{array, collection, option};

    use super::*;
    use crate::{Options, Parity, SackBlocks, Timestamps};

    fn route(v6: bool) -> SegmentRoute {
        let [from, to] = if v6 {
            ["[fd00::1]:40000", "[fd00::2]:80"]
        } else {
            ["10.0.0.1:40000", "10.0.0.2:80"]
        };
        let end = |text: &str| text.parse().expect("an address");
        SegmentRoute::new(end(from), end(to)).expect("one version")
    }

    /// One's complement sum as in RFC 1071, over words of two bytes.
    fn plain_sum(parts: &[&[u8]]) -> u16 {
        let mut bytes = parts.concat();
        bytes.resize(bytes.len().next_multiple_of(2), 0);
        let pairs = bytes
            .chunks(2)
            .map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
        let sum = pairs.fold(0, |sum, word| (sum + word) % 0xffff);
        sum as u16
    }

    fn options(syn: bool) -> impl Strategy<Value = Options> {
        let block = array::uniform2(any::<u32>());
        let of_a_syn = (option::of(1u16..), option::of(0u8..=14), any::<bool>());
        let timestamps = option::of((any::<u32>(), any::<u32>()));
        (of_a_syn, timestamps, collection::vec(block, 0..=4)).prop_map(
            move |(of_syn, times, blocks)| {
                let mut sack = SackBlocks::default();
                let room = if times.is_some() { 3 } else { 4 };
                for [start, end] in blocks.into_iter().take(room).filter(|_| !syn) {
                    sack.push(start, end);
                }
                Options {
                    mss: of_syn.0.filter(|_| syn),
                    window_scale: of_syn.1.filter(|_| syn),
                    sack_permitted: of_syn.2 && syn,
                    timestamps: times.map(|(value, echo)| Timestamps { value, echo }),
                    sack,
                    parity: None,
                }
            },
        )
    }

    fn segments() -> impl Strategy<Value = Segment> {
        let flags = array::uniform4(any::<bool>());
        let numbers = (
            any::<u32>(),
            option::of(any::<u32>()),
            any::<u16>(),
            0u32..1500,
        );
        (
            any::<bool>().prop_flat_map(|syn| (Just(syn), options(syn))),
            flags,
            numbers,
        )
            .prop_map(
                |((syn, options), [fin, rst, psh, _], (seq, ack, window, len))| Segment {
                    seq,
                    ack,
                    syn,
                    fin,
                    rst,
                    psh,
                    window,
                    options,
                    len,
                },
            )
    }

    proptest! {
        #[test]
        fn written_packets_are_read_back(
            segment in segments(),
            v6: bool,
            bytes in collection::vec(any::<u8>(), 1500),
            cut in 0usize..1500,
        ) {
            let route = route(v6);
            let payload = &bytes[..segment.len as usize];
            let cut = cut.min(payload.len());
            let mut packet = vec![1; 3];
            write(&mut packet, &route, &segment, [&payload[..cut], &payload[cut..]]).unwrap();
            let ip = if v6 { 40 } else { 20 };
            prop_assert_eq!(packet.len(), ip + (segment.header_bytes() + segment.len) as usize);
            let mut padded = packet.clone();
            padded.resize(packet.len() + 6, 0xaa);
            let expected = ReceivedPacket { route, segment, payload };
            prop_assert_eq!(read(&packet), Ok(expected));
            prop_assert_eq!(read(&padded), Ok(expected));
            // With the checksum included, all covered bytes sum to zero.
            let addresses = if v6 { &packet[8..40] } else { &packet[12..20] };
            let length = (packet.len() - ip) as u16;
            let pseudo = [0, 6, (length >> 8) as u8, length as u8];
            prop_assert_eq!(plain_sum(&[addresses, &pseudo, &packet[ip..]]), 0);
            prop_assert!(v6 || plain_sum(&[&packet[..ip]]) == 0);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }

        /// A packet with one changed byte is refused or, if no checksum covers the byte, unchanged in meaning.
        #[test]
        fn damage_is_seen(segment in segments(), v6: bool, at: proptest::sample::Index, flip in 1u8..) {
            let segment = Segment { len: 0, ..segment };
            let mut packet = Vec::new();
            write(&mut packet, &route(v6), &segment, [&[], &[]]).unwrap();
            let at = at.index(packet.len());
            packet[at] ^= flip;
            let uncovered = v6 && (matches!(at, 1..4 | 7) || at == 0 && flip < 16);
            prop_assert_eq!(read(&packet).is_ok(), uncovered, "byte {}", at);
        }

        /// Headers with a valid checksum and random options.
        #[test]
        fn any_options_are_survived(syn: bool, bytes in collection::vec(any::<u8>(), 0..40)) {
            let mut tcp = TcpHeader::new(1, 2, 3, 4);
            tcp.syn = syn;
            let bytes = &bytes[..bytes.len() / 4 * 4];
            tcp.set_options_raw(bytes).unwrap();
            let packet = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 9).tcp_header(tcp);
            let mut written = Vec::new();
            packet.write(&mut written, b"data").unwrap();
            let received = read(&written).unwrap();
            prop_assert_eq!(received.payload, b"data");
            prop_assert!(received.segment.options.bytes() <= 40);
        }
    }

    /// One's complement has two zeros, and Linux writes the other one.
    #[test]
    fn a_sum_of_nothing_may_be_all_ones() {
        for v6 in [false, true] {
            let mut packet = Vec::new();
            let at = if v6 { 40 } else { 20 } + CHECKSUM;
            let mut segment = Segment::default();
            write(&mut packet, &route(v6), &segment, [&[], &[]]).expect("a packet");
            // A window equal to the missing part of the sum makes the sum zero.
            segment.window = u16::from_be_bytes([packet[at], packet[at + 1]]);
            write(&mut packet, &route(v6), &segment, [&[], &[]]).expect("a packet");
            assert_eq!(packet[at..at + 2], [0, 0]);
            for zero in [[0, 0], [0xff, 0xff]] {
                packet[at..at + 2].copy_from_slice(&zero);
                assert_eq!(read(&packet).map(|received| received.segment), Ok(segment));
            }
        }
    }

    #[test]
    fn the_packets_of_another_writer_are_read() {
        for v6 in [false, true] {
            let start = if v6 {
                PacketBuilder::ipv6([1; 16], [2; 16], 3)
            } else {
                PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 3)
            };
            let mut packet = Vec::new();
            let tcp = start.tcp(7, 8, 9, 10).ack(11).fin().psh().urg(1);
            tcp.write(&mut packet, b"abc").expect("a packet that fits");
            let received = read(&packet).expect("a segment");
            let segment = received.segment;
            assert_eq!((segment.seq, segment.ack, segment.len), (9, Some(11), 3));
            assert!(segment.fin && segment.psh && !segment.syn && !segment.rst);
            assert_eq!(received.route.reverse().to().port(), 7);
        }
    }

    #[test]
    fn invalid_packets_are_refused_by_name() {
        let udp = |payload: &[u8]| {
            let mut packet = Vec::new();
            let builder = PacketBuilder::ipv4([1; 4], [2; 4], 3).udp(1, 2);
            builder
                .write(&mut packet, payload)
                .expect("a packet that fits");
            packet
        };
        let mut good = Vec::new();
        write(&mut good, &route(false), &Segment::default(), [&[], &[]]).expect("a packet");
        let changed = |at: usize, byte: u8| {
            let mut packet = good.clone();
            packet[at] = byte;
            packet
        };
        let cases = [
            (udp(b"x"), PacketRefusal::Protocol),
            (changed(6, 0x20), PacketRefusal::Fragment),
            (changed(32, 0x40), PacketRefusal::Tcp),
            (changed(32, 0xf0), PacketRefusal::Tcp),
            (changed(30, 1), PacketRefusal::Checksum),
            (changed(11, 1), PacketRefusal::Checksum),
            (good[..39].to_vec(), PacketRefusal::Ip),
            (changed(0, 0x55), PacketRefusal::Ip),
            (Vec::new(), PacketRefusal::Ip),
        ];
        for (number, (packet, refusal)) in cases.into_iter().enumerate() {
            assert_eq!(read(&packet), Err(refusal), "case {number}");
        }
        assert!(
            PacketRefusal::ALL
                .iter()
                .enumerate()
                .all(|(at, refusal)| *refusal as usize == at)
        );
    }

    #[test]
    fn impossible_packets_are_not_written() {
        let mut packet = Vec::new();
        let mut written = |len, payload: &[u8]| {
            let segment = Segment {
                len,
                ..Segment::default()
            };
            write(&mut packet, &route(true), &segment, [payload, &[]])
        };
        let too_few = Unwritable::Payload {
            needed: 3,
            given: 2,
        };
        assert_eq!(written(3, b"ab"), Err(too_few));
        assert_eq!(written(70_000, &[0; 70_000]), Err(Unwritable::Long(70_000)));
        let mut parity = Segment::default();
        parity.options.parity = Some(Parity::default());
        let refused = write(&mut packet, &route(true), &parity, [&[], &[]]);
        assert_eq!(refused, Err(Unwritable::Parity));
        let [v4, v6] = [route(false), route(true)];
        assert_eq!(SegmentRoute::new(v4.from(), v6.to()), None);
    }
}
