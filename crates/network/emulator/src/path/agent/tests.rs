//! The agent in virtual time, between a sender's packets and a receiver that follows RFC 9293: its limits for any
//! input, and its purpose.

use std::collections::BTreeSet;

use posthaste_link::Direction;
use posthaste_units::{Instant, Rate, Span};
use proptest::prelude::*;

use super::test_packets::{TestEnd, TestPackets};
use super::{AdaptiveAcks, AgentCounters, DuplicateAck, DuplicateAcks, Settings, Trigger};

const SEGMENT: usize = 100;
/// Interval between segments.
const GAP: Span = Span::from_millis(20);

fn settings(trigger: Trigger, per_connection: u32) -> Settings {
    Settings {
        rule: AdaptiveAcks {
            trigger,
            per_connection,
            ..AdaptiveAcks::default()
        },
        ..Settings::default()
    }
}

/// A segment delivered to a receiver, with its time.
#[derive(Clone, Copy, Debug)]
struct Delivery {
    at: Instant,
    /// Number of the segment in the reply, from 0.
    segment: u32,
}

/// A receiver that acknowledges every segment at once.
struct TestReceiver {
    wire: TestPackets,
    first: u32,
    segments: u32,
    come: BTreeSet<u32>,
    last: Vec<u8>,
    /// Duplicates sent with its current acknowledgement number.
    duplicates: u32,
}

impl TestReceiver {
    fn edge(&self) -> u32 {
        (0..)
            .find(|segment| !self.come.contains(segment))
            .expect("a number")
    }

    fn has_hole(&self) -> bool {
        self.come.last().is_some_and(|last| *last > self.edge())
    }

    fn number(&self) -> u32 {
        let fin = u32::from(self.edge() == self.segments);
        self.first
            .wrapping_add(1 + self.edge() * SEGMENT as u32 + fin)
    }

    /// Receives a segment and returns the answer.
    fn take(&mut self, segment: u32) -> Vec<u8> {
        let before = self.number();
        self.come.insert(segment);
        let number = self.number();
        self.duplicates = if number == before {
            self.duplicates + 1
        } else {
            0
        };
        self.last = self
            .wire
            .packet(TestEnd::Client, 2, Some(number), 500, 0, "");
        self.last.clone()
    }
}

/// A connection through an agent, with the agent's packets, checked when sent.
struct AgentRun {
    agent: DuplicateAcks,
    receiver: TestReceiver,
    sent: Vec<DuplicateAck>,
    /// Calls `pop` whenever something is due, or only at the end.
    prompt: bool,
}

impl AgentRun {
    /// Starts after the handshake, the request and its acknowledgement.
    fn new(settings: Settings, wire: TestPackets, first: u32, segments: u32) -> Self {
        Self::through(DuplicateAcks::new(settings), wire, first, segments)
    }

    /// Starts through an agent that already knows other connections.
    fn through(mut agent: DuplicateAcks, wire: TestPackets, first: u32, segments: u32) -> Self {
        let next = first.wrapping_add(1);
        let handshake = [
            (
                Direction::Up,
                wire.packet(TestEnd::Client, 1, None, 60_000, 0, "syn"),
            ),
            (
                Direction::Down,
                wire.packet(TestEnd::Server, first, Some(2), 60_000, 0, "syn"),
            ),
            (
                Direction::Up,
                wire.packet(TestEnd::Client, 2, Some(next), 500, 0, ""),
            ),
        ];
        for (direction, packet) in handshake {
            agent.push(Instant::ORIGIN, direction, &packet);
        }
        let receiver = TestReceiver {
            wire,
            first,
            segments,
            come: BTreeSet::new(),
            last: Vec::new(),
            duplicates: 0,
        };
        Self {
            agent,
            receiver,
            sent: Vec::new(),
            prompt: true,
        }
    }

    fn deliver(&mut self, delivery: Delivery) {
        let Delivery { at, segment } = delivery;
        if self.prompt {
            self.collect(at - Span::from_nanos(1));
        }
        let receiver = &self.receiver;
        let sequence = receiver.first.wrapping_add(1 + segment * SEGMENT as u32);
        let fin = if segment + 1 == receiver.segments {
            "fin"
        } else {
            ""
        };
        let packet = receiver
            .wire
            .packet(TestEnd::Server, sequence, Some(2), 500, SEGMENT, fin);
        self.agent.push(at, Direction::Down, &packet);
        let answer = self.receiver.take(segment);
        self.agent
            .push(at + Span::from_micros(50), Direction::Up, &answer);
    }

