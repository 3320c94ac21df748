//! Sightings in the order in which things happened, each with what the packet was.
//!
//! A sighting comes when its packet leaves the link, and one that was dropped comes before those
//! that still wait in the queue. What a sender did is understood in the order in which packets
//! came to the link, knowing only what had been delivered to it by then. So sightings wait here
//! until nothing earlier can come: until the end, until 65,536 wait (about 17 MB), or until two
//! minutes have passed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use posthaste_link::{Direction, FORGOTTEN, Fate, IDLE};
use posthaste_tcp::trace::{Kind, Sending};
use posthaste_units::{Instant, Span};

use super::half::{Half, Judgement};
use super::packet::{FIN, Packet, RST, SYN, Segment};
use super::what::What;
use crate::sighting::Sighting;

/// Sightings that wait at most.
const WAITING: usize = 1 << 16;
/// Connections looked at before those that are over are forgotten the first time.
const FEW: usize = 1024;

/// A packet, and what it was.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What the emulator saw.
    pub sighting: Sighting,
    /// What it was.
    pub what: What,
    /// Its TCP header, where it has one that can be believed.
    pub tcp: Option<Tcp>,
}

/// What a TCP segment said, its numbers counted from its connection's beginning: 0 is the SYN, 1
/// the first byte. Where the beginning was not seen, 1 is the first number seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Whether it was sent before, and why again; nothing for what takes no place in the stream.
    pub sending: Option<Sending>,
    /// When the same was last sent before.
    pub before: Option<Instant>,
    /// Its flags as tcpdump writes them: `S.`, `P.`, `F.`.
    pub flags: String,
    /// The place of its first byte.
    pub sequence: u64,
    /// The place that it acknowledges: everything before has arrived.
    pub acknowledgment: Option<u64>,
    /// Bytes of data.
    pub payload: u32,
    /// Selectively acknowledged: first place, and the first one behind.
    pub sack: Vec<(u64, u64)>,
    /// Room for data in bytes, scaled where both ends' SYNs were seen to agree on it.
    pub window: u64,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Step {
    /// A packet came to the link. Copies that the link made follow their original.
    Came(Arc<Seen>),
    /// A packet reached the other end.
    Reached(Arc<Seen>),
}

impl Step {
    /// When.
    pub fn time(&self) -> Instant {
        match self {
            Self::Came(seen) => seen.sighting.arrived,
            Self::Reached(seen) => seen.sighting.sent,
        }
    }
}

impl Seen {
    /// Whether it reached the other end as it was sent.
    pub fn is_intact(&self) -> bool {
        matches!(self.sighting.fate, Fate::Delivered(marks) if marks.flipped == 0)
    }

    /// Whether it was sent before.
    pub fn is_again(&self) -> bool {
        let sending = self.tcp.as_ref().and_then(|tcp| tcp.sending);
        sending.is_some_and(|sending| sending != Sending::First)
    }
}

/// Puts sightings in order and says what they were.
#[derive(Default)]
pub struct Chronicle {
    waiting: BinaryHeap<Reverse<Waiting>>,
    under_way: BinaryHeap<Reverse<UnderWay>>,
    latest: Instant,
    ended: bool,
    connections: HashMap<u64, Connection>,
    many: usize,
}

/// A sighting by its arrival; of one arrival by connection, up first.
struct Waiting(Sighting);

/// A packet by when it reached the other end, and in the order in which it came.
struct UnderWay(Instant, u64, Arc<Seen>);

#[derive(Default)]
struct Connection {
    /// What the client sends, and what the server sends.
    halves: [Half; 2],
    last: Instant,
    life: Life,
    /// What each direction's latest was, for its copies: its position, and both.
    originals: [Option<(u64, What, Option<Tcp>)>; 2],
    steps: u64,
}

/// Whether a connection goes on, by the segments that have reached the other end intact.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Life {
    opened: bool,
    /// By FINs, what the client sends and what the server sends.
    ended: [bool; 2],
    reset: bool,
}

impl Life {
    pub(crate) fn note(&mut self, direction: Direction, tcp: &Tcp) {
        self.opened |= tcp.flags.contains('S');
        self.ended[direction as usize] |= tcp.flags.contains('F');
        self.reset |= tcp.flags.contains('R');
    }

