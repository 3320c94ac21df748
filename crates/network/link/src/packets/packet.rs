//! Interface between a link and its packets.

use std::fmt;
use std::str::FromStr;

use posthaste_units::Dscp;

use crate::{Ecn, SpellingError};

/// An item that passes through a link.
pub trait Packet: Clone {
    /// Length of the IP packet in bytes. The link adds its own [overhead](crate::Plan::overhead).
    fn bytes(&self) -> u32;
    /// Flips one bit. Bit 0 is the most significant bit of the first byte of the IP packet. `bit` is never beyond the
    /// end.
    fn flip(&mut self, bit: u32);
    /// Code point, which selects the traffic class.
    fn dscp(&self) -> Dscp {
        Dscp::DEFAULT
    }
    /// Congestion notification, which decides between a mark and a drop.
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    /// Marks an ECN-capable packet: congestion experienced.
    fn mark_congestion(&mut self) {}
    /// False if a router must drop the packet where it is too long.
    fn may_be_fragmented(&self) -> bool {
        true
    }
}

/// An IP packet as bytes.
impl Packet for Vec<u8> {
    fn bytes(&self) -> u32 {
        u32::try_from(self.len()).unwrap_or(u32::MAX)
    }

    fn flip(&mut self, bit: u32) {
        if let Some(byte) = self.get_mut(bit as usize / 8) {
            *byte ^= 0x80 >> (bit % 8);
        }
    }

    fn dscp(&self) -> Dscp {
        Dscp::of_traffic_class(traffic_class(self))
    }

    fn ecn(&self) -> Ecn {
        Ecn::in_traffic_class(traffic_class(self))
    }

    /// In IPv4 without the flag Don't Fragment (RFC 791, section 3.1).
    fn may_be_fragmented(&self) -> bool {
        match self.as_slice() {
            [first, _, _, _, _, _, flags, ..] => first >> 4 == 4 && flags & 0x40 == 0,
            _ => true,
        }
    }

    /// Sets both bits, and updates the checksum of IPv4 (RFC 1624, equation 3).
    fn mark_congestion(&mut self) {
        match self.as_mut_slice() {
            [first, second, ..] if *first >> 4 == 6 => *second |= Ecn::Ce.bits() << 4,
            [first, second, rest @ ..] => {
                let before = u16::from_be_bytes([*first, *second]);
                *second |= Ecn::Ce.bits();
                let after = u16::from_be_bytes([*first, *second]);
                if let Some([high, low]) = rest.get_mut(8..10) {
                    let sum = u16::from_be_bytes([*high, *low]);
                    [*high, *low] = updated_checksum(sum, before, after).to_be_bytes();
                }
            }
            _ => {}
        }
    }
}

/// The second byte in IPv4, or bits 4 to 11 in IPv6.
fn traffic_class(packet: &[u8]) -> u8 {
    match packet {
        [first, second, ..] if first >> 4 == 6 => (first << 4) | (second >> 4),
        [_, second, ..] => *second,
        _ => 0,
    }
}

/// A checksum after a change of one of its 16-bit words (RFC 1624, equation 3).
pub fn updated_checksum(sum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!sum) + u32::from(!before) + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// Direction of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Client to server.
    Up,
    /// Server to client.
    Down,
}

impl Direction {
    /// Both directions, up first.
    pub const BOTH: [Self; 2] = [Self::Up, Self::Down];

    /// `up` or `down`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }

    /// The opposite direction.
    pub const fn reverse(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Direction {
    type Err = SpellingError;

    fn from_str(text: &str) -> Result<Self, SpellingError> {
        Self::BOTH
            .into_iter()
            .find(|direction| direction.name() == text)
            .ok_or_else(|| SpellingError::new(text, "a direction", "up or down"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sum of the words of a header, which is 0xffff if its checksum is right (RFC 1071).
    fn sum(header: &[u8]) -> u16 {
        let pairs = header
            .chunks(2)
            .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum = pairs.sum::<u32>();
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    #[test]
    fn a_mark_keeps_the_checksum_of_ipv4_right() {
        for (tos, id) in (0..=255).flat_map(|tos| [0, 1, 0x1234, 0xffff].map(|id: u16| (tos, id))) {
            let [high, low] = id.to_be_bytes();
            let mut packet = vec![
                0x45, tos, 0, 40, high, low, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
            ];
            let checksum = !sum(&packet);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            packet.mark_congestion();
            assert_eq!((sum(&packet), packet[1]), (0xffff, tos | 3));
            assert_eq!(packet.ecn(), Ecn::Ce);
        }
    }

    #[test]
    fn a_mark_is_in_the_traffic_class_of_ipv6() {
        let mut packet = vec![0x6b, 0x8f, 0xff, 0xff];
        assert_eq!((packet.dscp(), packet.ecn()), (Dscp::EF, Ecn::NotEct));
        packet.mark_congestion();
        assert_eq!(packet, [0x6b, 0xbf, 0xff, 0xff]);
        assert_eq!((packet.dscp(), packet.ecn()), (Dscp::EF, Ecn::Ce));
    }

    #[test]
    fn bytes_that_are_no_packet_are_not_touched_beyond_their_end() {
        for length in 0..12 {
            let mut packet = vec![0x45; length];
            packet.mark_congestion();
            assert_eq!(packet.len(), length);
        }
    }
}
