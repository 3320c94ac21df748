//! Trace of every packet of one transaction: kind, reason of transmission, and fate.
//!
//! Uses the vocabulary of `posthaste_tcp::trace`, shared with the emulator's traces. The reason of a retransmission is
//! known here and inferred there. `text` writes labels; callers draw pictures.

mod text;

use posthaste_link::{DeliveryMarks, Departure, Direction, Fate};
use posthaste_tcp::trace::{SegmentKind, Sending};
use posthaste_tcp::{EndpointCounters, Offset, Segment, unwrap};
use posthaste_units::Instant;

use crate::{Carried, OfferedSegment, Witness};

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracedPacket {
    /// Direction of travel.
    pub direction: Direction,
    /// Position among the packets of its direction, from 1. Patterns refer to this number.
    pub position: u64,
    /// 0 for the original, 1 and up for copies made by the link.
    pub copy: u32,
    /// Time of arrival at the link.
    pub sent: Instant,
    /// Time of departure or drop.
    pub left: Instant,
    /// Delivery or drop.
    pub fate: Fate,
    /// The segment.
    pub segment: Segment,
    /// Offset of its first sequence number. The SYN is 0.
    pub start: Offset,
    /// End of its sequence numbers (exclusive).
    pub end: Offset,
    /// Offset that it acknowledges.
    pub acknowledges: Option<Offset>,
    /// Window in bytes.
    pub window: u64,
    /// Kind of the segment.
    pub kind: SegmentKind,
    /// Reason of the transmission.
    pub sending: Sending,
    /// Time of the previous transmission of the same data.
    pub before: Option<Instant>,
}

/// Recorder of the packets of a transaction, in the order of transmission.
#[derive(Clone, Debug, Default)]
pub struct PacketTrace {
    packets: Vec<TracedPacket>,
    halves: [DirectionTrace; 2],
}

/// State of one direction.
#[derive(Clone, Debug, Default)]
struct DirectionTrace {
    isn: Option<u32>,
    /// The first offset that has not been sent.
    next: Offset,
    scale: Option<u8>,
    /// Number and window of its last acknowledgement.
    last_ack: Option<(Offset, u16)>,
    counters: EndpointCounters,
    /// Index in the list of each packet so far.
    places: Vec<usize>,
}

impl PacketTrace {
    /// Creates an empty trace.
    pub fn new() -> Self {
        Self::default()
    }

    /// Clears the trace for another transaction.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Packets in the order of transmission. Copies are at the end.
    pub fn packets(&self) -> &[TracedPacket] {
        &self.packets
    }
}

impl Witness for PacketTrace {
    fn sent(&mut self, sent: OfferedSegment<'_>) {
        let (way, segment) = (sent.direction as usize, sent.segment);
        if segment.syn {
            let half = &mut self.halves[way];
            half.isn = Some(segment.seq);
            half.scale = segment.options.window_scale;
        }
        let (start, end) = self.halves[way].places_of(segment);
        let acknowledges = segment
            .ack
            .and_then(|ack| self.halves[1 - way].offset_of(ack));
        let kind = self.kind_of(way, segment, acknowledges);
        let window = self.window(way, segment);
        let half = &self.halves[way];
        let is_new = end > half.next || start == end;
        let sending = why(segment, &half.counters, sent.counters, is_new);
        // The search goes through all packets, so it runs only for retransmissions.
        let before = match sending {
            Sending::First => None,
            _ => self.last_sending(way, start, end),
        };
        let half = &mut self.halves[way];
        half.counters = *sent.counters;
        half.next = half.next.max(end);
        half.last_ack = acknowledges.map(|number| (number, segment.window));
        half.places.push(self.packets.len());
        self.packets.push(TracedPacket {
            direction: sent.direction,
            position: half.places.len() as u64,
            copy: 0,
            sent: sent.at,
            left: Instant::FAR_FUTURE,
            fate: Fate::Delivered(DeliveryMarks::default()),
            segment: *segment,
            start,
            end,
            acknowledges,
            window,
            kind,
            sending,
            before,
        });
    }

