//! A segment on a link as the length of an IPv4 packet, and the queue of segments on the links.

use std::collections::VecDeque;

use posthaste_link as link;
use posthaste_tcp::Segment;

/// Bytes of an IPv4 header (RFC 791, section 3.1).
const IP: u32 = 20;

/// A segment on a link, identified by its position, so that the link moves little data.
///
/// The bytes do not exist, so a flipped bit damages the segment as a whole: the receiver finds a wrong TCP or IP
/// checksum and drops it. Two flips that a checksum misses are not simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// A bit of the packet has flipped.
    pub damaged: bool,
    bytes: u32,
}

impl Carried {
    /// Creates the packet of `segment`.
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

/// The segments of one direction that are on the link, by their positions.
///
/// Removed from the front: a segment that has left stays while an earlier one has not.
#[derive(Debug, Default)]
pub(crate) struct SegmentsOnLink {
    segments: VecDeque<Underway>,
    /// Number of removed segments.
    before: u64,
}

#[derive(Debug)]
struct Underway {
    segment: Segment,
    /// Packets of the segment that are still on the link: the original and copies made by the link.
    inside: u64,
    /// One of them has been delivered.
    delivered: bool,
}

impl SegmentsOnLink {
    /// Removes all segments and resets positions.
    pub(crate) fn clear(&mut self) {
        self.segments.clear();
        self.before = 0;
    }

    /// Adds a segment at the next position. The link has made `copies` copies of it.
    pub(crate) fn push(&mut self, segment: Segment, copies: u64) {
        self.segments.push_back(Underway {
            segment,
            inside: 1 + copies,
            delivered: false,
        });
    }

    /// Returns the segment at `position`, from 1, and true if it has been delivered before.
    pub(crate) fn at(&self, position: u64) -> Option<(&Segment, bool)> {
        let underway = self.segments.get(self.index(position)?)?;
        Some((&underway.segment, underway.delivered))
    }

    /// Records that a packet of `position` has left the link.
    pub(crate) fn left(&mut self, position: u64, delivered: bool) {
        let index = self.index(position);
        let underway = index.and_then(|index| self.segments.get_mut(index));
        debug_assert!(underway.is_some(), "packet {position} is not on the link");
        if let Some(underway) = underway {
            debug_assert!(
                underway.inside > 0,
                "packet {position} leaves more often than it came"
            );
            underway.inside = underway.inside.saturating_sub(1);
            underway.delivered |= delivered;
        }
        while self.segments.front().is_some_and(|first| first.inside == 0) {
            self.segments.pop_front();
            self.before += 1;
        }
    }

    /// True if no segment is on the link.
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    fn index(&self, position: u64) -> Option<usize> {
        usize::try_from(position.checked_sub(self.before + 1)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(number: u32) -> Segment {
        Segment {
            seq: number,
            ..Segment::default()
        }
    }

    #[test]
    fn a_link_that_never_empties_keeps_what_is_on_it() {
        let mut sent = SegmentsOnLink::default();
        for number in 1..=1000_u32 {
            sent.push(segment(number), 0);
            assert!(sent.segments.len() <= 4);
            if let Some(first) = number.checked_sub(3).filter(|first| *first > 0) {
                let position = u64::from(first);
                assert_eq!(sent.at(position), Some((&segment(first), false)));
                sent.left(position, true);
                assert_eq!(sent.at(position), None);
            }
        }
    }

    #[test]
    fn copies_and_what_was_overtaken_are_found() {
        let mut sent = SegmentsOnLink::default();
        sent.push(segment(1), 1);
        sent.push(segment(2), 0);
        sent.left(2, true);
        assert_eq!(sent.at(1), Some((&segment(1), false)));
        sent.left(1, true);
        assert_eq!(sent.at(1), Some((&segment(1), true)));
        sent.left(1, true);
        assert_eq!((sent.at(1), sent.at(2)), (None, None));
        assert!(sent.segments.is_empty());
    }
}
