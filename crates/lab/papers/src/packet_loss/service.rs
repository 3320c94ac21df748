//! The two services of the study, and the positions of packets in their connections.

use std::ops::RangeInclusive;

/// A service: a request and a reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PaperService {
    /// Name in the paper.
    pub(super) name: &'static str,
    /// Name in records.
    pub(super) key: &'static str,
    /// Bytes of the request.
    pub(super) request: u32,
    /// Bytes of the reply.
    pub(super) reply: u32,
}

pub(super) static AUTHOR: PaperService = PaperService {
    name: "Author",
    key: "author",
    request: 1438,
    reply: 12_974,
};

pub(super) static SELLERPROFILE: PaperService = PaperService {
    name: "Sellerprofile",
    key: "sellerprofile",
    request: 1283,
    reply: 8031,
};

/// Both services, in the paper's order.
pub(super) static BOTH: [&PaperService; 2] = [&AUTHOR, &SELLERPROFILE];

/// Bytes of data in a segment: MTU 1500 without the headers of IPv4 and TCP with time stamps.
pub(super) const SEGMENT: u32 = 1448;

/// Packets from the server before the first data packet: the SYN-ACK and the ACK of the request.
const BEFORE: u32 = 2;

/// Last data packets without three duplicate ACKs: the paper's late positions for Linux.
pub(super) const LATE: u32 = 3;

/// The paper's reference position. Fast retransmit repairs its loss.
const REFERENCE: u32 = 6;

/// Positions count the server's packets from 1. The FIN is on the last data packet. Segments have [`SEGMENT`] bytes by
/// default.
impl PaperService {
    /// Packets with data.
    pub(super) const fn segments(&self) -> u32 {
        self.reply.div_ceil(SEGMENT)
    }

    /// Position of the last data packet, with segments of `segment` bytes.
    pub(super) const fn last_data(&self, segment: u32) -> u32 {
        BEFORE + self.reply.div_ceil(segment)
    }

    /// All packets: SYN-ACK, ACK of the request, data, ACK of the client's FIN.
    pub(super) const fn packets(&self) -> u32 {
        self.last_data(SEGMENT) + 1
    }

    /// Positions of the last data packets, for which there are too few duplicate ACKs.
    pub(super) const fn late(&self, segment: u32) -> RangeInclusive<u32> {
        self.last(segment, LATE)
    }

    /// Positions of the last `count` data packets.
    pub(super) const fn last(&self, segment: u32, count: u32) -> RangeInclusive<u32> {
        self.last_data(segment) - count + 1..=self.last_data(segment)
    }

    /// Reference position for the late ones: the paper's for Author, and for a shorter reply the last one before the
    /// late ones. With other segments, the position with as many packets behind it.
    pub(super) fn reference(&self, segment: u32) -> u32 {
        self.before(segment, LATE)
    }

    /// The same with `late` late positions.
    pub(super) fn before(&self, segment: u32, late: u32) -> u32 {
        let usual = self.last_data(SEGMENT);
        REFERENCE.min(usual - late) + self.last_data(segment) - usual
    }

    /// Offset in the reply of the data at a position. `None` for a packet without data.
    pub(super) fn offset(&self, position: u32, segment: u32) -> Option<u64> {
        let data = BEFORE + 1..=self.last_data(segment);
        let at = data.contains(&position);
        at.then(|| u64::from(position - BEFORE - 1) * u64::from(segment))
    }

    /// Describes a position in words.
    pub(super) fn packet(&self, position: u32) -> String {
        match position {
            0 => "no loss".to_owned(),
            1 => "the SYN-ACK".to_owned(),
            2 => "the ACK of the request".to_owned(),
            data if data <= self.last_data(SEGMENT) => {
                format!("data packet {} of {}", data - BEFORE, self.segments())
            }
            _ => "after the data".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's counts for Author, and those of its other service by the same rule.
    #[test]
    fn packets_are_counted_as_in_the_paper() {
        assert_eq!((AUTHOR.packets(), AUTHOR.last_data(SEGMENT)), (12, 11));
        assert_eq!(
            (AUTHOR.late(SEGMENT), AUTHOR.reference(SEGMENT)),
            (9..=11, 6)
        );
        assert_eq!(SELLERPROFILE.packets(), 9);
        assert_eq!(SELLERPROFILE.late(SEGMENT), 6..=8);
        assert_eq!(SELLERPROFILE.reference(SEGMENT), 5);
        assert_eq!(AUTHOR.packet(11), "data packet 9 of 9");
    }

    #[test]
    fn data_has_its_place_in_the_reply() {
        let places = [2, 3, 11, 12].map(|position| AUTHOR.offset(position, SEGMENT));
        assert_eq!(places, [None, Some(0), Some(8 * 1448), None]);
        assert_eq!((AUTHOR.late(524), AUTHOR.reference(524)), (25..=27, 22));
        assert_eq!(AUTHOR.offset(27, 524), Some(24 * 524));
    }
}