    /// Takes due packets. Each must be a copy, at a hole, that the sender still needs.
    fn collect(&mut self, now: Instant) {
        while let Some(ack) = self.agent.pop(now) {
            if self.prompt {
                assert!(self.receiver.has_hole(), "nothing is missing");
                assert_eq!(ack.packet, self.receiver.last);
                self.receiver.duplicates += 1;
                assert!(self.receiver.duplicates <= 3, "more than three");
            }
            assert!(ack.due <= now);
            self.sent.push(ack);
        }
    }

    fn finish(mut self) -> (Vec<DuplicateAck>, AgentCounters) {
        self.collect(Instant::FAR_FUTURE);
        let counters = *self.agent.counters();
        assert_eq!(self.agent.running(), 0);
        assert_eq!(self.agent.wake(), None);
        assert_eq!(
            counters.started,
            counters.ends().iter().map(|end| end.1).sum::<u64>()
        );
        assert_eq!(counters.injected, self.sent.len() as u64);
        (self.sent, counters)
    }
}

/// The given segments of a reply of nine, one every [`GAP`].
fn reply(segments: &[u32]) -> Vec<Delivery> {
    let deliver = |&segment: &u32| Delivery {
        at: Instant::from_nanos(1) + GAP * u64::from(segment + 1),
        segment,
    };
    segments.iter().map(deliver).collect()
}

fn run(settings: Settings, deliveries: &[Delivery]) -> (Vec<DuplicateAck>, AgentCounters) {
    let mut run = AgentRun::new(settings, TestPackets::for_version(4), u32::MAX - 300, 9);
    deliveries
        .iter()
        .for_each(|delivery| run.deliver(*delivery));
    run.finish()
}

#[test]
fn a_tail_loss_is_helped_with_what_is_missing() {
    for (come, injected) in [
        (&[0, 1, 2, 3, 4, 5, 6, 7, 8][..], 0),
        (&[0, 1, 2, 3, 4, 5, 6, 8], 2), // the receiver sent one
        (&[0, 1, 2, 3, 4, 5, 7, 8], 1),
        (&[0, 1, 2, 3, 4, 6, 7, 8], 0), // three: the sender knows
        (&[0, 1, 2, 3, 4, 5, 6, 7], 0), // the FIN is lost as well
        (&[8], 2),
    ] {
        let (sent, counters) = run(Settings::default(), &reply(come));
        assert_eq!(sent.len(), injected, "{come:?}: {counters:?}");
        assert_eq!(counters.served, u64::from(injected > 0));
    }
}

#[test]
fn the_timer_runs_from_the_last_packet() {
    let (sent, _) = run(Settings::default(), &reply(&[0, 1, 2, 3, 4, 5, 6, 8]));
    // Seven gaps: six of 20 ms and one of 40. The deviation began with 10 and fell by a quarter five times; the last
    // gap deviates by 20.
    let deviation = 10.0 * 0.75f64.powi(6) + 20.0 / 4.0;
    let expected = 180.0 + 20.0 + 20.0 / 8.0 + 4.0 * deviation;
    let due = sent[0].due.since(Instant::ORIGIN).as_millis_f64();
    assert!((due - expected).abs() < 0.1, "{due} for {expected}");
}

#[test]
fn a_hole_that_is_filled_in_time_is_left_alone() {
    let mut deliveries = reply(&[0, 1, 2, 3, 4, 5, 7, 8]);
    deliveries.push(Delivery {
        at: deliveries[7].at + Span::from_millis(15),
        segment: 6,
    });
    let (sent, counters) = run(Settings::default(), &deliveries);
    assert_eq!((sent.len(), counters.cancelled), (0, 1));
}

#[test]
fn silence_needs_no_fin() {
    let silence = settings(Trigger::Silence, 3);
    let come = reply(&[0, 1, 2, 4]);
    assert_eq!(run(Settings::default(), &come).0.len(), 0);
    assert_eq!(run(silence, &come).0.len(), 2);
}

