//! Packet records in the order of events, each with a decoded packet.
//!
//! A record is written when its packet leaves the link. That of a dropped packet comes before those of packets still in
//! the queue. To explain a sender's behaviour, packets must be read in the order in which they arrived at the link,
//! with only the deliveries up to then. Records therefore wait here until no earlier one can come: until the end, until
//! 65,536 wait (about 17 MB), or until two minutes have passed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use posthaste_link::{Direction, FORGOTTEN, Fate, IDLE};
use posthaste_tcp::trace::{SegmentKind, Sending};
use posthaste_units::{Instant, Span};

use super::headers::{FIN, PacketHeaders, RST, SYN, SegmentHeader};
use super::observed_sender::{Judgement, ObservedSender};
use super::packet_kind::PacketKind;
use crate::path::packet_record::PacketRecord;

/// Maximum number of waiting records.
const WAITING: usize = 1 << 16;
/// Number of connections at which finished ones are first forgotten.
const FEW: usize = 1024;

/// A packet record with the decoded packet.
#[derive(Clone, Debug)]
pub struct DecodedPacket {
    /// The packet record.
    pub packet_record: PacketRecord,
    /// Kind of the packet.
    pub kind: PacketKind,
    /// Its TCP header, if it has a credible one.
    pub tcp: Option<DecodedSegment>,
}

/// A TCP segment, with numbers relative to the beginning of its connection: 0 is the SYN, 1 the first byte. If the
/// beginning was not seen, 1 is the first number seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedSegment {
    /// First transmission, or reason of the retransmission. `None` if it occupies no sequence numbers.
    pub sending: Option<Sending>,
    /// Time of the previous transmission of the same data.
    pub before: Option<Instant>,
    /// Its flags as tcpdump writes them: `S.`, `P.`, `F.`.
    pub flags: String,
    /// Relative sequence number.
    pub sequence: u64,
    /// Relative acknowledgement number: everything before has arrived.
    pub acknowledgment: Option<u64>,
    /// Bytes of data.
    pub payload: u32,
    /// Selectively acknowledged blocks: start and end of each.
    pub sack: Vec<(u64, u64)>,
    /// Window in bytes, scaled if both SYNs were seen with the option.
    pub window: u64,
}

/// An event of a packet.
#[derive(Clone, Debug)]
pub enum PacketEvent {
    /// The packet arrived at the link. Copies made by the link follow their original.
    Arrived(Arc<DecodedPacket>),
    /// The packet reached the other end.
    Delivered(Arc<DecodedPacket>),
}

impl PacketEvent {
    /// Time of the event.
    pub fn time(&self) -> Instant {
        match self {
            Self::Arrived(packet) => packet.packet_record.arrived,
            Self::Delivered(packet) => packet.packet_record.sent,
        }
    }
}

impl DecodedPacket {
    /// True if it reached the other end unchanged.
    pub fn is_intact(&self) -> bool {
        matches!(self.packet_record.fate, Fate::Delivered(marks) if marks.flipped == 0)
    }

    /// True if it is a retransmission.
    pub fn is_again(&self) -> bool {
        let sending = self.tcp.as_ref().and_then(|tcp| tcp.sending);
        sending.is_some_and(|sending| sending != Sending::First)
    }
}

/// Orders packet records and decodes them.
#[derive(Default)]
pub struct EventOrder {
    waiting: BinaryHeap<Reverse<PendingRecord>>,
    under_way: BinaryHeap<Reverse<PendingDelivery>>,
    latest: Instant,
    ended: bool,
    connections: HashMap<u64, TracedConnection>,
    many: usize,
}

/// A record ordered by arrival, then by connection, then up before down.
struct PendingRecord(PacketRecord);

/// A packet ordered by its delivery, then by connection and order of arrival.
struct PendingDelivery(Instant, u64, Arc<DecodedPacket>);

#[derive(Default)]
struct TracedConnection {
    /// The client's and the server's end.
    senders: [ObservedSender; 2],
    last: Instant,
    lifecycle: Lifecycle,
    /// Latest original of each direction, for its copies: position, kind and header.
    originals: [Option<(u64, PacketKind, Option<DecodedSegment>)>; 2],
    /// True if it has had a datagram that only QUIC has.
    is_quic: bool,
    events: u64,
}

/// State of a connection, from the segments that have reached the other end intact.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lifecycle {
    opened: bool,
    /// FINs seen: the client's and the server's.
    ended: [bool; 2],
    reset: bool,
}

impl Lifecycle {
    pub(crate) fn note(&mut self, direction: Direction, tcp: &DecodedSegment) {
        self.opened |= tcp.flags.contains('S');
        self.ended[direction as usize] |= tcp.flags.contains('F');
        self.reset |= tcp.flags.contains('R');
    }