    /// How long it is remembered without a packet: where it goes on, as long as by its link.
    pub(crate) fn patience(&self) -> Span {
        let is_over = self.reset || self.ended == [true; 2];
        match self.opened && !is_over {
            true => FORGOTTEN,
            false => IDLE * 2,
        }
    }
}

impl Chronicle {
    /// Nothing has happened.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a sighting, in the order in which the emulator gives them.
    pub fn push(&mut self, sighting: Sighting) {
        self.latest = self.latest.max(sighting.left);
        self.waiting.push(Reverse(Waiting(sighting)));
    }

    /// Nothing more will come: everything that waits can be popped.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Connections that are remembered.
    #[cfg(test)]
    pub(super) fn connections(&self) -> usize {
        self.connections.len()
    }

    /// What happened next.
    pub fn pop(&mut self) -> Option<Step> {
        let over = |time: Instant| self.ended || time + IDLE <= self.latest;
        let came = self
            .waiting
            .peek()
            .map(|Reverse(Waiting(first))| first.arrived);
        let came = came.filter(|came| over(*came) || self.waiting.len() > WAITING);
        let reached = self.under_way.peek().map(|Reverse(first)| first.0);
        match (came, reached) {
            (Some(came), Some(reached)) if reached <= came => self.pop_reached(),
            (Some(_), _) => self.pop_came(),
            (None, Some(reached)) if over(reached) => self.pop_reached(),
            _ => None,
        }
    }

    fn pop_came(&mut self) -> Option<Step> {
        let Reverse(Waiting(sighting)) = self.waiting.pop()?;
        self.forget(sighting.arrived);
        let connection = self.connections.entry(sighting.connection).or_default();
        connection.steps += 1;
        let seen = Arc::new(connection.come(sighting));
        if let Fate::Delivered(_) = seen.sighting.fate {
            let order = connection.steps;
            let under_way = UnderWay(seen.sighting.sent, order, seen.clone());
            self.under_way.push(Reverse(under_way));
        }
        Some(Step::Came(seen))
    }

    fn pop_reached(&mut self) -> Option<Step> {
        let Reverse(UnderWay(time, _, seen)) = self.under_way.pop()?;
        if let Some(connection) = self.connections.get_mut(&seen.sighting.connection) {
            connection.reach(time, &seen);
        }
        Some(Step::Reached(seen))
    }

    /// Forgets connections that have been quiet for long, whenever there are twice as many as the last time.
    fn forget(&mut self, now: Instant) {
        if self.connections.len() >= self.many.max(FEW) {
            self.connections
                .retain(|_, connection| now.since(connection.last) < connection.life.patience());
            self.many = self.connections.len() * 2;
        }
    }
}

impl Connection {
    /// A packet of this connection comes to the link.
    fn come(&mut self, sighting: Sighting) -> Seen {
        self.last = self.last.max(sighting.sent);
        let way = sighting.direction as usize;
        let original = self.originals[way].as_ref().filter(|_| sighting.copy > 0);
        let original = original
            .filter(|original| original.0 == sighting.position)
            .cloned();
        let (what, tcp) = match original {
            Some((_, what, tcp)) => (what, tcp),
            None => self.read(&sighting),
        };
        self.originals[way] = Some((sighting.position, what, tcp.clone()));
        Seen {
            sighting,
            what,
            tcp,
        }
    }

    fn read(&mut self, sighting: &Sighting) -> (What, Option<Tcp>) {
        let segment = match Packet::read(sighting) {
            Packet::Tcp(segment) => segment,
            Packet::Udp => return (What::Udp, None),
            Packet::Icmp => return (What::Icmp, None),
            Packet::Fragment => return (What::Fragment, None),
            Packet::Other => return (What::Other, None),
            Packet::Unreadable => return (What::Unreadable, None),
        };
        let damaged = matches!(sighting.fate, Fate::Delivered(marks) if marks.flipped > 0);
        if damaged && !self.halves[sighting.direction as usize].may_have_sent(&segment) {
            return (What::Unreadable, None);
        }
        self.segment(sighting.arrived, sighting.direction, &segment, damaged)
    }

