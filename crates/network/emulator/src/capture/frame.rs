//! The IP packet in a frame, for the link types of hosts and routers.
//!
//! Numbers: the list of link types of tcpdump.org, the EtherTypes of IEEE 802, and RFC 1661 (PPP), RFC 2516 (PPPoE) and
//! RFC 3032 (MPLS).

use pcap_parser::Linktype;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Tags of IEEE 802.1Q, 802.1ad and older equipment.
const VLAN: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
const MPLS: [u16; 2] = [0x8847, 0x8848];
const PPPOE_SESSION: u16 = 0x8864;
/// Smallest EtherType. Smaller numbers are lengths (IEEE 802.3).
const ETHERTYPES: u16 = 0x0600;
/// LLC and SNAP headers before an EtherType.
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];

/// Link types without a name in pcap-parser, or with one for another system.
const RAW_BSD: [i32; 2] = [12, 14];
const PPP: i32 = 9;
const PPP_HDLC: i32 = 50;
const PPP_ETHER: i32 = 51;
const PPP_PPPD: i32 = 166;
const PPP_WITH_DIRECTION: i32 = 204;
const CISCO_HDLC: i32 = 104;
const ENCAPSULATED: i32 = 109;

/// Content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameContent<'a> {
    /// Bytes that begin with an IP header, if they are long enough for one.
    Ip(&'a [u8]),
    /// Another protocol, such as ARP.
    Other,
    /// Cut before its content.
    Short,
    /// An unsupported link type.
    UnknownLink,
}

/// Finds the IP packet in a frame.
pub(super) fn content(link: Linktype, frame: &[u8]) -> FrameContent<'_> {
    let found = match link {
        Linktype::ETHERNET => typed(frame, 12, 14),
        Linktype::LINUX_SLL => typed(frame, 14, 16),
        Linktype::LINUX_SLL2 => typed(frame, 0, 20),
        Linktype(CISCO_HDLC) => typed(frame, 2, 4),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => Some(FrameContent::Ip(frame)),
        Linktype(link) if RAW_BSD.contains(&link) => Some(FrameContent::Ip(frame)),
        Linktype::NULL | Linktype::LOOP => frame.get(4..).map(FrameContent::Ip),
        Linktype(ENCAPSULATED) => frame.get(12..).map(FrameContent::Ip),
        Linktype(PPP | PPP_HDLC) => ppp(frame),
        // The address holds the direction.
        Linktype(PPP_PPPD) => frame.get(2..).and_then(ppp),
        Linktype(PPP_WITH_DIRECTION) => frame.get(1..).and_then(ppp),
        Linktype(PPP_ETHER) => frame.get(6..).and_then(ppp),
        _ => Some(FrameContent::UnknownLink),
    };
    found.unwrap_or(FrameContent::Short)
}

/// Interface in the header of a frame captured with `-i any`; 0 if there is none.
pub(super) fn interface(link: Linktype, frame: &[u8]) -> u32 {
    match (link, frame) {
        (Linktype::LINUX_SLL2, [_, _, _, _, a, b, c, d, ..]) => {
            u32::from_be_bytes([*a, *b, *c, *d])
        }
        _ => 0,
    }
}

/// The content after an EtherType at `at`. `None` if it is cut.
fn typed(frame: &[u8], at: usize, behind: usize) -> Option<FrameContent<'_>> {
    let (mut kind, mut rest) = (number(frame, at)?, frame.get(behind..)?);
    loop {
        match kind {
            IPV4 | IPV6 => return Some(FrameContent::Ip(rest)),
            kind if MPLS.contains(&kind) => return mpls(rest),
            PPPOE_SESSION => return ppp(rest.get(6..)?),
            length if length < ETHERTYPES && rest.starts_with(&SNAP) => {
                (kind, rest) = (number(rest, 6)?, rest.get(8..)?);
            }
            tag if VLAN.contains(&tag) => (kind, rest) = (number(rest, 2)?, rest.get(4..)?),
            _ => return Some(FrameContent::Other),
        }
    }
}

/// The packet below a stack of labels. Its protocol is not stated, and its first bits decide (RFC 4928, section 2).
fn mpls(mut rest: &[u8]) -> Option<FrameContent<'_>> {
    loop {
        let is_last = rest.get(2)? & 1 == 1;
        rest = rest.get(4..)?;
        if is_last {
            return Some(match rest.first()? >> 4 {
                4 | 6 => FrameContent::Ip(rest),
                _ => FrameContent::Other,
            });
        }
    }
}

/// The packet in a PPP frame, with or without address and control, and with a protocol of one or two bytes.
fn ppp(frame: &[u8]) -> Option<FrameContent<'_>> {
    let rest = match frame {
        [0xff, 3, rest @ ..] => rest,
        rest => rest,
    };
    let (protocol, rest) = match rest {
        [one, rest @ ..] if one & 1 == 1 => (u16::from(*one), rest),
        [one, two, rest @ ..] => (u16::from_be_bytes([*one, *two]), rest),
        _ => return None,
    };
    match protocol {
        0x21 | 0x57 => Some(FrameContent::Ip(rest)),
        0x281 | 0x283 => mpls(rest),
        _ => Some(FrameContent::Other),
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    let (high, low) = (bytes.get(at)?, bytes.get(at + 1)?);
    Some(u16::from_be_bytes([*high, *low]))
}
