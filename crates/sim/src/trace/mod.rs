//! Every packet of one transaction: what it was, why it was sent, what became of it.
//!
//! In the words of the emulator's traces, so that a simulated and an emulated ladder can lie side by
//! side. Why something was sent again is known here and inferred there. Words and pictures are left
//! to `words` and to the rooms above.

mod what;
mod words;

use posthaste_link::{Direction, Fate, Marks, Passage};
use posthaste_tcp::{Counters, Offset, Segment, unwrap};
use posthaste_units::Instant;

pub use what::{Sending, What};

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
    pub what: What,
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
        let before = self.last_sending(way, start, end);
        let window = self.window(way, segment);
        let half = &mut self.halves[way];
        let is_new = end > half.next || start == end;
        let sending = Sending::of(segment, &half.counters, sent.counters, is_new);
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
            before: before.filter(|_| sending != Sending::First),
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
    fn what(&self, way: usize, segment: &Segment, acknowledges: Option<Offset>) -> What {
        match (segment.syn, segment.fin, segment.len > 0) {
            _ if segment.rst => What::Rst,
            (true, ..) if segment.ack.is_some() => What::SynAck,
            (true, ..) => What::Syn,
            (_, true, true) => What::DataFin,
            (_, true, false) => What::Fin,
            (_, _, true) => What::Data,
            _ => self.empty(way, segment, acknowledges),
        }
    }

    /// What a segment is that carries nothing.
    fn empty(&self, way: usize, segment: &Segment, acknowledges: Option<Offset>) -> What {
        let half = &self.halves[way];
        let (start, _) = half.places_of(segment);
        if start < half.next {
            return What::KeepAlive;
        }
        let Some(place) = acknowledges else {
            return What::Ack;
        };
        match half.said {
            Some((said, window)) if said == place => {
                let blocks = !segment.options.sack.is_empty();
                if window != segment.window && !blocks {
                    What::WindowUpdate
                } else if self.halves[1 - way].next > place {
                    What::DupAck
                } else {
                    What::Ack
                }
            }
            _ => What::Ack,
        }
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
