//! Adaptive duplicate acknowledgements: help from the receiver's end for a loss at a reply's end.
//!
//! A sender sends again quickly when three duplicate acknowledgements tell it of a hole, and only
//! after its timeout when fewer come, as after a loss among the last packets of a reply. The agent
//! stands between the link and the receiver. When the sender has finished and something is
//! missing, it waits as long as a packet that is merely late would take, and then repeats the
//! receiver's last acknowledgement until there have been three duplicates (Garcia, Hurtig,
//! Brunstrom, WEBIST 2007, their proposal; the timer is ours, see [`AdaptiveAcks`]).
//!
//! What it sends is the receiver's last packet byte for byte. Window, SACK blocks and checksums
//! are thereby right, and so are timestamps: the value is the newest that the sender has seen, so
//! PAWS takes it, and the echo is still due, since nothing in order has come since. A newer value
//! of the agent's making would make the sender refuse the receiver's own packets after it. Where
//! the last packet is not such an acknowledgement, nothing is sent.
//!
//! It follows connections from their SYN, in IPv4 and IPv6, and only what comes down: the client
//! is the receiver. It is a state machine in virtual time: [`push`](DuplicateAcks::push) what
//! passes, [`pop`](DuplicateAcks::pop) what it sends, and come back at
//! [`wake`](DuplicateAcks::wake). How often `pop` is called changes nothing.
//!
//! In an emulation it is switched on by
//! [`Emulation::duplicate_acks`](crate::Emulation::duplicate_acks), and the outcome holds its
//! [`Counters`]:
//!
//! ```no_run
//! use posthaste_emulator::agent::{AdaptiveAcks, Settings};
//! # use std::sync::Arc;
//! # use posthaste_emulator::Emulation;
//! # let plan = Arc::new(posthaste_link::Plan::default());
//! let rule = AdaptiveAcks { trigger: "silence".parse()?, ..AdaptiveAcks::default() };
//! let settings = Settings { rule, ..Settings::default() };
//! let running = Emulation::new(plan.clone(), plan).duplicate_acks(Some(settings)).start()?;
//! // ...
//! let counters = running.finish()?.duplicate_acks.expect("switched on");
//! println!("{} duplicates at {} holes", counters.injected, counters.served);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod acks;
mod connection;
mod counters;
mod received;
mod segment;
mod settings;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wire;

use std::collections::{BTreeMap, HashMap, VecDeque};

use posthaste_link::{Direction, IDLE};
use posthaste_units::{Instant, Span};

use crate::flow::Flow;
use connection::{Connection, Standing};
use segment::{Segment, Unread};

pub use counters::Counters;
pub use posthaste_tcp::receive::duplicates::{AdaptiveAcks, Trigger, TriggerError};
pub use settings::Settings;

/// Connections are looked through for those that are over at most this often.
const SWEEP: Span = Span::from_secs(1);

/// What may be sent at once, in time at the allowed rate.
const BURST: Span = Span::from_secs(1);

/// A packet that the agent sends upwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateAck {
    /// When its timer ran out: the time at which it sets out.
    pub due: Instant,
    /// Its connection.
    pub flow: Flow,
    /// The IP packet.
    pub packet: Vec<u8>,
}

/// The agent.
#[derive(Debug)]
pub struct DuplicateAcks {
    settings: Settings,
    connections: HashMap<Flow, Connection>,
    /// By when they run out, and by the connection's number.
    timers: BTreeMap<(Instant, u64), Flow>,
    ready: VecDeque<DuplicateAck>,
    counters: Counters,
    /// How many connections there have been.
    count: u64,
    /// From when on everything that was sent is within the rate.
    paid: Instant,
    swept: Option<Instant>,
}

