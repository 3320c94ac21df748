//! The message of a router to the sender of a packet that is too long for its next link: "fragmentation needed" of ICMP
//! (RFC 792, with the MTU of RFC 1191, section 4) and "packet too big" of ICMPv6 (RFC 4443, section 3.2).
//!
//! The packet's destination is the source of the message, because the emulated router has no address of its own. Linux
//! accepts it from any address. As in Linux (`icmpv4_mask_allow`, `icmpv6_mask_allow`), no rate limits these messages.

use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::{Icmpv4Type, Icmpv6Type, IpSlice, PacketBuilder};

/// Maximum number of bytes of a message (RFC 1812, section 4.3.2.3; RFC 4443, section 2.4 c).
const LONGEST: [usize; 2] = [576, 1280];
/// Bytes of the headers of a message in front of the packet that it quotes.
const HEADERS: [usize; 2] = [20 + 8, 40 + 8];
/// IP protocol numbers.
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// Hops that a message may take.
const HOPS: u8 = 64;

/// The message about an IP packet that does not fit `mtu`. `None` if none may be sent: about a fragment of IPv4 that is
/// not the first, or about a message of ICMP that is no question (RFC 1122, section 3.2.2; RFC 4443, section 2.4 e). A
/// fragment of ICMPv6 may be part of either, and gets none.
pub(crate) fn message(packet: &[u8], mtu: u32) -> Option<Vec<u8>> {
    let ip = IpSlice::from_slice(packet).ok()?;
    let payload = ip.payload();
    let first = payload.payload.first().copied();
    let protocol = payload.ip_number.0;
    let is_error = match (protocol, first) {
        (ICMP, Some(kind)) => !matches!(kind, 0 | 8 | 13 | 14),
        (ICMPV6, Some(_)) if ip.is_fragmenting_payload() => true,
        (ICMPV6, Some(kind)) => kind < 128,
        (ICMP | ICMPV6, None) => true,
        _ => false,
    };
    let is_later_fragment =
        matches!(&ip, IpSlice::Ipv4(v4) if v4.header().fragments_offset().value() > 0);
    if is_error || is_later_fragment {
        return None;
    }
    let family = usize::from(matches!(ip, IpSlice::Ipv6(_)));
    let quoted = &packet[..packet.len().min(LONGEST[family] - HEADERS[family])];
    let mut message = Vec::with_capacity(LONGEST[family]);
    let written = match &ip {
        IpSlice::Ipv4(v4) => {
            let header = v4.header();
            let next_hop_mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
            let kind = DestUnreachableHeader::FragmentationNeeded { next_hop_mtu };
            PacketBuilder::ipv4(header.destination(), header.source(), HOPS)
                .icmpv4(Icmpv4Type::DestinationUnreachable(kind))
                .write(&mut message, quoted)
        }
        IpSlice::Ipv6(v6) => {
            let header = v6.header();
            PacketBuilder::ipv6(header.destination(), header.source(), HOPS)
                .icmpv6(Icmpv6Type::PacketTooBig { mtu })
                .write(&mut message, quoted)
        }
    };
    written.ok().map(|()| message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(v6: bool) -> Vec<u8> {
        let mut packet = Vec::new();
        let written = if v6 {
            PacketBuilder::ipv6([1; 16], [2; 16], 64)
                .udp(7, 9)
                .write(&mut packet, &[7; 1452])
        } else {
            PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
                .udp(7, 9)
                .write(&mut packet, &[7; 1472])
        };
        written.unwrap();
        packet
    }

    /// Sum of 16-bit words, which is 0xffff if a checksum among them is right (RFC 1071).
    fn sum(bytes: &[u8]) -> u64 {
        let pairs = bytes
            .chunks(2)
            .map(|word| u64::from(word[0]) << 8 | word.get(1).copied().map_or(0, u64::from));
        pairs.sum()
    }

    fn folded(mut sum: u64) -> u64 {
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum
    }

    #[test]
    fn ipv4_gets_fragmentation_needed_with_the_mtu() {
        let packet = udp(false);
        let message = message(&packet, 1400).unwrap();
        assert_eq!(message.len(), 576);
        assert_eq!(
            (message[9], &message[12..20]),
            (1, &[10, 0, 0, 2, 10, 0, 0, 1][..])
        );
        assert_eq!(message[20..22], [3, 4]);
        assert_eq!(
            message[24..28],
            [0, 0, 0x05, 0x78],
            "1400 in the last two bytes"
        );
        assert_eq!(message[28..], packet[..548]);
        assert_eq!(
            (folded(sum(&message[..20])), folded(sum(&message[20..]))),
            (0xffff, 0xffff)
        );
    }

    /// A fragment header (RFC 8200, section 4.5) in front of UDP or ICMPv6.
    #[test]
    fn ipv6_fragments_get_a_message_unless_they_may_be_errors() {
        let fragment = |protocol: u8| {
            let header = [protocol, 0, 0, 1, 0, 0, 0, 7];
            let content = [&header[..], &[7; 1452]].concat();
            let mut packet = vec![0x60, 0, 0, 0];
            packet.extend(1460_u16.to_be_bytes());
            packet.extend([44, 64]);
            packet.extend([[1; 16], [2; 16]].concat());
            packet.extend(content);
            packet
        };
        assert!(message(&fragment(17), 1300).is_some());
        assert_eq!(message(&fragment(58), 1300), None);
    }

    #[test]
    fn ipv6_gets_packet_too_big_with_the_mtu() {
        let packet = udp(true);
        let message = message(&packet, 1300).unwrap();
        assert_eq!(message.len(), 1280);
        assert_eq!(
            (&message[8..24], &message[24..40]),
            (&[2; 16][..], &[1; 16][..])
        );
        assert_eq!(message[40..42], [2, 0]);
        assert_eq!(message[44..48], [0, 0, 0x05, 0x14]);
        assert_eq!(message[48..], packet[..1232]);
        let pseudo = sum(&message[8..40]) + 1240 + 58;
        assert_eq!(folded(pseudo + sum(&message[40..])), 0xffff);
    }

    #[test]
    fn nothing_is_said_about_errors_and_later_fragments() {
        let error = message(&udp(false), 1400).unwrap();
        assert_eq!(message(&error, 1280), None);
        let error = message(&udp(true), 1400).unwrap();
        assert_eq!(message(&error, 1280), None);
        let mut later = udp(false);
        later[6..8].copy_from_slice(&[0x40, 1]);
        assert_eq!(message(&later, 1400), None);
        for length in 0..60 {
            let _ = message(&udp(false)[..length], 1400);
        }
    }
}
