//! A TCP stack at one end of the link: a profile of `posthaste-tcp` in place of the host's kernel.
//!
//! The stack stands between the link and a host. Each connection consists of two halves. The half through the link
//! follows the profile. The half to the host follows today's Linux, over devices without delay. Both use the same
//! addresses and ports. Data received on one side is written to the other. The end of a direction, resets and refusals
//! are forwarded. Commands, names and relays work as without the stack, for clients and servers, and both halves have
//! real kernels as peers.
//!
//! It adds a handshake over the devices, some hundred microseconds: a SYN is admitted after the other side has
//! accepted. Nagle's algorithm does not hold back the last segment of a reply, since the end of a write is not visible.
//! Other protocols bypass the stack.
//!
//! It is a state machine in virtual time: [`push`](TcpStack::push) takes arriving packets, [`pop`](TcpStack::pop) returns the
//! packets to send, and [`wake`](TcpStack::wake) gives the time of the next call. The link decides the fate of packets,
//! and the profile the behaviour of TCP.

mod counters;
mod half;
mod splice;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use posthaste_link::Direction;
use posthaste_tcp::receive::ack::AckRule;
use posthaste_tcp::wire::{self, ReceivedPacket, SegmentRoute};
use posthaste_tcp::{Profile, profile};
use posthaste_units::{Instant, Seed, Span};
use slab::Slab;

use crate::path::flow::Flow;
pub use counters::StackCounters;
use splice::{SideProfiles, Splice};

/// Maximum number of connections. A further SYN is dropped and counted, as with a full backlog.
const CONNECTIONS: usize = 65_536;
/// Buffer of each connection and direction on the host's side in bytes, in addition to the profile's own.
const BUFFER: u64 = 64 << 10;
/// Minimum time between two runs of an inactive connection.
const PAUSE: Span = Span::from_micros(1);

/// The two sides of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackSide {
    /// Through the link, with the profile.
    Link,
    /// To the host that the stack replaces.
    Host,
}

impl StackSide {
    /// Both sides.
    pub const BOTH: [Self; 2] = [Self::Link, Self::Host];

    /// The other side.
    pub const fn other(self) -> Self {
        match self {
            Self::Link => Self::Host,
            Self::Host => Self::Link,
        }
    }
}

/// A packet that a stack sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// Time of sending.
    pub at: Instant,
    /// Side of the receiver.
    pub side: StackSide,
    /// Connection of the packet.
    pub flow: Flow,
    /// The IP packet.
    pub packet: Vec<u8>,
}

/// Profile towards the host: today's Linux with immediate ACKs, so that small writes of a program do not wait on this
/// side.
fn near() -> Profile {
    let linux = profile::named("linux-6").expect("a profile of this name is there");
    Profile {
        send_buffer: BUFFER,
        receive_buffer: BUFFER,
        ack: AckRule::Rfc { delay: Span::ZERO },
        ..linux
    }
}

/// The TCP stack of one end.
#[derive(Debug)]
pub struct TcpStack {
    profiles: SideProfiles,
    /// Direction of packets that it sends into the link.
    out: Direction,
    connections: Slab<SplicedConnection>,
    by_flow: HashMap<Flow, usize>,
    timers: BTreeSet<(Instant, usize)>,
    ready: VecDeque<SentPacket>,
    counters: StackCounters,
    seed: u64,
}

#[derive(Debug)]
struct SplicedConnection {
    flow: Flow,
    splice: Splice,
    /// Its entry among the timers.
    due: Option<Instant>,
    /// Time of its last run. Its time never decreases.
    last: Instant,
}

impl TcpStack {
    /// The stack of the end from which packets travel `out` through the link.
    pub fn new(profile: Arc<Profile>, out: Direction, seed: Seed) -> Self {
        Self {
            profiles: SideProfiles::new(profile, Arc::new(near())),
            out,
            connections: Slab::new(),
            by_flow: HashMap::new(),
            timers: BTreeSet::new(),
            ready: VecDeque::new(),
            counters: StackCounters::default(),
            seed: seed.child("initial sequence numbers").0,
        }
    }

    /// True if packets of this connection are for the stack.
    pub fn takes(flow: &Flow) -> bool {
        flow.protocol == Flow::TCP && flow.server.port() != 0
    }

