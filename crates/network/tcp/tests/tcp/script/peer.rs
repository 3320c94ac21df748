//! State of the scripted peer, so that scripts can omit the rest: its offset in the stream, windows in bytes, and
//! timestamps as a receiver echoes them.

use posthaste_tcp::{Options, SackBlocks, Segment, Timestamps};
use posthaste_units::{Instant, Span};

use super::parse::WrittenSegment;
use super::settings::{PeerOffer, Settings};

/// The peer's timestamps count milliseconds and began long ago.
const CLOCK: u32 = 500_000;

/// The other end.
#[derive(Clone, Debug)]
pub(super) struct ScriptedPeer {
    offer: PeerOffer,
    /// The endpoint's initial sequence number.
    isn: u32,
    /// Next offset of the peer's stream.
    next: i64,
    /// Offset that the peer has acknowledged.
    acknowledged: i64,
    /// Options of the SYN of each side, the peer's first.
    syns: [Option<Options>; 2],
    /// Everything that the endpoint sent with a timestamp: start, end, value.
    seen: Vec<(i64, i64, u32)>,
    /// The timestamp value that the peer echoes now (RFC 7323, section 4.3).
    recent: u32,
}

impl ScriptedPeer {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            offer: settings.peer,
            isn: settings.isn,
            next: 0,
            acknowledged: 0,
            syns: [None; 2],
            seen: Vec::new(),
            recent: 0,
        }
    }

    /// Offset of one of the endpoint's sequence numbers.
    pub(super) fn offset_of(&self, number: u32) -> i64 {
        i64::from(number.wrapping_sub(self.isn) as i32)
    }

    /// Offset of one of the peer's own sequence numbers.
    pub(super) fn own_offset(&self, number: u32) -> i64 {
        i64::from(number.wrapping_sub(self.offer.isn) as i32)
    }

    fn both(&self, option: impl Fn(&Options) -> bool) -> bool {
        self.syns
            .iter()
            .all(|syn| syn.as_ref().is_some_and(&option))
    }

    fn scaled(&self) -> bool {
        self.both(|syn| syn.window_scale.is_some())
    }

    /// Window of a segment of the endpoint, in bytes.
    pub(super) fn window(&self, segment: &Segment) -> u64 {
        let shift = self.syns[1].and_then(|syn| syn.window_scale);
        let shift = shift.filter(|_| self.scaled() && !segment.syn);
        u64::from(segment.window) << shift.unwrap_or_default()
    }

    /// Records a segment sent by the endpoint.
    pub(super) fn note(&mut self, segment: &Segment) {
        if segment.syn {
            self.syns[1] = Some(segment.options);
        }
        if let Some(timestamps) = segment.options.timestamps {
            let start = self.offset_of(segment.seq);
            let end = start + i64::from(segment.places());
            self.seen.push((start, end, timestamps.value));
        }
    }

    /// Builds the segment that leaves the peer now.
    pub(super) fn segment(&mut self, written: &WrittenSegment, now: Instant) -> Segment {
        let seq = written.data.map(|[start, _]| start).or(written.seq);
        let seq = seq.unwrap_or(self.next);
        let len = written.data.map_or(0, |[start, end]| end - start);
        let ack = match (written.ack, written.no_ack) {
            (_, true) => None,
            (Some(ack), _) => Some(ack),
            // The first SYN is the only segment without an acknowledgement.
            (None, _) => (!written.syn || self.syns[1].is_some()).then_some(self.acknowledged),
        };
        if let Some(ack) = ack {
            self.acknowledge(ack, written.echo_original);
        }
        let options = self.options(written, now);
        if written.syn {
            self.syns[0] = Some(options);
        }
        let places = len + i64::from(written.syn) + i64::from(written.fin);
        self.next = self.next.max(seq + places);
        let bytes = written.window.unwrap_or(self.offer.window);
        let scale = self.offer.scale.filter(|_| self.scaled() && !written.syn);
        Segment {
            seq: self.offer.isn.wrapping_add(seq as u32),
            ack: ack.map(|ack| self.isn.wrapping_add(ack as u32)),
            syn: written.syn,
            fin: written.fin,
            rst: written.rst,
            psh: written.psh,
            window: u16::try_from(bytes >> scale.unwrap_or_default()).unwrap_or(u16::MAX),
            options,
            len: len as u32,
        }
    }

    /// Stores the timestamp of the segment that moves the edge, or moved it when first sent.
    fn acknowledge(&mut self, ack: i64, original: bool) {
        if ack > self.acknowledged {
            let edge = self.acknowledged;
            let mut holding = self
                .seen
                .iter()
                .filter(|(start, end, _)| (*start..*end).contains(&edge));
            let taken = if original {
                holding.next()
            } else {
                holding.next_back()
            };
            if let Some((_, _, value)) = taken {
                self.recent = *value;
            }
            self.acknowledged = ack;
        }
    }

    fn options(&self, written: &WrittenSegment, now: Instant) -> Options {
        let mut options = Options::default();
        if written.syn {
            let answers = |option: fn(&Options) -> bool| self.syns[1].as_ref().is_none_or(option);
            options.mss = written.mss.or(self.offer.mss);
            let scale = self
                .offer
                .scale
                .filter(|_| answers(|syn| syn.window_scale.is_some()));
            options.window_scale = written.scale.or(scale);
            let sack = self.offer.sack && answers(|syn| syn.sack_permitted);
            options.sack_permitted = written.sack_ok || sack;
        }
        let stamped = if written.syn {
            self.offer.timestamps
                && self.syns[1]
                    .as_ref()
                    .is_none_or(|syn| syn.timestamps.is_some())
        } else {
            self.both(|syn| syn.timestamps.is_some()) && !written.rst
        };
        let clock = CLOCK + (now.as_nanos() / 1_000_000) as u32;
        let old = written.old_timestamp.unwrap_or(Span::ZERO).as_nanos() / 1_000_000;
        let own = stamped.then_some(Timestamps {
            value: clock.wrapping_sub(old as u32),
            echo: self.recent,
        });
        let given = written.timestamps;
        options.timestamps = given
            .map(|[value, echo]| Timestamps { value, echo })
            .or(own);
        options.sack = self.blocks(&written.sack);
        for option in &written.without {
            match option.as_str() {
                "mss" => options.mss = None,
                "scale" => options.window_scale = None,
                "sack-ok" => options.sack_permitted = false,
                _ => options.timestamps = None,
            }
        }
        options
    }

    fn blocks(&self, ranges: &[[i64; 2]]) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        for range in ranges {
            let [start, end] = range.map(|offset| self.isn.wrapping_add(offset as u32));
            blocks.push(start, end);
        }
        blocks
    }
}
