//! A stack between a client and a server in virtual time, both with the profile of today's Linux.

use std::collections::BTreeMap;
use std::sync::Arc;

use posthaste_link::Direction;
use posthaste_tcp::wire::{self, SegmentRoute};
use posthaste_tcp::{ConnectionEnd, Endpoint, TcpState, profile};
use posthaste_units::{Instant, Seed, Span};

use super::half::SpliceHalf;
use super::{StackSide, TcpStack};

const LINK: Span = Span::from_millis(10);
const HOST: Span = Span::from_micros(50);

/// Receiver of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    Client,
    Stack(StackSide),
    Server,
}

/// The two ends, and the stack at one of them.
struct TestNetwork {
    stack: TcpStack,
    client: SpliceHalf,
    server: SpliceHalf,
    /// True if the server listens.
    served: bool,
    under_way: BTreeMap<(Instant, u64), (To, Vec<u8>)>,
    count: u64,
    now: Instant,
    /// Packets of a thousand that the link loses.
    loss: u64,
    chance: u64,
}

fn route() -> SegmentRoute {
    let end = |text: &str| text.parse().expect("an address");
    SegmentRoute::new(end("10.0.0.1:40000"), end("10.0.0.2:80")).expect("one version")
}

impl TestNetwork {
    /// The stack stands at the end that sends in the direction `out`.
    fn new(name: &str, out: Direction, loss: u64) -> Self {
        let linux = Arc::new(profile::named("linux-6").expect("a profile"));
        let other = Arc::new(profile::named(name).expect("a profile"));
        let now = Instant::from_nanos(1_000_000_000);
        Self {
            stack: TcpStack::new(other, out, Seed(5)),
            client: SpliceHalf::connect(&linux, route(), 7, now),
            server: SpliceHalf::listen(&linux, route().reverse(), 9),
            served: true,
            under_way: BTreeMap::new(),
            count: 0,
            now,
            loss,
            chance: 7,
        }
    }

    /// Schedules a packet's next arrival, over the link or over the devices: the stack is next to one of the ends.
    fn send(&mut self, to: To, packet: Vec<u8>) {
        let near = match self.stack.out {
            Direction::Up => To::Client,
            Direction::Down => To::Server,
        };
        let in_link = match to {
            To::Stack(side) => side == StackSide::Link,
            end => end != near,
        };
        // Knuth's MMIX generator. Any generator would do that is the same everywhere.
        self.chance = self
            .chance
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        if in_link && (self.chance >> 33) % 1000 < self.loss {
            return;
        }
        let delay = if in_link { LINK } else { HOST };
        self.count += 1;
        self.under_way
            .insert((self.now + delay, self.count), (to, packet));
    }

    /// Sides of the stack for the client's and the server's packets.
    fn sides(&self) -> [StackSide; 2] {
        match self.stack.out {
            Direction::Up => [StackSide::Host, StackSide::Link],
            Direction::Down => [StackSide::Link, StackSide::Host],
        }
    }

    fn pump(&mut self) {
        let [client, server] = self.sides();
        while let Some(packet) = self.client.pop(self.now) {
            self.send(To::Stack(client), packet);
        }
        while let Some(packet) = self.server.pop(self.now) {
            self.send(To::Stack(server), packet);
        }
        while let Some(sent) = self.stack.pop(self.now) {
            let to = if sent.side == client {
                To::Client
            } else {
                To::Server
            };
            self.send(to, sent.packet);
        }
    }

    fn deliver(&mut self, to: To, packet: &[u8]) {
        let received = wire::read(packet).expect("a stack sends segments");
        match to {
            To::Stack(side) => self.stack.push(self.now, side, packet),
            To::Client => self
                .client
                .push(self.now, &received.segment, received.payload),
            To::Server if self.served => {
                self.server
                    .push(self.now, &received.segment, received.payload);
            }
            To::Server => {
                let [_, server] = self.sides();
                let refusal = super::half::reset(&received);
                self.send(To::Stack(server), refusal);
            }
        }
    }

    /// Runs all events up to `until`, with the applications in between.
    fn run(
        &mut self,
        span: Span,
        mut application: impl FnMut(&mut SpliceHalf, &mut SpliceHalf, Instant),
    ) {
        let until = self.now + span;
        let mut turns = 0;
        loop {
            turns += 1;
            assert!(turns < 50_000, "somebody wants to be woken for nothing");
            application(&mut self.client, &mut self.server, self.now);
            self.pump();
            let first = self.under_way.keys().next().map(|(at, _)| *at);
            let wakes = [
                self.client.endpoint.wake(),
                self.server.endpoint.wake(),
                self.stack.wake(),
            ];
            let Some(next) = wakes
                .into_iter()
                .flatten()
                .chain(first)
                .min()
                .filter(|next| *next <= until)
            else {
                break;
            };
            self.now = self.now.max(next);
            while let Some(entry) = self
                .under_way
                .first_entry()
                .filter(|entry| entry.key().0 <= next)
            {
                let (to, packet) = entry.remove();
                self.deliver(to, &packet);
                self.pump();
            }
        }
        self.now = until;
    }
}