impl DuplicateAcks {
    /// An agent that knows no connection yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            connections: HashMap::new(),
            timers: BTreeMap::new(),
            ready: VecDeque::new(),
            counters: Counters::default(),
            count: 0,
            paid: Instant::ORIGIN,
            swept: None,
        }
    }

    /// An IP packet passes: down, it reaches the receiver now; up, the receiver sends it now.
    ///
    /// Times of one direction never run back. Bytes that are no packet are counted and ignored.
    pub fn push(&mut self, now: Instant, direction: Direction, packet: &[u8]) {
        // What was due before goes first, so that the times of `pop` do not matter.
        self.expire(|due| due < now);
        let segment = match Segment::read(packet, direction) {
            Ok(segment) => segment,
            Err(Unread::Other) => return,
            Err(Unread::Unreadable) => return self.counters.unreadable += 1,
            Err(Unread::Damaged) => return self.counters.damaged += 1,
        };
        if segment.rst {
            return self.forget(&segment.flow);
        }
        if segment.opens() {
            self.open(now, direction, &segment);
        }
        let Self {
            settings, counters, ..
        } = self;
        let Some(connection) = self.connections.get_mut(&segment.flow) else {
            return;
        };
        connection.last = now;
        let before = connection.due();
        let standing = match direction {
            Direction::Up => connection.sent(now, &segment, settings, counters),
            Direction::Down => connection.delivered(now, &segment, settings, counters),
        };
        let (number, after) = (connection.number, connection.due());
        if before != after {
            before.map(|due| self.timers.remove(&(due, number)));
            after.map(|due| self.timers.insert((due, number), segment.flow));
        }
        match standing {
            Standing::Open => {}
            Standing::Over => self.forget(&segment.flow),
            Standing::Overfull => {
                self.counters.given_up += 1;
                self.forget(&segment.flow);
            }
        }
    }

    /// The next packet that the agent has sent by `now`, in the order of their times.
    pub fn pop(&mut self, now: Instant) -> Option<DuplicateAck> {
        self.expire(|due| due <= now);
        self.ready.pop_front()
    }

    /// When to pop next; none while no timer runs.
    pub fn wake(&self) -> Option<Instant> {
        let ready = self.ready.front().map(|ack| ack.due);
        ready.or_else(|| self.timers.keys().next().map(|(due, _)| *due))
    }

    /// What it has done so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How many connections it follows now; never more than [`Settings::connections`].
    pub fn followed(&self) -> usize {
        self.connections.len()
    }

    /// Timers that run now.
    pub fn running(&self) -> usize {
        self.timers.len()
    }

    fn expire(&mut self, is_due: impl Fn(Instant) -> bool) {
        while let Some(entry) = self
            .timers
            .first_entry()
            .filter(|entry| is_due(entry.key().0))
        {
            let ((due, _), flow) = entry.remove_entry();
            let Some(connection) = self.connections.get_mut(&flow) else {
                continue;
            };
            let (paid, rate) = (&mut self.paid, self.settings.per_second.interval());
            let may_send = |count: u32| {
                let until = (*paid).max(due) + rate * u64::from(count);
                let allowed = until <= due + BURST;
                if allowed {
                    *paid = until;
                }
                allowed
            };
            if let Some(burst) = connection.expire(&self.settings, &mut self.counters, may_send) {
                let ack = DuplicateAck {
                    due,
                    flow,
                    packet: burst.packet,
                };
                self.ready.extend((0..burst.count).map(|_| ack.clone()));
            }
        }
    }

    /// Begins to follow a connection, unless its SYN was seen before.
    fn open(&mut self, now: Instant, direction: Direction, syn: &Segment<'_>) {
        if let Some(known) = self.connections.get(&syn.flow) {
            if known.began_with(direction, syn) {
                return;
            }
            self.forget(&syn.flow);
        }
        if self.connections.len() >= self.settings.connections {
            self.sweep(now);
        }
        if self.connections.len() >= self.settings.connections {
            self.counters.given_up += 1;
            return;
        }
        self.count += 1;
        let connection = Connection::new(self.count, now, direction, syn);
        self.connections.insert(syn.flow, connection);
    }

    fn forget(&mut self, flow: &Flow) {
        let Some(connection) = self.connections.remove(flow) else {
            return;
        };
        if let Some(due) = connection.due() {
            self.timers.remove(&(due, connection.number));
            self.counters.abandoned += 1;
        }
    }

    /// Forgets connections without a packet for so long, sooner than a link does: one that goes on after it is not helped.
    fn sweep(&mut self, now: Instant) {
        if self.swept.is_some_and(|swept| now.since(swept) < SWEEP) {
            return;
        }
        self.swept = Some(now);
        let before = self.connections.len();
        self.connections.retain(|_, connection| {
            connection.due().is_some() || now.since(connection.last) < IDLE
        });
        self.counters.given_up += (before - self.connections.len()) as u64;
    }
}
