//! A segment as it travels: an IPv4 packet by its length.

use posthaste_link as link;
use posthaste_tcp::Segment;

/// Bytes of an IPv4 header (RFC 791, section 3.1).
const IP: u32 = 20;

/// A segment on a link.
///
/// Its bytes are not there, so that a bit that flips damages it as a whole: whoever receives it finds
/// a wrong checksum, of TCP or of IP, and throws it away. Two flips that a checksum misses are
/// not simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// What it carries.
    pub segment: Segment,
    /// Whether a bit of it has flipped.
    pub damaged: bool,
    bytes: u32,
}

impl Carried {
    /// A packet around `segment`.
    pub(crate) fn new(segment: Segment) -> Self {
        Self {
            segment,
            damaged: false,
            bytes: IP + segment.header_bytes() + segment.len,
        }
    }
}

impl link::Packet for Carried {
    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn flip(&mut self, _bit: u32) {
        self.damaged = true;
    }
}