    /// Processes an IP packet from one side. Bytes that are not a segment are counted and dropped.
    pub fn push(&mut self, now: Instant, side: StackSide, packet: &[u8]) {
        let received = match wire::read(packet) {
            Ok(received) => received,
            Err(refusal) => return self.counters.refuse(refusal),
        };
        let flow = self.flow(side, &received.route);
        let segment = &received.segment;
        let opens = segment.syn && segment.ack.is_none() && !segment.rst;
        let mut known = self.by_flow.get(&flow).copied();
        if let Some(key) = known
            && opens
            && self.connections[key].splice.is_waiting_only()
        {
            // A new connection on the same ports while the old one is in TIME-WAIT.
            self.forget(key);
            known = None;
        }
        match known {
            Some(key) => {
                let connection = &mut self.connections[key];
                connection.last = connection.last.max(now);
                let now = connection.last;
                connection.splice.push(now, side, &received);
                self.run_connection(key, now);
            }
            None if opens => self.open(now, side, flow, &received),
            None if !segment.rst => self.answer_stray(now, side, flow, &received),
            None => {}
        }
    }

    /// The next packet that it has sent by `now`.
    pub fn pop(&mut self, now: Instant) -> Option<SentPacket> {
        while let Some((due, key)) = self.timers.first().copied().filter(|(due, _)| *due <= now) {
            let connection = &mut self.connections[key];
            connection.last = connection.last.max(due);
            let now = connection.last;
            self.run_connection(key, now);
        }
        self.ready.pop_front()
    }

    /// Time of the next call of `pop`.
    pub fn wake(&self) -> Option<Instant> {
        let ready = self.ready.front().map(|sent| sent.at);
        ready.or_else(|| self.timers.first().map(|(due, _)| *due))
    }

    /// Counters so far, including open connections.
    pub fn counters(&self) -> StackCounters {
        let mut counters = self.counters;
        for (_, connection) in &self.connections {
            counters.add(connection.splice.counters());
        }
        counters
    }

    /// Connections known now.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Connection of a packet from this side.
    fn flow(&self, side: StackSide, route: &SegmentRoute) -> Flow {
        let direction = match side {
            StackSide::Host => self.out,
            StackSide::Link => self.out.reverse(),
        };
        Flow::of_tcp(route, direction)
    }

    fn open(&mut self, now: Instant, side: StackSide, flow: Flow, syn: &ReceivedPacket<'_>) {
        if self.connections.len() >= CONNECTIONS {
            self.counters.overfull += 1;
            return;
        }
        self.counters.connections += 1;
        let isns = [self.number(), self.number()];
        let connection = SplicedConnection {
            flow,
            splice: Splice::open(&self.profiles, side, syn, isns, now),
            due: None,
            last: now,
        };
        let key = self.connections.insert(connection);
        let earlier = self.by_flow.insert(flow, key);
        debug_assert!(earlier.is_none(), "a flow has two connections");
        self.run_connection(key, now);
    }

    /// An initial sequence number (RFC 9293, section 3.4.1, requires a function that others cannot predict; the seed
    /// takes the place of the secret, so that runs can be repeated).
    fn number(&mut self) -> u32 {
        // Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 32) as u32
    }

    /// Answers a packet without a connection by a reset (RFC 9293, section 3.10.7.1).
    fn answer_stray(
        &mut self,
        now: Instant,
        side: StackSide,
        flow: Flow,
        stray: &ReceivedPacket<'_>,
    ) {
        self.counters.strays += 1;
        let packet = half::reset(stray);
        self.ready.push_back(SentPacket {
            at: now,
            side,
            flow,
            packet,
        });
    }

    /// Runs a connection, and sets its timer.
    fn run_connection(&mut self, key: usize, now: Instant) {
        let Self {
            connections,
            ready,
            timers,
            ..
        } = self;
        let connection = &mut connections[key];
        debug_assert_eq!(connection.last, now, "a connection runs at another time");
        let flow = connection.flow;
        connection.splice.run(now, |side, packet| {
            ready.push_back(SentPacket {
                at: now,
                side,
                flow,
                packet,
            });
        });
        if connection.splice.is_over() {
            return self.forget(key);
        }
        let due = connection.splice.wake().map(|wake| wake.max(now + PAUSE));
        if due != connection.due {
            connection.due.map(|due| timers.remove(&(due, key)));
            due.map(|due| timers.insert((due, key)));
            connection.due = due;
        }
    }

    fn forget(&mut self, key: usize) {
        let connection = self.connections.remove(key);
        connection.due.map(|due| self.timers.remove(&(due, key)));
        let known = self.by_flow.remove(&connection.flow);
        debug_assert_eq!(known, Some(key), "a flow leads to another connection");
        debug_assert_eq!(
            self.connections.len(),
            self.by_flow.len(),
            "a connection without a flow, or a flow without a connection"
        );
        debug_assert!(
            self.timers.len() <= self.connections.len(),
            "a connection has several timers"
        );
        self.counters.add(connection.splice.counters());
    }
}
