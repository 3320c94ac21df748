//! Captures of a synthetic transfer with known losses and order.

use proptest::collection::btree_set;
use proptest::prelude::*;

use super::*;

const SIZE: u32 = 1000;

/// Packets of one connection, down, as in a capture.
struct SyntheticCapture {
    packets: Vec<ObservedPacket>,
    start: u32,
}

impl SyntheticCapture {
    /// A transfer down, after a handshake that shows the round trip to a capture at the client.
    fn begin(start: u32) -> Self {
        let mut capture = Self {
            packets: Vec::new(),
            start,
        };
        capture.up(0, 7, 1, None);
        capture.down(20, start, 1, Some(8));
        capture.up(20, 8, 0, Some(start.wrapping_add(1)));
        capture
    }

    fn push(&mut self, ms: u64, direction: Direction, segment: Option<ObservedSegment>) {
        self.packets.push(ObservedPacket {
            at: Some(Instant::ORIGIN + Span::from_millis(ms)),
            direction,
            connection: 1,
            segment,
        });
    }

    fn up(&mut self, ms: u64, sequence: u32, length: u32, acknowledges: Option<u32>) {
        let segment = ObservedSegment {
            sequence,
            length,
            acknowledges,
        };
        self.push(ms, Direction::Up, Some(segment));
    }

    fn down(&mut self, ms: u64, sequence: u32, length: u32, acknowledges: Option<u32>) {
        let segment = ObservedSegment {
            sequence,
            length,
            acknowledges,
        };
        self.push(ms, Direction::Down, Some(segment));
    }

    /// Segment `n` of the data, from 0.
    fn data(&mut self, ms: u64, n: u32) {
        let sequence = self.byte(n);
        self.down(ms, sequence, SIZE, Some(8));
    }

    /// Sequence number of the first byte of segment `n`.
    fn byte(&self, n: u32) -> u32 {
        self.start.wrapping_add(1).wrapping_add(n * SIZE)
    }

    fn received(&self) -> Findings {
        let mut receiver = ReceiverCapture::new(Direction::Down);
        self.packets.iter().for_each(|seen| receiver.push(seen));
        receiver.finish()
    }

    fn sent(&self) -> Findings {
        let mut sender = SenderCapture::new(Direction::Down);
        self.packets.iter().for_each(|seen| sender.push(seen));
        sender.finish()
    }
}

#[test]
fn gaps_closed_within_a_round_trip_are_overtaken_packets() {
    let mut capture = SyntheticCapture::begin(u32::MAX - 1500);
    for n in [0, 1, 4, 3] {
        capture.data(30, n);
    }
    capture.data(49, 2);
    let found = capture.received();
    // SYN-ACK, then data from position 2: segments 2 and 3 are positions 4 and 5.
    assert_eq!(found.overtaken, [(4, 2), (5, 1)]);
    assert_eq!((found.lost, found.packets), (vec![], 6));
}

#[test]
fn gaps_closed_later_are_losses_sent_again() {
    let mut capture = SyntheticCapture::begin(0);
    for n in [0, 1, 4] {
        capture.data(30, n);
    }
    capture.data(60, 2);
    let found = capture.received();
    assert_eq!(found.lost, [4, 5], "segment 3 never came");
    assert_eq!((found.overtaken, found.packets), (vec![], 7));
}

#[test]
fn acknowledged_but_unseen_packets_are_uncaptured() {
    let mut capture = SyntheticCapture::begin(0);
    for n in [0, 2] {
        capture.data(30, n);
    }
    let behind = capture.byte(3);
    capture.up(31, 8, 0, Some(behind));
    let found = capture.received();
    assert_eq!((found.lost, found.uncaptured), (vec![], 1));
}

#[test]
fn a_jump_is_no_hole() {
    let mut capture = SyntheticCapture::begin(0);
    capture.data(30, 0);
    capture.data(31, 1_000_000);
    let found = capture.received();
    assert_eq!((found.lost, found.jumps, found.packets), (vec![], 1, 3));
}

