//! A segment as it travels: an IPv4 packet by its length, and the segments that are on their way.

use posthaste_link as link;
use posthaste_tcp::Segment;

/// Bytes of an IPv4 header (RFC 791, section 3.1).
const IP: u32 = 20;

/// A segment on a link, which is found by its position: the link moves little.
///
/// Its bytes are not there, so that a bit that flips damages it as a whole: whoever receives it finds
/// a wrong checksum, of TCP or of IP, and throws it away. Two flips that a checksum misses are
/// not simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Whether a bit of it has flipped.
    pub damaged: bool,
    bytes: u32,
}

impl Carried {
    /// A packet around `segment`.
    pub(crate) fn new(segment: &Segment) -> Self {
        Self {
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

/// The segments of one direction, by their positions on the link.
///
/// Forgotten whenever nothing is on its way: a connection whose link never empties keeps all it has sent.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    segments: Vec<Segment>,
    /// How many were forgotten.
    before: u64,
}

impl Sent {
    /// Forgets everything, positions too.
    pub(crate) fn clear(&mut self) {
        self.segments.clear();
        self.before = 0;
    }

    /// Nothing is on its way.
    pub(crate) fn forget(&mut self) {
        self.before += self.segments.len() as u64;
        self.segments.clear();
    }

    /// The next position is this one's.
    pub(crate) fn push(&mut self, segment: Segment) {
        self.segments.push(segment);
    }

    /// The segment at `position`, from 1.
    pub(crate) fn at(&self, position: u64) -> Option<&Segment> {
        let index = position.checked_sub(self.before + 1)?;
        self.segments.get(usize::try_from(index).ok()?)
    }
}