    /// Time for which the connection is remembered without a packet. An open one is kept as long as by its link.
    pub(crate) fn forgotten_after(&self) -> Span {
        let is_over = self.reset || self.ended == [true; 2];
        if self.opened && !is_over {
            FORGOTTEN
        } else {
            IDLE * 2
        }
    }
}

impl EventOrder {
    /// An empty event order.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a packet record, in the emulator's order.
    pub fn push(&mut self, packet_record: PacketRecord) {
        debug_assert!(!self.ended, "a record came after the end");
        debug_assert!(
            packet_record.arrived <= packet_record.left,
            "a packet left its link before it arrived"
        );
        self.latest = self.latest.max(packet_record.left);
        self.waiting.push(Reverse(PendingRecord(packet_record)));
    }

    /// Ends the input: all waiting records can be popped.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Connections remembered.
    #[cfg(test)]
    pub(super) fn connections(&self) -> usize {
        self.connections.len()
    }

    /// The next event.
    pub fn pop(&mut self) -> Option<PacketEvent> {
        let over = |time: Instant| self.ended || time + IDLE <= self.latest;
        let came = self
            .waiting
            .peek()
            .map(|Reverse(PendingRecord(first))| first.arrived);
        let came = came.filter(|came| over(*came) || self.waiting.len() > WAITING);
        let reached = self.under_way.peek().map(|Reverse(first)| first.0);
        match (came, reached) {
            (Some(came), Some(reached)) if reached <= came => self.pop_reached(),
            (Some(_), _) => self.pop_came(),
            (None, Some(reached)) if over(reached) => self.pop_reached(),
            _ => None,
        }
    }

    fn pop_came(&mut self) -> Option<PacketEvent> {
        let Reverse(PendingRecord(packet_record)) = self.waiting.pop()?;
        self.forget(packet_record.arrived);
        let connection = self
            .connections
            .entry(packet_record.connection)
            .or_default();
        connection.events += 1;
        let packet = Arc::new(connection.come(packet_record));
        if let Fate::Delivered(_) = packet.packet_record.fate {
            let order = connection.events;
            let under_way = PendingDelivery(packet.packet_record.sent, order, packet.clone());
            self.under_way.push(Reverse(under_way));
        }
        Some(PacketEvent::Arrived(packet))
    }

    fn pop_reached(&mut self) -> Option<PacketEvent> {
        let Reverse(PendingDelivery(time, _, packet)) = self.under_way.pop()?;
        if let Some(connection) = self.connections.get_mut(&packet.packet_record.connection) {
            connection.reach(time, &packet);
        }
        Some(PacketEvent::Delivered(packet))
    }

    /// Forgets connections that were quiet for long, whenever their number has doubled since the last time.
    fn forget(&mut self, now: Instant) {
        if self.connections.len() >= self.many.max(FEW) {
            self.connections.retain(|_, connection| {
                now.saturating_since(connection.last) < connection.lifecycle.forgotten_after()
            });
            self.many = self.connections.len() * 2;
        }
    }
}

impl TracedConnection {
    /// Handles a packet that arrives at the link.
    fn come(&mut self, packet_record: PacketRecord) -> DecodedPacket {
        self.last = self.last.max(packet_record.sent);
        let way = packet_record.direction as usize;
        let original = self.originals[way]
            .as_ref()
            .filter(|_| packet_record.copy > 0);
        let original = original
            .filter(|original| original.0 == packet_record.position)
            .cloned();
        let (kind, tcp) = match original {
            Some((_, kind, tcp)) => (kind, tcp),
            None => self.read(&packet_record),
        };
        self.originals[way] = Some((packet_record.position, kind, tcp.clone()));
        DecodedPacket {
            packet_record,
            kind,
            tcp,
        }
    }

    fn read(&mut self, packet_record: &PacketRecord) -> (PacketKind, Option<DecodedSegment>) {
        let segment = match PacketHeaders::read(packet_record) {
            PacketHeaders::Tcp(segment) => segment,
            PacketHeaders::Udp => return (self.datagram(packet_record), None),
            PacketHeaders::Icmp => return (PacketKind::Icmp, None),
            PacketHeaders::Fragment => return (PacketKind::Fragment, None),
            PacketHeaders::Other => return (PacketKind::Other, None),
            PacketHeaders::Unreadable => return (PacketKind::Unreadable, None),
        };
        let damaged = matches!(packet_record.fate, Fate::Delivered(marks) if marks.flipped > 0);
        if damaged && !self.senders[packet_record.direction as usize].may_have_sent(&segment) {
            return (PacketKind::Unreadable, None);
        }
        self.segment(
            packet_record.arrived,
            packet_record.direction,
            &segment,
            damaged,
        )
    }