#[test]
fn packets_sent_again_before_their_ack_were_lost() {
    let mut capture = SyntheticCapture::begin(u32::MAX - 500);
    for n in [0, 1, 2, 3, 4] {
        capture.data(30, n);
    }
    let acknowledged = capture.byte(1);
    capture.up(45, 8, 0, Some(acknowledged));
    capture.data(50, 1);
    capture.data(90, 1);
    let found = capture.sent();
    // Segment 1 was position 3, and its second transmission position 7.
    assert_eq!((found.lost, found.packets), (vec![3, 7], 8));
}

/// The mark of a packet that differs from those with other numbers.
fn mark(number: u64) -> PacketMark {
    PacketMark {
        headers: number,
        ..PacketMark::default()
    }
}

#[test]
fn two_captures_show_every_packet() {
    let mut pair = CapturePair::default();
    let at = |ms: u64| Instant::ORIGIN + Span::from_millis(ms);
    for number in [10, 11, 12, 13, 14, 14] {
        pair.sent(Some(at(number)), mark(number));
    }
    // The receiver's clock is an hour ahead. 11 is lost, 12 overtakes 10, and 13 arrives twice.
    let hour = 3_600_000;
    pair.ran(Some(at(hour)));
    for (number, ms) in [
        (12, 22),
        (10, 24),
        (13, 23),
        (13, 24),
        (14, 31),
        (14, 24),
        (99, 30),
    ] {
        pair.arrived(Some(at(hour + ms)), mark(number));
    }
    let found = pair.finish(Span::from_millis(1));
    assert_eq!(found.lost, [2]);
    assert_eq!(found.overtaken, [(1, 1)]);
    assert_eq!(found.copied, [(4, 1)]);
    let ms = Span::from_millis;
    assert_eq!(found.delayed, [(5, ms(7))], "the least is 10 ms");
    assert_eq!((found.packets, found.unsent), (6, 1));
    let mut draft = Draft::default();
    found.add_to(Direction::Up, &mut draft).unwrap();
    let expected =
        "posthaste pattern 1\nup drop 2\nup delay 5: 7ms\nup hold 1: 1\nup copy 4: 1\nend\n";
    assert_eq!(draft.finish().to_string(), expected);
}

/// Packets as (ms, number, arrives after ms). The clock of the receiver is an hour ahead.
fn paired(packets: &[(u64, u64, Option<u64>)]) -> Findings {
    let mut pair = CapturePair::default();
    let at = |ms: u64| Some(Instant::ORIGIN + Span::from_millis(ms));
    let mut arrivals = Vec::new();
    for (ms, number, delay) in packets {
        pair.sent(at(*ms), mark(*number));
        arrivals.extend(delay.map(|delay| (3_600_000 + ms + delay, *number)));
    }
    arrivals.sort_unstable();
    for (ms, number) in arrivals {
        pair.arrived(at(ms), mark(number));
    }
    pair.ran_from_the_first();
    pair.finish(Span::from_millis(1))
}

