//! Trace of every packet of one transaction: kind, reason of transmission, and fate.
//!
//! Uses the vocabulary of `posthaste_tcp::trace`, shared with the emulator's traces. The reason of a retransmission is
//! known here and inferred there. `words` writes labels; callers draw pictures.

mod words;

use posthaste_link::{Direction, Fate, Marks, Passage};
use posthaste_tcp::trace::{Kind, Sending};
use posthaste_tcp::{Counters, Offset, Segment, unwrap};
use posthaste_units::Instant;

use crate::{Carried, Sent, Witness};

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
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
    pub what: Kind,
    /// Reason of the transmission.
    pub sending: Sending,
    /// Time of the previous transmission of the same data.
    pub before: Option<Instant>,
}

/// Recorder of the packets of a transaction, in the order of transmission.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    packets: Vec<Packet>,
    halves: [Half; 2],
}

/// State of one direction.
#[derive(Clone, Debug, Default)]
struct Half {
    isn: Option<u32>,
    /// The first offset that has not been sent.
    next: Offset,
    scale: Option<u8>,
    /// Number and window of its last acknowledgement.
    said: Option<(Offset, u16)>,
    counters: Counters,
    /// Index in the list of each packet so far.
    places: Vec<usize>,
}

impl Trace {
    /// Creates an empty trace.
    pub fn new() -> Self {
        Self::default()
    }

    /// Clears the trace for another transaction.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Packets in the order of transmission. Copies are at the end.
    pub fn packets(&self) -> &[Packet] {
        &self.packets
    }
}

impl Witness for Trace {
    fn sent(&mut self, sent: Sent<'_>) {
        let (way, segment) = (sent.direction as usize, sent.segment);
        if segment.syn {
            let half = &mut self.halves[way];
            half.isn = Some(segment.seq);
            half.scale = segment.options.window_scale;
        }
        let (start, end) = self.halves[way].places_of(segment);
        let acknowledges = segment.ack.and_then(|ack| self.halves[1 - way].place(ack));
        let what = self.what(way, segment, acknowledges);
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
        half.said = acknowledges.map(|place| (place, segment.window));
        half.places.push(self.packets.len());
        self.packets.push(Packet {
            direction: sent.direction,
            position: half.places.len() as u64,
            copy: 0,
            sent: sent.at,
            left: Instant::FAR_FUTURE,
            fate: Fate::Delivered(Marks::default()),
            segment: *segment,
            start,
            end,
            acknowledges,
            window,
            what,
            sending,
            before,
        });
    }

    fn left(&mut self, direction: Direction, passage: &Passage<Carried>) {
        let index = passage.position as usize - 1;
        let Some(&place) = self.halves[direction as usize].places.get(index) else {
            return;
        };
        let packet = &mut self.packets[place];
        if passage.copy == 0 {
            (packet.left, packet.fate) = (passage.left, passage.fate);
            return;
        }
        let copy = Packet {
            copy: passage.copy,
            left: passage.left,
            fate: passage.fate,
            ..*packet
        };
        self.packets.push(copy);
    }
}

impl Trace {
    fn what(&self, way: usize, segment: &Segment, acknowledges: Option<Offset>) -> Kind {
        match (segment.syn, segment.fin, segment.len > 0) {
            _ if segment.rst => Kind::Rst,
            (true, ..) if segment.ack.is_some() => Kind::SynAck,
            (true, ..) => Kind::Syn,
            (_, true, true) => Kind::DataFin,
            (_, true, false) => Kind::Fin,
            (_, _, true) => Kind::Data,
            _ => self.empty(way, segment, acknowledges),
        }
    }

    /// Kind of an empty segment.
    fn empty(&self, way: usize, segment: &Segment, acknowledges: Option<Offset>) -> Kind {
        let half = &self.halves[way];
        let (start, _) = half.places_of(segment);
        if start < half.next {
            return Kind::KeepAlive;
        }
        acknowledges.map_or(Kind::Ack, |place| {
            let blocks = !segment.options.sack.is_empty();
            let beyond = self.halves[1 - way].next > place;
            Kind::of_ack((place, segment.window), half.said, blocks, beyond)
        })
    }

    /// Time of the last transmission of any of these offsets.
    fn last_sending(&self, way: usize, start: Offset, end: Offset) -> Option<Instant> {
        let half = &self.halves[way];
        let overlaps = |packet: &&Packet| packet.start < end && packet.end > start;
        let mut packets = half.places.iter().rev().map(|place| &self.packets[*place]);
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

impl Half {
    fn place(&self, number: u32) -> Option<Offset> {
        unwrap(self.isn?, number, self.next)
    }

    /// Start and end (exclusive) of a segment's offsets.
    fn places_of(&self, segment: &Segment) -> (Offset, Offset) {
        let start = self.place(segment.seq).unwrap_or_default();
        (start, start + u64::from(segment.places()))
    }
}

/// Derives the reason for `segment` from its sender's counters before and after it.
fn why(segment: &Segment, before: &Counters, after: &Counters, is_new: bool) -> Sending {
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
