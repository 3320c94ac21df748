//! Adaptive duplicate acknowledgements: an agent at the receiver's end that helps when the end of a reply is lost.
//!
//! A sender retransmits quickly after three duplicate acknowledgements. With fewer it waits for its timeout, as after a
//! loss among the last packets of a reply. The agent stands between the link and the receiver. When the sender has
//! finished and data is missing, it waits as long as a merely late packet would take. Then it repeats the receiver's
//! last acknowledgement until there have been three duplicates (proposal of Garcia, Hurtig, Brunstrom, WEBIST 2007; the
//! timer is ours, see [`AdaptiveAcks`]).
//!
//! It sends a byte-for-byte copy of the receiver's last packet. Window, SACK blocks and checksums are therefore right,
//! and so are the timestamps: the value is the newest that the sender has seen, so PAWS accepts it, and the echo is
//! current, since no data in order has arrived since. With a newer value, the sender would reject the receiver's own
//! packets after it. If the last packet is not such an acknowledgement, the agent sends nothing.
//!
//! It follows connections from their SYN, in IPv4 and IPv6, and handles the downward direction only: the client is the
//! receiver. It is a state machine in virtual time: [`push`](DuplicateAcks::push) takes passing packets,
//! [`pop`](DuplicateAcks::pop) returns the packets to send, and [`wake`](DuplicateAcks::wake) gives the time of the
//! next call. The result does not depend on the number of calls of `pop`.
//!
//! [`Emulation::duplicate_acks`](crate::Emulation::duplicate_acks) switches it on in an emulation. The outcome holds
//! its [`AgentCounters`]:
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
mod test_packets;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};

use posthaste_link::{Direction, IDLE};
use posthaste_units::{Instant, Span};

use crate::path::flow::Flow;
use connection::{FollowedConnection, Standing};
use segment::{ObservedSegment, Unread};

pub use counters::AgentCounters;
use posthaste_tcp::receive::duplicates::DUPLICATES;
pub use posthaste_tcp::receive::duplicates::{AdaptiveAcks, Trigger, TriggerError};
pub use settings::Settings;

/// Minimum time between two searches for idle connections.
const SWEEP: Span = Span::from_secs(1);

/// Burst of the rate limit, as time at the allowed rate.
const BURST: Span = Span::from_secs(1);

/// A packet that the agent sends upwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateAck {
    /// Expiry of its timer, and the time at which it is sent.
    pub due: Instant,
    /// Connection of the packet.
    pub flow: Flow,
    /// The IP packet.
    pub packet: Vec<u8>,
}

/// The agent: a state machine in virtual time for all connections.
#[derive(Debug)]
pub struct DuplicateAcks {
    settings: Settings,
    connections: HashMap<Flow, FollowedConnection>,
    /// Connections by expiry of their timer and by number.
    timers: BTreeMap<(Instant, u64), Flow>,
    ready: VecDeque<DuplicateAck>,
    counters: AgentCounters,
    /// Connections followed so far.
    count: u64,
    /// Time from which on everything sent is within the rate.
    paid: Instant,
    swept: Option<Instant>,
}

impl DuplicateAcks {
    /// An agent without connections.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            connections: HashMap::new(),
            timers: BTreeMap::new(),
            ready: VecDeque::new(),
            counters: AgentCounters::default(),
            count: 0,
            paid: Instant::ORIGIN,
            swept: None,
        }
    }

    /// Notes a passing IP packet. Down, it reaches the receiver at `now`; up, the receiver sends it at `now`.
    ///
    /// Times of one direction must not decrease. Unreadable and damaged packets are counted and ignored.
    pub fn push(&mut self, now: Instant, direction: Direction, packet: &[u8]) {
        // Earlier timers first, so that the times of calls of `pop` do not matter.
        self.expire(|due| due < now);
        let segment = match ObservedSegment::read(packet, direction) {
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

    /// The next packet that the agent has sent by `now`, in order of time.
    pub fn pop(&mut self, now: Instant) -> Option<DuplicateAck> {
        self.expire(|due| due <= now);
        self.ready.pop_front()
    }

    /// Time of the next call of `pop`. `None` while no timer runs.
    pub fn wake(&self) -> Option<Instant> {
        let ready = self.ready.front().map(|ack| ack.due);
        ready.or_else(|| self.timers.keys().next().map(|(due, _)| *due))
    }

    /// Counters so far.
    pub const fn counters(&self) -> &AgentCounters {
        &self.counters
    }

    /// Connections followed now; never more than [`Settings::connections`].
    pub fn followed(&self) -> usize {
        self.connections.len()
    }

    /// Timers running now.
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
                debug_assert!(
                    (1..=DUPLICATES).contains(&burst.count),
                    "one to three duplicates make three"
                );
                let ack = DuplicateAck {
                    due,
                    flow,
                    packet: burst.packet,
                };
                self.ready.extend((0..burst.count).map(|_| ack.clone()));
            }
        }
        debug_assert_eq!(
            self.counters.started,
            self.counters
                .ends()
                .map(|(_, count)| count)
                .iter()
                .sum::<u64>()
                + self.timers.len() as u64,
            "a timer neither runs nor has ended, or has ended twice"
        );
    }

    /// Begins to follow a connection, unless its SYN was seen before.
    fn open(&mut self, now: Instant, direction: Direction, syn: &ObservedSegment<'_>) {
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
        let connection = FollowedConnection::new(self.count, now, direction, syn);
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

    /// Forgets connections that were idle for `IDLE`, sooner than a link does. They get no help if they continue.
    fn sweep(&mut self, now: Instant) {
        if self
            .swept
            .is_some_and(|swept| now.saturating_since(swept) < SWEEP)
        {
            return;
        }
        self.swept = Some(now);
        let before = self.connections.len();
        self.connections.retain(|_, connection| {
            connection.due().is_some() || now.saturating_since(connection.last) < IDLE
        });
        self.counters.given_up += (before - self.connections.len()) as u64;
    }
}