/// Reads all received data, writes as much of `data` as fits, and closes after its end.
fn carry(half: &mut SpliceHalf, data: &[u8], sent: &mut usize, got: &mut Vec<u8>, now: Instant) {
    got.extend(half.take());
    *sent += half.give(&data[*sent..], now);
    let open = matches!(
        half.endpoint.state(),
        TcpState::Established | TcpState::CloseWait
    );
    if open && *sent == data.len() {
        half.end();
    }
}

fn bytes(count: usize, step: usize) -> Vec<u8> {
    (0..count).map(|at| (at * step % 253) as u8).collect()
}

fn passes(name: &str, out: Direction, loss: u64) {
    let mut network = TestNetwork::new(name, out, loss);
    let (asks, answers) = (bytes(60_000, 3), bytes(150_000, 7));
    let (mut requested, mut answered) = ([0, 0], [Vec::new(), Vec::new()]);
    network.run(Span::from_secs(300), |client, server, now| {
        carry(client, &asks, &mut requested[0], &mut answered[0], now);
        carry(server, &answers, &mut requested[1], &mut answered[1], now);
    });
    let [got_by_client, got_by_server] = answered;
    assert!(
        got_by_server == asks,
        "{name} {out}: {} of {}",
        got_by_server.len(),
        asks.len()
    );
    assert!(
        got_by_client == answers,
        "{name} {out}: {} of {}",
        got_by_client.len(),
        answers.len()
    );
    let ends = [&network.client, &network.server].map(|half| half.endpoint.state());
    assert!(
        ends.iter().all(|end| matches!(
            end,
            TcpState::TimeWait | TcpState::Closed(ConnectionEnd::Finished)
        )),
        "{name} {out}: {ends:?}"
    );
    let counters = network.stack.counters();
    assert_eq!((counters.connections, counters.broken), (1, 0));
    assert!(loss > 0 || counters.retransmissions == 0, "{name} {out}");
}

#[test]
fn bytes_pass_both_ways_whoever_is_replaced() {
    for name in profile::names() {
        for out in Direction::BOTH {
            passes(name, out, 0);
            passes(name, out, 20);
        }
    }
}

#[test]
fn a_refusal_is_passed_on() {
    for out in Direction::BOTH {
        let mut network = TestNetwork::new("freebsd-6.0", out, 0);
        network.served = false;
        network.run(Span::from_secs(1), |_, _, _| {});
        assert_eq!(
            network.client.endpoint.state(),
            TcpState::Closed(ConnectionEnd::Reset),
            "{out}"
        );
        assert_eq!(network.stack.connections(), 0);
    }
}

#[test]
fn a_reset_is_passed_on() {
    for out in Direction::BOTH {
        let mut network = TestNetwork::new("freebsd-6.0", out, 0);
        network.run(Span::from_secs(1), |_, _, _| {});
        assert_eq!(
            network.server.endpoint.state(),
            TcpState::Established,
            "{out}"
        );
        network.client.endpoint.abort();
        network.run(Span::from_secs(1), |_, _, _| {});
        assert_eq!(
            network.server.endpoint.state(),
            TcpState::Closed(ConnectionEnd::Reset),
            "{out}"
        );
        assert_eq!(network.stack.connections(), 0);
        assert_eq!(network.stack.wake(), None);
    }
}

#[test]
fn strays_are_reset_and_nonsense_is_counted() {
    let mut stack = TcpStack::new(
        Arc::new(profile::named("rfc").expect("a profile")),
        Direction::Down,
        Seed(1),
    );
    let now = Instant::from_nanos(5);
    let stray = posthaste_tcp::Segment {
        seq: 3,
        ack: Some(4),
        ..Default::default()
    };
    let mut packet = Vec::new();
    wire::write(&mut packet, &route(), &stray, [&[], &[]]).expect("a packet");
    stack.push(now, StackSide::Link, &packet);
    let sent = stack.pop(now).expect("an answer");
    let answer = wire::read(&sent.packet).expect("a segment");
    assert!(answer.segment.rst && answer.segment.seq == 4 && answer.route == route().reverse());
    assert_eq!(sent.side, StackSide::Link);
    packet[30] ^= 1;
    stack.push(now, StackSide::Link, &packet);
    assert_eq!(stack.pop(now), None);
    let counters = stack.counters();
    assert_eq!(counters.strays, 1);
    assert_eq!(
        counters.refusals().collect::<Vec<_>>(),
        [(wire::PacketRefusal::Checksum, 1)]
    );
}