/// Without TCP timestamps, a retransmission equals the lost packet.
#[test]
fn of_equal_packets_order_and_delay_show_the_lost_one() {
    const EQUAL: u64 = 9;
    let lost = |packets: &[(u64, u64, Option<u64>)]| {
        let found = paired(packets);
        assert_eq!(found.uncertain, 0);
        (found.lost, found.delayed.len())
    };
    // The first copy, the second copy, the first of three, the last of three.
    let first = [
        (0, 1, Some(40)),
        (1, EQUAL, None),
        (2, 2, Some(40)),
        (250, EQUAL, Some(40)),
    ];
    assert_eq!(lost(&first), (vec![2], 0));
    let second = [
        (0, 1, Some(40)),
        (1, EQUAL, Some(40)),
        (250, EQUAL, None),
        (251, 2, Some(40)),
    ];
    assert_eq!(lost(&second), (vec![3], 0));
    let middle = [
        (0, EQUAL, Some(40)),
        (200, EQUAL, None),
        (600, EQUAL, Some(40)),
        (700, 2, Some(40)),
    ];
    assert_eq!(lost(&middle), (vec![2], 0));
    // A queue of 300 ms makes the sender repeat what is under way, and the repeated packet is lost.
    let queue = [
        (0, 1, Some(300)),
        (1, EQUAL, Some(300)),
        (2, 2, Some(300)),
        (250, EQUAL, None),
        (300, 3, Some(300)),
    ];
    assert_eq!(lost(&queue).0, [4]);
    // The SYN is lost. Its delay shows in the packet after it.
    let opening = [
        (0, EQUAL, None),
        (1000, EQUAL, Some(40)),
        (1080, 2, Some(41)),
    ];
    assert_eq!(lost(&opening), (vec![1], 1));
}

#[test]
fn a_copy_of_a_packet_is_not_its_retransmission() {
    let find = |arrivals: [u64; 2]| {
        let mut pair = CapturePair::default();
        let at = |ms: u64| Some(Instant::ORIGIN + Span::from_millis(ms));
        for (ms, number) in [(0, 9), (10, 1), (200, 9), (210, 2)] {
            pair.sent(at(ms), mark(number));
        }
        for (ms, number) in [(arrivals[0], 9), (50, 1), (arrivals[1], 9), (250, 2)] {
            pair.arrived(at(ms), mark(number));
        }
        let found = pair.finish(Span::ZERO);
        (found.lost, found.copied, found.delayed)
    };
    let none = (vec![], vec![], vec![]);
    assert_eq!(find([40, 240]), none);
    // The path copies the first and loses the second.
    assert_eq!(find([40, 60]), (vec![3], vec![(1, 1)], vec![]));
}

/// Packets that arrived before the sender's capture began: equal ones of a heartbeat.
#[test]
fn an_arrival_sooner_than_any_other_has_no_packet() {
    let at = |ms: u64| Some(Instant::ORIGIN + Span::from_millis(ms));
    for beats in [vec![1000], vec![1000, 2000]] {
        let mut pair = CapturePair::default();
        for (ms, number) in [(990, 1), (1990, 2)] {
            pair.sent(at(ms), mark(number));
            pair.arrived(at(ms + 40), mark(number));
        }
        pair.arrived(at(40), mark(9));
        for ms in &beats {
            pair.sent(at(*ms), mark(9));
            pair.arrived(at(ms + 40), mark(9));
        }
        let found = pair.finish(Span::from_millis(1));
        assert_eq!((found.unsent, found.lost.len()), (1, 0), "{beats:?}");
        assert_eq!((found.copied, found.delayed), (vec![], vec![]), "{beats:?}");
    }
}

#[test]
fn captures_of_other_connections_show_no_loss() {
    let mut pair = CapturePair::default();
    pair.sent(Some(Instant::ORIGIN), mark(1));
    pair.ran(Some(Instant::ORIGIN));
    pair.ran_from_the_first();
    pair.set_foreign();
    let found = pair.finish(Span::ZERO);
    assert!(found.foreign && found.lost.is_empty());
    assert_eq!(found.outside, 1);
}

#[test]
fn equal_packets_sent_together_are_uncertain() {
    let found = paired(&[
        (0, 1, Some(40)),
        (1, 9, None),
        (1, 9, Some(40)),
        (1, 9, Some(40)),
        (2, 2, Some(40)),
    ]);
    assert_eq!((found.lost.len(), found.uncertain), (1, 1));
    assert!(
        found
            .summary(Direction::Up)
            .contains("positions not certain")
    );
    // Nothing else crossed: no delay is known.
    let found = paired(&[(0, 9, None), (1000, 9, Some(40))]);
    assert_eq!((found.lost, found.uncertain), (vec![1], 1));
}

