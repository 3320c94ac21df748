//! Another TCP at one end of the link: a profile of `posthaste-tcp` in place of the host's kernel.
//!
//! The stack stands between the link and a host. Each connection is two: through the link its
//! endpoint speaks by the profile, to the host by today's Linux over devices without delay, with
//! the same addresses and ports on both sides. What one side receives is written to the other;
//! the end of a direction, a reset and a refusal are passed on. Commands, names and relays work as
//! without it, clients and servers alike, and both halves speak to real kernels.
//!
//! It costs a handshake over the devices, some hundred microseconds: the SYN is let in when the
//! other side has accepted. A reply's last segment is not held back by Nagle's algorithm, since
//! where a write ended cannot be seen. Other protocols pass by it.
//!
//! A state machine in virtual time: [`push`](Stack::push) what arrives, [`pop`](Stack::pop) what
//! it sends, come back at [`wake`](Stack::wake). What happens to packets is left to the link,
//! what a TCP does to the profile.

mod counters;
mod half;
mod splice;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use posthaste_link::Direction;
use posthaste_tcp::receive::ack::AckRule;
use posthaste_tcp::wire::{self, Received, Route};
use posthaste_tcp::{Profile, profile};
use posthaste_units::{Instant, Seed, Span};
use slab::Slab;

use crate::flow::Flow;
pub use counters::Counters;
use splice::{Splice, Stacks};

/// Connections at a time; a SYN beyond is dropped and counted, as a full backlog does it.
const CONNECTIONS: usize = 65_536;
/// Bytes of a connection and direction that lie on the host's side, beside the profile's own.
const BUFFER: u64 = 64 << 10;
/// Shortest time between two turns of a connection in which nothing happens.
const PAUSE: Span = Span::from_micros(1);

/// The two sides of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Through the link, by the profile.
    Link,
    /// To the host whose place it takes.
    Host,
}

impl Side {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Link, Self::Host];

    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Link => Self::Host,
            Self::Host => Self::Link,
        }
    }
}

/// A packet that a stack sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub at: Instant,
    /// To whom.
    pub side: Side,
    /// Its connection.
    pub flow: Flow,
    /// The IP packet.
    pub packet: Vec<u8>,
}

/// What speaks to the host: today's Linux, which acknowledges at once so that a program's small
/// writes wait for nobody on this side.
fn near() -> Profile {
    let linux = profile::named("linux-6").expect("a profile of this name is there");
    Profile {
        send_buffer: BUFFER,
        receive_buffer: BUFFER,
        ack: AckRule::Rfc { delay: Span::ZERO },
        ..linux
    }
}

/// The TCP of one end.
#[derive(Debug)]
pub struct Stack {
    stacks: Stacks,
    /// Which way packets go that it sends into the link.
    out: Direction,
    connections: Slab<Connection>,
    by_flow: HashMap<Flow, usize>,
    timers: BTreeSet<(Instant, usize)>,
    ready: VecDeque<Sent>,
    counters: Counters,
    seed: u64,
}

#[derive(Debug)]
struct Connection {
    flow: Flow,
    splice: Splice,
    /// Its entry among the timers.
    due: Option<Instant>,
    /// When it was last looked at: its time never runs back.
    last: Instant,
}

impl Stack {
    /// The stack of the end from which packets travel `out` through the link.
    pub fn new(profile: Arc<Profile>, out: Direction, seed: Seed) -> Self {
        Self {
            stacks: Stacks::new(profile, Arc::new(near())),
            out,
            connections: Slab::new(),
            by_flow: HashMap::new(),
            timers: BTreeSet::new(),
            ready: VecDeque::new(),
            counters: Counters::default(),
            seed: seed.child("initial sequence numbers").0,
        }
    }

    /// Whether a packet of this connection is for the stack.
    pub fn takes(flow: &Flow) -> bool {
        flow.protocol == Flow::TCP && flow.server.port() != 0
    }

    /// An IP packet comes from one side. Bytes that are no segment are counted and dropped.
    pub fn push(&mut self, now: Instant, side: Side, packet: &[u8]) {
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
            // The same ports again while the old connection waits for its last packets to die.
            self.forget(key);
            known = None;
        }
        match known {
            Some(key) => {
                let connection = &mut self.connections[key];
                connection.last = connection.last.max(now);
                let now = connection.last;
                connection.splice.push(now, side, &received);
                self.turn(key, now);
            }
            None if opens => self.open(now, side, flow, &received),
            None if !segment.rst => self.answer_stray(now, side, flow, &received),
            None => {}
        }
    }

    /// The next packet that it has sent by `now`.
    pub fn pop(&mut self, now: Instant) -> Option<Sent> {
        while let Some((due, key)) = self.timers.first().copied().filter(|(due, _)| *due <= now) {
            let connection = &mut self.connections[key];
            connection.last = connection.last.max(due);
            let now = connection.last;
            self.turn(key, now);
        }
        self.ready.pop_front()
    }

    /// When to pop next.
    pub fn wake(&self) -> Option<Instant> {
        let ready = self.ready.front().map(|sent| sent.at);
        ready.or_else(|| self.timers.first().map(|(due, _)| *due))
    }

    /// What it has done so far, connections that still live included.
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters;
        for (_, connection) in &self.connections {
            counters.add(connection.splice.counters());
        }
        counters
    }

    /// Connections that it knows now.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// A packet's connection, by the side from which it comes.
    fn flow(&self, side: Side, route: &Route) -> Flow {
        let direction = match side {
            Side::Host => self.out,
            Side::Link => self.out.reverse(),
        };
        Flow::of_tcp(route, direction)
    }

    fn open(&mut self, now: Instant, side: Side, flow: Flow, syn: &Received<'_>) {
        if self.connections.len() >= CONNECTIONS {
            self.counters.overfull += 1;
            return;
        }
        self.counters.connections += 1;
        let isns = [self.number(), self.number()];
        let connection = Connection {
            flow,
            splice: Splice::open(&self.stacks, side, syn, isns, now),
            due: None,
            last: now,
        };
        let key = self.connections.insert(connection);
        self.by_flow.insert(flow, key);
        self.turn(key, now);
    }

    /// An initial sequence number (RFC 9293, section 3.4.1: by a function that strangers cannot
    /// foresee; here the seed stands for the secret, so that runs repeat).
    fn number(&mut self) -> u32 {
        // Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 32) as u32
    }

    /// What belongs to no connection gets a reset (RFC 9293, section 3.10.7.1).
    fn answer_stray(&mut self, now: Instant, side: Side, flow: Flow, stray: &Received<'_>) {
        self.counters.strays += 1;
        let packet = half::reset(stray);
        self.ready.push_back(Sent {
            at: now,
            side,
            flow,
            packet,
        });
    }

    /// Has a connection do what is due, and sets its timer.
    fn turn(&mut self, key: usize, now: Instant) {
        let Self {
            connections,
            ready,
            timers,
            ..
        } = self;
        let connection = &mut connections[key];
        let flow = connection.flow;
        connection.splice.run(now, |side, packet| {
            ready.push_back(Sent {
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
        self.by_flow.remove(&connection.flow);
        self.counters.add(connection.splice.counters());
    }
}