    /// Kind of a UDP datagram. QUIC packets count from the first datagram on that identifies the connection as QUIC.
    fn datagram(&mut self, packet_record: &PacketRecord) -> PacketKind {
        let is_intact = matches!(packet_record.fate, Fate::Delivered(marks) if marks.flipped == 0)
            || matches!(packet_record.fate, Fate::Dropped(_));
        let Some(datagram) = packet_record.quic else {
            return PacketKind::Udp;
        };
        self.is_quic |= is_intact && datagram.identifies_quic();
        if self.is_quic {
            PacketKind::Quic(datagram)
        } else {
            PacketKind::Udp
        }
    }

    /// Decodes a segment. A damaged one is shown as it is, but changes the state only by the amount of new data sent.
    fn segment(
        &mut self,
        now: Instant,
        direction: Direction,
        segment: &SegmentHeader,
        damaged: bool,
    ) -> (PacketKind, Option<DecodedSegment>) {
        let [up, down] = &mut self.senders;
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
        // Numbers from before the beginning of the connection count as its beginning.
        let sequence = own.offset_of(segment.sequence).unwrap_or(0);
        let acknowledgment = segment
            .acknowledgment
            .and_then(|number| other.offset_of(number));
        let kind = kind(segment, sequence, acknowledgment, own, other);
        if let Some(offset) = acknowledgment.filter(|_| !damaged) {
            own.acknowledging = Some((offset, segment.window));
        }
        let scale = own.scale.zip(other.scale).map_or(0, |(own, _)| own);
        let places = segment.length() > 0 && !segment.has(RST);
        let judgement = places.then(|| {
            let mut end = sequence + u64::from(segment.length());
            if damaged && sequence < own.next {
                end = end.min(own.next);
            }
            let may_sack = own.may_sack && other.may_sack;
            own.send(now, segment, may_sack, sequence, end)
        });
        let judged = |judgement: Judgement| (Some(judgement.sending), judgement.before);
        let (sending, before) = judgement.map_or((None, None), judged);
        let tcp = DecodedSegment {
            sending,
            before,
            flags: segment.letters(),
            sequence,
            acknowledgment,
            payload: segment.payload,
            sack: blocks(segment, other),
            window: u64::from(segment.window) << if segment.has(SYN) { 0 } else { scale },
        };
        (PacketKind::Segment(kind), Some(tcp))
    }

    /// Handles a packet that reaches the other end.
    fn reach(&mut self, now: Instant, packet: &DecodedPacket) {
        let Some(tcp) = packet.tcp.as_ref().filter(|_| packet.is_intact()) else {
            return;
        };
        self.lifecycle.note(packet.packet_record.direction, tcp);
        // A packet of one end is news for the other.
        let heard = &mut self.senders[packet.packet_record.direction.reverse() as usize];
        match tcp.acknowledgment {
            Some(offset) => {
                let empty = matches!(packet.kind, PacketKind::Segment(kind) if kind.is_ack());
                heard.hear(now, offset, empty, &tcp.sack);
            }
            None => heard.hear_syn(now),
        }
    }
}

/// Kind of a segment, from the state of both ends.
fn kind(
    segment: &SegmentHeader,
    sequence: u64,
    acknowledgment: Option<u64>,
    own: &ObservedSender,
    other: &ObservedSender,
) -> SegmentKind {
    if segment.has(RST) {
        return SegmentKind::Rst;
    } else if segment.has(SYN) {
        return if acknowledgment.is_some() {
            SegmentKind::SynAck
        } else {
            SegmentKind::Syn
        };
    } else if segment.payload > 0 {
        return if segment.has(FIN) {
            SegmentKind::DataFin
        } else {
            SegmentKind::Data
        };
    } else if segment.has(FIN) {
        return SegmentKind::Fin;
    } else if sequence + 1 == own.next {
        return SegmentKind::KeepAlive;
    }
    acknowledgment.map_or(SegmentKind::Ack, |offset| {
        let (blocks, beyond) = (segment.sack[0].is_some(), other.next > offset);
        SegmentKind::of_ack((offset, segment.window), own.acknowledging, blocks, beyond)
    })
}

/// The blocks of a selective acknowledgement, as relative numbers of the other end's stream.
fn blocks(segment: &SegmentHeader, other: &ObservedSender) -> Vec<(u64, u64)> {
    let offset = |(start, end)| Some((other.offset_of(start)?, other.offset_of(end)?));
    segment
        .sack
        .iter()
        .flatten()
        .copied()
        .filter_map(offset)
        .collect()
}

impl PendingRecord {
    fn key(&self) -> (Instant, u64, Direction, u64, u32) {
        let packet_record = &self.0;
        (
            packet_record.arrived,
            packet_record.connection,
            packet_record.direction,
            packet_record.position,
            packet_record.copy,
        )
    }
}

impl Ord for PendingRecord {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for PendingRecord {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PendingRecord {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for PendingRecord {}

impl Ord for PendingDelivery {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |under_way: &Self| {
            (
                under_way.0,
                under_way.2.packet_record.connection,
                under_way.1,
            )
        };
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for PendingDelivery {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PendingDelivery {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PendingDelivery {}