/// Identifications and contents decide where they can.
#[test]
fn equal_headers_are_told_apart_by_identification_and_content() {
    let packet = |id: u16, content: Option<u64>| PacketMark {
        headers: 1,
        content,
        id,
    };
    let find = |sent: &[PacketMark], arrived: &[PacketMark]| {
        let mut pair = CapturePair::default();
        sent.iter().for_each(|mark| pair.sent(None, *mark));
        arrived.iter().for_each(|mark| pair.arrived(None, *mark));
        let found = pair.finish(Span::ZERO);
        (found.lost, found.unsent, found.uncertain)
    };
    let content = Some(5);
    let sent = [packet(1, content), packet(2, content), packet(3, content)];
    assert_eq!(find(&sent, &[sent[0], sent[2]]), (vec![2], 0, 0));
    // The path changes all identifications.
    let changed = [
        packet(71, content),
        packet(72, content),
        packet(73, content),
    ];
    assert_eq!(find(&sent, &changed), (vec![], 0, 0));
    // The other capture is cut. What remains is compared.
    let cut = [packet(1, None), packet(3, None)];
    assert_eq!(find(&sent, &cut), (vec![2], 0, 0));
    let sent = [packet(0, Some(5)), packet(0, Some(6))];
    assert_eq!(find(&sent, &sent[1..]), (vec![1], 0, 0));
    // Captures of other packets say nothing.
    assert_eq!(find(&sent, &[packet(0, Some(7))]), (vec![], 1, 0));
}

/// 10 ms each way. The receiver's capture begins later and ends earlier than the sender's.
#[test]
fn packets_outside_the_other_capture_are_not_lost() {
    let mut pair = CapturePair::default();
    let at = |ms: u64| Instant::ORIGIN + Span::from_millis(ms);
    for number in 0..100 {
        pair.sent(Some(at(number)), mark(number));
    }
    // Other packets arrived at 25 ms and at 85 ms; 20 and 60 are lost.
    pair.ran(Some(at(25)));
    for number in (17..70).filter(|number| ![20, 60].contains(number)) {
        pair.arrived(Some(at(number + 10)), mark(number));
    }
    pair.ran(Some(at(85)));
    let found = pair.finish(Span::from_millis(1));
    let lost: [u64; 10] = [15, 16, 20, 60, 70, 71, 72, 73, 74, 75];
    let positions: Vec<u64> = lost.iter().map(|mark| mark + 1).collect();
    assert_eq!(found.lost, positions);
    assert_eq!((found.outside, found.packets), (15 + 24, 100));
    // A SYN was lost before everything else.
    let mut pair = CapturePair::default();
    for (number, ms) in [(1, 0), (2, 1000), (3, 1020)] {
        pair.sent(Some(at(ms)), mark(number));
    }
    pair.arrived(Some(at(1010)), mark(2));
    pair.arrived(Some(at(1030)), mark(3));
    pair.ran_from_the_first();
    assert_eq!(pair.finish(Span::ZERO).lost, [1]);
    // If nothing arrived, the delay is unknown.
    for (ran, expected) in [(true, (1, 0)), (false, (0, 1))] {
        let mut pair = CapturePair::default();
        pair.sent(Some(at(1)), mark(1));
        if ran {
            pair.ran(Some(at(9_000)));
        }
        let found = pair.finish(Span::ZERO);
        assert_eq!((found.lost.len(), found.outside), expected);
    }
}

/// Without acknowledgements, no packet is ever known to have arrived.
#[test]
fn a_capture_of_one_direction_is_read_in_one_pass() {
    const SEGMENTS: u32 = 200_000;
    let mut capture = SyntheticCapture::begin(7);
    for n in (0..SEGMENTS).filter(|n| n % 2 == 0) {
        capture.data(30, n);
    }
    for n in (0..SEGMENTS - 1).filter(|n| n % 2 == 1) {
        capture.data(900, n);
    }
    assert_eq!(capture.received().lost.len() as u32, SEGMENTS / 2 - 1);
    assert!(capture.sent().lost.is_empty());
}

