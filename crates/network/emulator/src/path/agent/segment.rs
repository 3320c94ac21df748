//! The agent's view of a packet: one TCP segment with correct checksums.
//!
//! A receiver discards damaged packets, so the agent treats them as not received.

use posthaste_link::Direction;
use posthaste_tcp::wire::{self, PacketRefusal};

use crate::path::flow::Flow;

/// Reason to ignore a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// Another protocol.
    Other,
    /// A fragment, or headers that contradict themselves.
    Unreadable,
    /// A wrong checksum of IPv4 or TCP.
    Damaged,
}

/// One segment, with its numbers as on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObservedSegment<'a> {
    pub(super) flow: Flow,
    pub(super) sequence: u32,
    /// Acknowledgement number, if the ACK flag is set.
    pub(super) acknowledgment: Option<u32>,
    pub(super) syn: bool,
    pub(super) fin: bool,
    pub(super) rst: bool,
    pub(super) window: u16,
    /// Bytes of data.
    pub(super) payload: u32,
    /// Window scale of a SYN. Without the option no window is scaled.
    pub(super) scale: Option<u8>,
    /// The whole IP packet.
    pub(super) packet: &'a [u8],
}

impl<'a> ObservedSegment<'a> {
    /// Reads an IP packet that travels in `direction`.
    pub(super) fn read(packet: &'a [u8], direction: Direction) -> Result<Self, Unread> {
        let received = wire::read(packet).map_err(|refusal| match refusal {
            PacketRefusal::Protocol => Unread::Other,
            PacketRefusal::Fragment | PacketRefusal::Ip | PacketRefusal::Tcp => Unread::Unreadable,
            PacketRefusal::Checksum => Unread::Damaged,
        })?;
        let segment = received.segment;
        Ok(Self {
            flow: Flow::of_tcp(&received.route, direction),
            sequence: segment.seq,
            acknowledgment: segment.ack,
            syn: segment.syn,
            fin: segment.fin,
            rst: segment.rst,
            window: segment.window,
            payload: segment.len,
            scale: segment.options.window_scale,
            packet,
        })
    }

    /// Sequence numbers that it occupies. SYN and FIN occupy one each.
    pub(super) fn length(&self) -> u32 {
        self.payload + u32::from(self.syn) + u32::from(self.fin)
    }

    /// True if it opens a connection.
    pub(super) fn opens(&self) -> bool {
        self.syn && !self.rst && self.acknowledgment.is_none()
    }

    /// Acknowledgement number of a segment that does nothing else.
    pub(super) fn pure_acknowledgment(&self) -> Option<u32> {
        let plain = self.length() == 0 && !self.rst;
        self.acknowledgment.filter(|_| plain)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_packets::{TestEnd, TestPackets};
    use super::*;

    #[test]
    fn both_versions_are_read_from_both_ends() {
        for version in [4, 6] {
            let wire = TestPackets::for_version(version);
            let packet = wire.packet(TestEnd::Server, 7, Some(9), 1000, 100, "fin");
            let down = ObservedSegment::read(&packet, Direction::Down).expect("a segment");
            assert_eq!((down.sequence, down.acknowledgment), (7, Some(9)));
            assert_eq!((down.payload, down.length(), down.fin), (100, 101, true));
            let packet = wire.packet(TestEnd::Client, 9, Some(7), 1000, 0, "");
            let up = ObservedSegment::read(&packet, Direction::Up).expect("a segment");
            assert_eq!((up.flow, up.pure_acknowledgment()), (down.flow, Some(7)));
        }
    }

    #[test]
    fn one_wrong_bit_anywhere_and_it_is_not_read() {
        for version in [4, 6] {
            let good =
                TestPackets::for_version(version).packet(TestEnd::Server, 7, Some(9), 1000, 20, "");
            let whole = ObservedSegment::read(&good, Direction::Down)
                .expect("a segment")
                .flow;
            for bit in 0..good.len() * 8 {
                let mut bad = good.clone();
                bad[bit / 8] ^= 0x80 >> (bit % 8);
                // Fields of IPv6 that no checksum covers may change: class, label and hop limit.
                let uncovered =
                    version == 6 && [4..32, 56..64].iter().any(|bits| bits.contains(&bit));
                let read = ObservedSegment::read(&bad, Direction::Down).map(|segment| segment.flow);
                assert!(
                    if uncovered {
                        read == Ok(whole)
                    } else {
                        read.is_err()
                    },
                    "{bit}"
                );
            }
        }
    }

    #[test]
    fn the_scale_is_read_from_a_syn_only() {
        let wire = TestPackets::for_version(4);
        let read = |flags| {
            let packet = wire.packet(TestEnd::Client, 1, None, 5, 0, flags);
            ObservedSegment::read(&packet, Direction::Up)
                .expect("a segment")
                .scale
        };
        assert_eq!(
            (read("syn"), read("")),
            (Some(super::super::test_packets::SCALE), None)
        );
    }
}