    fn left(&mut self, direction: Direction, departure: &Departure<Carried>) {
        let index = departure.position as usize - 1;
        let Some(&number) = self.halves[direction as usize].places.get(index) else {
            return;
        };
        let packet = &mut self.packets[number];
        debug_assert_eq!(
            packet.position, departure.position,
            "a packet leaves at the position of another"
        );
        debug_assert!(
            departure.left >= packet.sent,
            "a packet leaves before it was sent"
        );
        if departure.copy == 0 {
            (packet.left, packet.fate) = (departure.left, departure.fate);
            return;
        }
        let copy = TracedPacket {
            copy: departure.copy,
            left: departure.left,
            fate: departure.fate,
            ..*packet
        };
        self.packets.push(copy);
    }
}

impl PacketTrace {
    fn kind_of(&self, way: usize, segment: &Segment, acknowledges: Option<Offset>) -> SegmentKind {
        match (segment.syn, segment.fin, segment.len > 0) {
            _ if segment.rst => SegmentKind::Rst,
            (true, ..) if segment.ack.is_some() => SegmentKind::SynAck,
            (true, ..) => SegmentKind::Syn,
            (_, true, true) => SegmentKind::DataFin,
            (_, true, false) => SegmentKind::Fin,
            (_, _, true) => SegmentKind::Data,
            _ => self.empty(way, segment, acknowledges),
        }
    }

    /// Kind of an empty segment.
    fn empty(&self, way: usize, segment: &Segment, acknowledges: Option<Offset>) -> SegmentKind {
        let half = &self.halves[way];
        let (start, _) = half.places_of(segment);
        if start < half.next {
            return SegmentKind::KeepAlive;
        }
        acknowledges.map_or(SegmentKind::Ack, |number| {
            let blocks = !segment.options.sack.is_empty();
            let beyond = self.halves[1 - way].next > number;
            SegmentKind::of_ack((number, segment.window), half.last_ack, blocks, beyond)
        })
    }

    /// Time of the last transmission of any of these offsets.
    fn last_sending(&self, way: usize, start: Offset, end: Offset) -> Option<Instant> {
        let half = &self.halves[way];
        let overlaps = |packet: &&TracedPacket| packet.start < end && packet.end > start;
        let mut packets = half
            .places
            .iter()
            .rev()
            .map(|number| &self.packets[*number]);
        packets.find(overlaps).map(|packet| packet.sent)
    }

    fn window(&self, way: usize, segment: &Segment) -> u64 {
        let shift = match (self.halves[way].scale, self.halves[1 - way].scale) {
            (Some(own), Some(_)) if !segment.syn => own,
            _ => 0,
        };
        u64::from(segment.window) << shift
    }
}

impl DirectionTrace {
    fn offset_of(&self, number: u32) -> Option<Offset> {
        unwrap(self.isn?, number, self.next)
    }

    /// Start and end (exclusive) of a segment's offsets.
    fn places_of(&self, segment: &Segment) -> (Offset, Offset) {
        let start = self.offset_of(segment.seq).unwrap_or_default();
        (start, start + u64::from(segment.places()))
    }
}

/// Derives the reason for `segment` from its sender's counters before and after it.
fn why(
    segment: &Segment,
    before: &EndpointCounters,
    after: &EndpointCounters,
    is_new: bool,
) -> Sending {
    let timed_out = after.timeouts > before.timeouts;
    if after.probes > before.probes {
        Sending::Probe
    } else if after.fast > before.fast {
        Sending::Fast
    } else if after.after_timeout > before.after_timeout || (timed_out && segment.syn) {
        if timed_out {
            Sending::Timeout
        } else {
            Sending::AfterTimeout
        }
    } else if is_new {
        Sending::First
    } else {
        Sending::Answer
    }
}
