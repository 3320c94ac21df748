//! Every packet of one transaction: what it was, why it was sent, what became of it.
//!
//! In the words of `posthaste_tcp::trace`, which an emulator's traces use, too: why something was sent
//! again is known here and inferred there. What else is said of a packet is left to `words`, pictures
//! to the rooms above.

mod words;

use posthaste_link::{Direction, Fate, Marks, Passage};
use posthaste_tcp::trace::{Kind, Sending};
use posthaste_tcp::{Counters, Offset, Segment, unwrap};
use posthaste_units::Instant;

use crate::{Carried, Sent, Witness};

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// Which way it went.
    pub direction: Direction,
    /// Its place among the packets of its direction, from 1: what patterns name.
    pub position: u64,
    /// 0 for the packet itself, 1 and up for copies that the link made.
    pub copy: u32,
    /// When it came to the link.
    pub sent: Instant,
    /// When it left the link or was dropped.
    pub left: Instant,
    /// What became of it.
    pub fate: Fate,
    /// The segment.
    pub segment: Segment,
    /// Its first place in the stream; the SYN is 0.
    pub start: Offset,
    /// The place behind it.
    pub end: Offset,
    /// The place that it acknowledges.
    pub acknowledges: Option<Offset>,
    /// Its window in bytes.
    pub window: u64,
    /// What it was.
    pub what: Kind,
    /// Why it was sent.
    pub sending: Sending,
    /// When the same was last sent before.
    pub before: Option<Instant>,
}

/// Writes down the packets of a transaction, in the order in which they are sent.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    packets: Vec<Packet>,
    halves: [Half; 2],
}

/// What one direction has been, so far.
#[derive(Clone, Debug, Default)]
struct Half {
    isn: Option<u32>,
    /// The first place that has not been sent.
    next: Offset,
    scale: Option<u8>,
    /// What it acknowledged last, and with which window.
    said: Option<(Offset, u16)>,
    counters: Counters,
    /// Packets so far, and where each of them is in the list.
    places: Vec<usize>,
}

impl Trace {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets everything, for another transaction.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The packets in the order in which they were sent; copies stand at the end.
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
        // Looking for it goes through all packets: only where there may be something to find.
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

    /// What a segment is that carries nothing.
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

    /// When something of these places was last sent.
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

    /// Where a segment's places begin, and the first behind them.
    fn places_of(&self, segment: &Segment) -> (Offset, Offset) {
        let start = self.place(segment.seq).unwrap_or_default();
        (start, start + u64::from(segment.places()))
    }
}

/// Why `segment` was sent, by what its sender had counted before it and with it.
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
