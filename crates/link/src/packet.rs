//! Interface between a link and its packets.

use std::fmt;
use std::str::FromStr;

use posthaste_units::Dscp;

use crate::SpellingError;

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

    /// From the second byte in IPv4, or bits 4 to 9 in IPv6.
    fn dscp(&self) -> Dscp {
        let byte = match self.as_slice() {
            [first, second, ..] if first >> 4 == 6 => (first << 4) | (second >> 4),
            [_, second, ..] => *second,
            _ => 0,
        };
        Dscp::of_traffic_class(byte)
    }
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