#[test]
fn limits_hold() {
    let come = reply(&[0, 1, 2, 3, 4, 5, 6, 8]);
    let connection = settings(Trigger::Fin, 1);
    let (sent, counters) = run(connection, &come);
    assert_eq!((sent.len(), counters.limited), (0, 1));
    let second = Settings {
        per_second: Rate::per_second(20.0).expect("a rate"),
        ..Settings::default()
    };
    // Thirty connections that need two duplicates each, all at the same time.
    let mut agent = DuplicateAcks::new(second);
    let mut sent = 0;
    for port in 0..30 {
        let mut run = AgentRun::through(agent, TestPackets::for_version(4).at_port(port), 7, 9);
        run.prompt = false;
        come.iter().for_each(|delivery| run.deliver(*delivery));
        agent = run.agent;
    }
    while agent.pop(Instant::FAR_FUTURE).is_some() {
        sent += 1;
    }
    assert_eq!(sent, 20);
    assert_eq!(agent.counters().limited, 20);
}

#[test]
fn the_table_is_bounded_and_forgets() {
    let settings = Settings {
        connections: 2,
        ..Settings::default()
    };
    let mut agent = DuplicateAcks::new(settings);
    let mut open = |at: u64, port: u16| {
        let wire = TestPackets::for_version(6).at_port(port);
        let syn = wire.packet(TestEnd::Client, 1, None, 60_000, 0, "syn");
        agent.push(Instant::ORIGIN + Span::from_secs(at), Direction::Up, &syn);
        (agent.followed(), agent.counters().given_up)
    };
    assert_eq!(open(0, 1), (1, 0));
    assert_eq!(open(1, 2), (2, 0));
    assert_eq!(open(1, 2), (2, 0), "the same SYN again");
    assert_eq!(open(2, 3), (2, 1));
    assert_eq!(
        open(120, 4),
        (2, 2),
        "the first has been silent for two minutes, and is given up"
    );
    let reset = TestPackets::for_version(6).at_port(4);
    let reset = reset.packet(TestEnd::Client, 2, None, 0, 0, "rst");
    agent.push(
        Instant::ORIGIN + Span::from_secs(121),
        Direction::Up,
        &reset,
    );
    assert_eq!(agent.followed(), 1);
}

#[test]
fn packets_damaged_or_beyond_the_window_are_ignored() {
    let mut run = AgentRun::new(Settings::default(), TestPackets::for_version(4), 0, 9);
    reply(&[0, 1, 2, 3])
        .into_iter()
        .for_each(|delivery| run.deliver(delivery));
    let at = Instant::ORIGIN + Span::from_secs(1);
    let mut fin =
        TestPackets::for_version(4).packet(TestEnd::Server, 801, Some(2), 500, SEGMENT, "fin");
    fin[45] ^= 1;
    run.agent.push(at, Direction::Down, &fin);
    let far =
        TestPackets::for_version(4).packet(TestEnd::Server, 1 << 30, Some(2), 500, SEGMENT, "fin");
    run.agent.push(at, Direction::Down, &far);
    let counters = run.agent.counters();
    assert_eq!((counters.damaged, counters.beyond_window), (1, 1));
    assert_eq!((counters.started, run.agent.running()), (0, 0));
}

#[test]
fn a_reset_and_a_new_connection_stop_the_timer() {
    for (direction, from, sequence, flags) in [
        (Direction::Down, TestEnd::Server, 900, "rst"),
        (Direction::Up, TestEnd::Client, 2, "rst"),
        (Direction::Up, TestEnd::Client, 7_000, "syn"),
    ] {
        let mut run = AgentRun::new(Settings::default(), TestPackets::for_version(6), 0, 9);
        reply(&[0, 8])
            .into_iter()
            .for_each(|delivery| run.deliver(delivery));
        assert_eq!(run.agent.running(), 1);
        let packet = TestPackets::for_version(6).packet(from, sequence, None, 0, 0, flags);
        run.agent
            .push(Instant::ORIGIN + Span::from_millis(201), direction, &packet);
        assert_eq!(run.agent.counters().abandoned, 1);
        assert_eq!(run.finish().0, []);
    }
}

#[test]
fn nothing_is_sent_before_the_receiver_has_confirmed_the_hole() {
    let mut run = AgentRun::new(Settings::default(), TestPackets::for_version(4), 0, 9);
    reply(&[0, 1, 2])
        .into_iter()
        .for_each(|delivery| run.deliver(delivery));
    let fin =
        TestPackets::for_version(4).packet(TestEnd::Server, 801, Some(2), 500, SEGMENT, "fin");
    run.agent.push(
        Instant::ORIGIN + Span::from_millis(70),
        Direction::Down,
        &fin,
    );
    let (sent, counters) = run.finish();
    assert_eq!((sent.len(), counters.unconfirmed), (0, 1));
}