/// A pattern's limits apply, here to a packet overtaken by 70,000 others.
#[test]
fn findings_beyond_the_format_are_refused() {
    let found = Findings {
        overtaken: vec![(1, 70_000)],
        ..Findings::default()
    };
    let refused = found.add_to(Direction::Up, &mut Draft::default());
    assert!(refused.unwrap_err().to_string().contains("65535"));
}

proptest! {
    /// Losses before the last segment are found, exactly those, at either end.
    #[test]
    fn every_loss_is_found_at_its_position(
        start: u32,
        lost in btree_set(0u32..40, 0..15),
        length in 41u32..60,
    ) {
        let mut received = SyntheticCapture::begin(start);
        let mut sent = SyntheticCapture::begin(start);
        for n in 0..length {
            sent.data(30, n);
            if !lost.contains(&n) {
                received.data(30, n);
            }
        }
        for n in &lost {
            sent.data(100, *n);
            received.data(100, *n);
        }
        // The first byte follows the SYN-ACK, position 1. A reader that misses the first segments does not know their
        // size yet, and counts the hole in packets as large as the next.
        let expected: Vec<u64> = lost.iter().map(|n| u64::from(*n) + 2).collect();
        prop_assert_eq!(received.received().lost, expected.clone());
        prop_assert_eq!(sent.sent().lost, expected);
    }

    /// Of packets at least 5 ms apart, many of them equal, exactly the lost ones are found, with delays of 40 to 42 ms.
    #[test]
    fn lost_ones_of_equal_packets_are_found(
        packets in proptest::collection::vec((5u64..60, 0u64..12, 0u64..3, 0u8..5), 1..80),
    ) {
        let mut now = 0;
        let mut sent = vec![(0, 1000, Some(40))];
        for (gap, number, jitter, fate) in packets {
            now += gap;
            // Numbers from 6 on are not repeated.
            let number = if number < 6 { number } else { 2000 + now };
            sent.push((now, number, (fate > 0).then_some(40 + jitter)));
        }
        sent.push((now + 5, 1001, Some(40)));
        let positions = sent.iter().zip(1..).filter(|((.., delay), _)| delay.is_none());
        let lost: Vec<u64> = positions.map(|(_, position)| position).collect();
        let found = paired(&sent);
        prop_assert_eq!(found.lost, lost);
        prop_assert!(found.overtaken.is_empty() && found.copied.is_empty());
    }

    #[test]
    fn any_packets_are_read(packets in proptest::collection::vec(
        (any::<bool>(), 0u64..3, proptest::option::of((any::<u32>(), any::<u32>(), any::<Option<u32>>())), 0u64..50),
        0..60,
    )) {
        let (mut receiver, mut sender, mut pair) =
            (ReceiverCapture::new(Direction::Up), SenderCapture::new(Direction::Up), CapturePair::default());
        let mut now = Instant::ORIGIN;
        for (up, connection, segment, ms) in packets {
            now += Span::from_millis(ms);
            let segment = segment.map(|(sequence, length, acknowledges)| ObservedSegment {
                sequence,
                length,
                acknowledges,
            });
            let direction = if up { Direction::Up } else { Direction::Down };
            let seen = ObservedPacket { at: Some(now), direction, connection, segment };
            receiver.push(&seen);
            sender.push(&seen);
            if up {
pair.sent(Some(now), mark(ms))
} else {
pair.arrived(Some(now), mark(ms))
}
        }
        for found in [receiver.finish(), sender.finish(), pair.finish(Span::ZERO)] {
            prop_assert!(found.lost.iter().all(|at| (1..=found.packets).contains(at)));
            prop_assert!(found.lost.windows(2).all(|two| two[0] < two[1]), "{:?}", found.lost);
        }
    }
}
