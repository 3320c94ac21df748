//! The receiver's last acknowledgement, and the number of its duplicates.

use posthaste_tcp::receive::duplicates::DUPLICATES;

use super::segment::ObservedSegment;

/// The receiver's acknowledgements of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Acks {
    last: Option<(u32, u16)>,
    duplicates: u32,
    /// The receiver's last packet, if it is a pure acknowledgement of the edge of a hole.
    copy: Option<Vec<u8>>,
}

impl Acks {
    /// Notes a segment of the receiver while the first hole begins at `hole`.
    ///
    /// Counts duplicates as RFC 5681, section 2, defines them: no data, no SYN or FIN, the same number and window as
    /// the packet before. A window update is not a duplicate, so some ACKs of a receiver that reads early do not count.
    /// The RFC also requires outstanding data at the sender. That is unknown before a hole shows it, and is not
    /// checked.
    pub(super) fn sent(&mut self, segment: &ObservedSegment<'_>, hole: Option<u32>) {
        self.copy = None;
        let Some(number) = segment.acknowledgment else {
            return;
        };
        let current = (number, segment.window);
        if self.last.is_none_or(|last| last.0 != number) {
            self.duplicates = 0;
        }
        let pure = segment.pure_acknowledgment();
        if pure.is_some() && self.last == Some(current) {
            self.duplicates = self.duplicates.saturating_add(1);
        }
        self.last = Some(current);
        let at_the_hole = pure.is_some() && pure == hole;
        self.copy = at_the_hole.then(|| segment.packet.to_vec());
    }

    /// Number of duplicates that the sender still needs at a hole that begins at `edge`, and the packet to send.
    ///
    /// `None` if the receiver has not confirmed the hole, or has sent another segment since. A copy of an older packet
    /// could carry an old timestamp, and PAWS rejects it (RFC 7323, section 5.3).
    pub(super) fn missing(&self, edge: u32) -> Option<(u32, &[u8])> {
        let copy = self.copy.as_deref()?;
        let confirmed = self.last.is_some_and(|last| last.0 == edge);
        confirmed.then_some((DUPLICATES.saturating_sub(self.duplicates), copy))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_packets::{TestEnd, TestPackets};
    use super::*;
    use posthaste_link::Direction;

    /// Feeds segments, given as (number, window, payload). Returns the duplicates that are still missing at 500.
    fn missing(sent: &[(u32, u16, usize)]) -> Option<u32> {
        let mut acks = Acks::default();
        for &(number, window, payload) in sent {
            let packet = TestPackets::for_version(4).packet(
                TestEnd::Client,
                1,
                Some(number),
                window,
                payload,
                "",
            );
            let segment = ObservedSegment::read(&packet, Direction::Up).expect("a segment");
            acks.sent(&segment, Some(500));
        }
        acks.missing(500).map(|(count, _)| count)
    }

    #[test]
    fn duplicates_are_counted_as_a_sender_does() {
        assert_eq!(missing(&[(500, 9, 0)]), Some(3));
        assert_eq!(missing(&[(500, 9, 0), (500, 9, 0)]), Some(2));
        assert_eq!(missing(&[(500, 9, 0); 9]), Some(0));
        assert_eq!(
            missing(&[(500, 9, 0), (500, 8, 0)]),
            Some(3),
            "a window update"
        );
        assert_eq!(missing(&[(400, 9, 0), (400, 9, 0), (500, 9, 0)]), Some(3));
    }

    #[test]
    fn only_the_last_packet_is_copied() {
        assert_eq!(missing(&[(400, 9, 0)]), None, "the hole is not confirmed");
        assert_eq!(
            missing(&[(500, 9, 0), (500, 9, 10)]),
            None,
            "data was sent since"
        );
    }
}