#[test]
fn full_segments_fit_the_mtu_over_both_versions() {
    let end = |text: &str| text.parse().expect("an address");
    let v6 = SegmentRoute::new(end("[fd00::1]:40000"), end("[fd00::2]:80")).expect("one version");
    for (route, mss) in [(route(), 1460), (v6, 1440)] {
        for (side, out) in [
            (StackSide::Link, Direction::Down),
            (StackSide::Host, Direction::Up),
        ] {
            let profile = profile::named("freebsd-6.0").expect("a profile");
            let mut stack = TcpStack::new(Arc::new(profile), out, Seed(1));
            let syn = posthaste_tcp::Segment {
                seq: 3,
                syn: true,
                window: u16::MAX,
                ..Default::default()
            };
            let mut packet = Vec::new();
            wire::write(&mut packet, &route, &syn, [&[], &[]]).expect("a packet");
            let now = Instant::from_nanos(5);
            stack.push(now, side, &packet);
            let sent = stack.pop(now).expect("the SYN goes on");
            assert_eq!(sent.side, side.other());
            let onward = wire::read(&sent.packet).expect("a segment").segment;
            assert_eq!(
                (onward.syn, onward.options.mss),
                (true, Some(mss)),
                "{side:?}"
            );
        }
    }
}

#[test]
fn the_same_ports_begin_anew_after_time_wait() {
    let mut network = TestNetwork::new("freebsd-6.0", Direction::Down, 0);
    let close = |client: &mut SpliceHalf, server: &mut SpliceHalf, _: Instant| {
        for half in [server, client] {
            if matches!(
                half.endpoint.state(),
                TcpState::Established | TcpState::CloseWait
            ) {
                half.end();
            }
        }
    };
    network.run(Span::from_secs(1), close);
    assert_eq!(network.stack.connections(), 1, "one waits");
    let linux = network.client.endpoint.profile().clone();
    network.client = SpliceHalf::connect(&linux, route(), 77, network.now);
    network.server = SpliceHalf::listen(&linux, route().reverse(), 99);
    network.run(Span::from_secs(1), |_, _, _| {});
    assert_eq!(network.client.endpoint.state(), TcpState::Established);
    assert_eq!(network.stack.counters().connections, 2);
}

/// An end that has closed its own direction still receives: no time limit ends that.
#[test]
fn one_direction_outlives_the_other_by_minutes() {
    for out in Direction::BOTH {
        let mut network = TestNetwork::new("linux-6", out, 0);
        network.run(Span::from_secs(1), |client, _, _| {
            if client.endpoint.state() == TcpState::Established {
                client.end();
            }
        });
        network.run(Span::from_secs(150), |_, _, _| {});
        assert_eq!(
            network.server.endpoint.state(),
            TcpState::CloseWait,
            "{out}"
        );
        let data = bytes(40_000, 7);
        let (mut sent, mut got) = (0, Vec::new());
        network.run(Span::from_secs(10), |client, server, now| {
            carry(server, &data, &mut sent, &mut Vec::new(), now);
            got.extend(client.take());
        });
        assert!(got == data, "{out}: {} of {}", got.len(), data.len());
    }
}

/// A kernel fills a window to its last byte, and that byte may lie beyond the buffer.
#[test]
fn a_splice_holds_all_bytes_of_its_offered_window() {
    let linux = profile::named("linux-6").expect("a profile");
    let small = posthaste_tcp::Profile {
        receive_buffer: 64 << 10,
        ..linux
    };
    let now = Instant::from_nanos(1);
    let mut half = SpliceHalf::listen(&Arc::new(small), route().reverse(), 9);
    let mut segment = posthaste_tcp::Segment {
        syn: true,
        window: u16::MAX,
        ..Default::default()
    };
    segment.options.mss = Some(1460);
    segment.options.window_scale = Some(7);
    half.push(now, &segment, &[]);
    let mut edge = 0;
    let mut next = 1;
    // Pieces of an odd length, up to the edge of the offered window.
    loop {
        while let Some(packet) = half.pop(now) {
            let sent = wire::read(&packet).expect("a segment").segment;
            let scale = if sent.syn {
                0
            } else {
                half.endpoint.profile().offer.window_scale.unwrap_or(0)
            };
            edge = edge.max(sent.ack.unwrap_or(0) + (u32::from(sent.window) << scale));
        }
        let length = (edge - next).min(1337);
        if length == 0 {
            break;
        }
        let data = posthaste_tcp::Segment {
            seq: next,
            ack: Some(10),
            window: u16::MAX,
            len: length,
            ..Default::default()
        };
        half.push(now, &data, &vec![7; length as usize]);
        next += length;
    }
    let held = half.come.readable().concat().len() as u64;
    assert_eq!(
        (held, u64::from(next) - 1),
        (half.endpoint.readable(), held)
    );
}

/// Actions of an application, in addition to the endpoint's own calls.
impl SpliceHalf {
    fn take(&mut self) -> Vec<u8> {
        let bytes = self.come.readable().concat();
        self.come.consume(bytes.len());
        Endpoint::read(&mut self.endpoint, bytes.len() as u64);
        bytes
    }

    fn give(&mut self, bytes: &[u8], now: Instant) -> usize {
        let taken = self.endpoint.write(now, bytes.len() as u64) as usize;
        self.send.append(&bytes[..taken]);
        taken
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            self.endpoint.close();
        }
    }
}