#[test]
fn nothing_is_sent_once_the_receiver_has_said_something_else() {
    for (acknowledgment, payload, flags) in [
        (Some(1), 10, ""),
        (Some(1), 0, "fin"),
        (None, 0, ""),
        (None, 0, "syn"),
    ] {
        let wire = TestPackets::for_version(4);
        let mut run = AgentRun::new(Settings::default(), wire, 0, 9);
        reply(&[0, 8])
            .into_iter()
            .for_each(|delivery| run.deliver(delivery));
        let sequence = if flags == "syn" { 1 } else { 2 };
        let packet = wire.packet(
            TestEnd::Client,
            sequence,
            acknowledgment,
            500,
            payload,
            flags,
        );
        let at = Instant::ORIGIN + Span::from_millis(201);
        run.agent.push(at, Direction::Up, &packet);
        let (sent, counters) = run.finish();
        assert_eq!((sent.len(), counters.unconfirmed), (0, 1), "{flags:?}");
    }
}

/// Any order, losses, repetitions and times.
fn deliveries() -> impl Strategy<Value = Vec<Delivery>> {
    proptest::collection::vec((0u64..80_000, 0u32..9), 0..40).prop_map(|parts| {
        let mut at = Instant::ORIGIN + Span::from_millis(1);
        let deliver = |(gap, segment)| {
            at += Span::from_micros(100 + gap);
            Delivery { at, segment }
        };
        parts.into_iter().map(deliver).collect()
    })
}

proptest! {
    #[test]
    fn never_without_a_hole_and_never_too_many(
        deliveries in deliveries(),
        first: u32,
        version in prop_oneof![Just(4u8), Just(6)],
        trigger in prop_oneof![Just(Trigger::Fin), Just(Trigger::Silence)],
        per_connection in 0u32..12,
    ) {
        let settings = settings(trigger, per_connection);
        let mut run = AgentRun::new(settings, TestPackets::for_version(version), first, 9);
        deliveries.iter().for_each(|delivery| run.deliver(*delivery));
        let (sent, counters) = run.finish();
        prop_assert!(sent.len() <= per_connection as usize);
        prop_assert_eq!(counters.unconfirmed, 0);
    }

    #[test]
    fn when_pop_is_called_changes_nothing(deliveries in deliveries(), first: u32) {
        let settings = settings(Trigger::Silence, 99);
        let [prompt, late] = [true, false].map(|prompt| {
            let mut run = AgentRun::new(settings, TestPackets::for_version(4), first, 9);
            run.prompt = prompt;
            deliveries.iter().for_each(|delivery| run.deliver(*delivery));
            run.finish()
        });
        prop_assert_eq!(prompt, late);
    }

    #[test]
    fn reordering_alone_within_the_timer_causes_none(
        delays in proptest::collection::vec(0u64..9_900, 9),
        gap in 1u64..30_000,
        first: u32,
    ) {
        let mut all: Vec<Delivery> = (0u32..9).zip(delays).map(|(segment, delay)| Delivery {
            at: Instant::ORIGIN + Span::from_micros(1 + gap * u64::from(segment) + delay),
            segment,
        }).collect();
        all.sort_by_key(|delivery| delivery.at);
        let settings = settings(Trigger::Silence, 3);
        let mut run = AgentRun::new(settings, TestPackets::for_version(4), first, 9);
        all.into_iter().for_each(|delivery| run.deliver(delivery));
        let (sent, counters) = run.finish();
        prop_assert_eq!(sent.len(), 0);
        prop_assert_eq!(counters.started, counters.cancelled);
    }

    #[test]
    fn any_bytes_are_survived(
        packets in proptest::collection::vec(
            (any::<bool>(), 0u64..300, proptest::collection::vec(any::<u8>(), 0..80)), 0..20),
        (cut, place, with) in (0usize..200, 0usize..160, any::<u8>()),
    ) {
        let mut run = AgentRun::new(Settings::default(), TestPackets::for_version(6), 5, 9);
        let mut at = Instant::ORIGIN;
        let direction = |up| if up { Direction::Up } else { Direction::Down };
        for (up, ms, bytes) in &packets {
            at += Span::from_millis(*ms);
            run.agent.push(at, direction(*up), bytes);
            let mut near = TestPackets::for_version(6).packet(TestEnd::Server, 206, Some(2), 500, 90, "");
            near.truncate(cut);
            if let Some(byte) = near.get_mut(place) {
                *byte = with;
            }
            run.agent.push(at, direction(!up), &near);
        }
        run.finish();
    }
}