    /// Where it is damaged, what it says is shown; all that is believed of it for packets to come is that something new was
    /// sent, and how much.
    fn segment(
        &mut self,
        now: Instant,
        direction: Direction,
        segment: &Segment,
        damaged: bool,
    ) -> (What, Option<Tcp>) {
        let [up, down] = &mut self.halves;
        let (own, other) = match direction {
            Direction::Up => (up, down),
            Direction::Down => (down, up),
        };
        own.begin(segment.sequence, u32::from(!segment.has(SYN)));
        if let Some(number) = segment.acknowledgment.filter(|_| !damaged) {
            other.begin(number, 1);
        }
        if segment.has(SYN) && !damaged {
            own.scale = segment.scale;
            own.may_sack = segment.may_sack;
        }
        let sequence = own.place(segment.sequence).unwrap_or_default();
        let acknowledgment = segment
            .acknowledgment
            .and_then(|number| other.place(number));
        let kind = kind(segment, sequence, acknowledgment, own, other);
        if let Some(place) = acknowledgment.filter(|_| !damaged) {
            own.acknowledging = Some((place, segment.window));
        }
        let scale = own.scale.zip(other.scale).map_or(0, |(own, _)| own);
        let places = segment.length() > 0 && !segment.has(RST);
        let judgement = places.then(|| {
            let mut end = sequence + u64::from(segment.length());
            if damaged && sequence < own.next {
                end = end.min(own.next);
            }
            let may_sack = own.may_sack && other.may_sack;
            own.send(now, segment, may_sack, (sequence, end))
        });
        let judged = |judgement: Judgement| (Some(judgement.sending), judgement.before);
        let (sending, before) = judgement.map_or((None, None), judged);
        let tcp = Tcp {
            sending,
            before,
            flags: segment.letters(),
            sequence,
            acknowledgment,
            payload: segment.payload,
            sack: blocks(segment, other),
            window: u64::from(segment.window) << if segment.has(SYN) { 0 } else { scale },
        };
        (What::Segment(kind), Some(tcp))
    }

    /// A packet of this connection reaches the other end.
    fn reach(&mut self, now: Instant, seen: &Seen) {
        let Some(tcp) = seen.tcp.as_ref().filter(|_| seen.is_intact()) else {
            return;
        };
        self.life.note(seen.sighting.direction, tcp);
        // What one end sends is what the other has been waiting for.
        let told = &mut self.halves[seen.sighting.direction.reverse() as usize];
        match tcp.acknowledgment {
            Some(place) => {
                let empty = matches!(seen.what, What::Segment(kind) if kind.is_ack());
                told.hear(now, place, empty, &tcp.sack);
            }
            None => told.hear_syn(now),
        }
    }
}

/// What a segment is, between what its end has sent and what the other has.
fn kind(
    segment: &Segment,
    sequence: u64,
    acknowledgment: Option<u64>,
    own: &Half,
    other: &Half,
) -> Kind {
    if segment.has(RST) {
        return Kind::Rst;
    } else if segment.has(SYN) {
        return if acknowledgment.is_some() {
            Kind::SynAck
        } else {
            Kind::Syn
        };
    } else if segment.payload > 0 {
        return if segment.has(FIN) {
            Kind::DataFin
        } else {
            Kind::Data
        };
    } else if segment.has(FIN) {
        return Kind::Fin;
    } else if sequence + 1 == own.next {
        return Kind::KeepAlive;
    }
    acknowledgment.map_or(Kind::Ack, |place| {
        let (blocks, beyond) = (segment.sack[0].is_some(), other.next > place);
        Kind::of_ack((place, segment.window), own.acknowledging, blocks, beyond)
    })
}

/// The blocks of a selective acknowledgement as places of the other end's stream.
fn blocks(segment: &Segment, other: &Half) -> Vec<(u64, u64)> {
    let place = |(start, end)| Some((other.place(start)?, other.place(end)?));
    segment
        .sack
        .iter()
        .flatten()
        .copied()
        .filter_map(place)
        .collect()
}

impl Waiting {
    fn key(&self) -> (Instant, u64, Direction, u64, u32) {
        let sighting = &self.0;
        (
            sighting.arrived,
            sighting.connection,
            sighting.direction,
            sighting.position,
            sighting.copy,
        )
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Waiting {}

impl Ord for UnderWay {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |under_way: &Self| (under_way.0, under_way.2.sighting.connection, under_way.1);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for UnderWay {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for UnderWay {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for UnderWay {}
