//! What one end of a connection has sent, and what it knows by now of what has arrived.
//!
//! The scoreboard a sender keeps, rebuilt from outside: segments that are outstanding, with when
//! each was last sent, and the acknowledgements that have been delivered to their sender. Its
//! size is bounded; what had no room is judged as unclear.

use std::collections::VecDeque;

use posthaste_tcp::trace::Sending;
use posthaste_units::{Instant, Span};

use super::packet::{SYN, Segment};

/// Segments remembered of each direction: a window of 5.9 MB in full segments.
const OUTSTANDING: usize = 4096;
/// How far behind what is expected a number may lie in a packet with flipped bits.
const PLAUSIBLE: u64 = 1 << 24;
/// What a sender may take to act on an acknowledgement, beyond half a round trip.
const PROMPT: Span = Span::from_millis(10);

/// One end.
#[derive(Debug, Default)]
pub(super) struct Half {
    /// The number from which its stream counts: that of its SYN.
    base: Option<u32>,
    /// The first place of the stream that it has not sent.
    pub(super) next: u64,
    /// The first place that is not acknowledged, as far as it has been told.
    acknowledged: u64,
    outstanding: VecDeque<Outstanding>,
    /// The latest sending of what it has been told has arrived.
    arrived: Instant,
    /// Duplicate ACKs told since the last progress or repetition.
    duplicates: u32,
    /// When it was last told anything.
    told: Instant,
    shortest: Option<Span>,
    /// The end of what the latest timeout declared lost.
    lost_until: u64,
    /// What it acknowledged last, and with which window.
    pub(super) acknowledging: Option<(u64, u16)>,
    pub(super) scale: Option<u8>,
    pub(super) may_sack: bool,
}

/// A segment of which no acknowledgement has been told.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    start: u64,
    end: u64,
    sent: Instant,
    times: u32,
    sacked: bool,
}

/// What is sent once more.
#[derive(Clone, Copy)]
struct Repetition {
    syn: bool,
    may_sack: bool,
    start: u64,
    end: u64,
}

/// How a segment was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Judgement {
    pub(super) sending: Sending,
    /// When the same was last sent before.
    pub(super) before: Option<Instant>,
}

impl Half {
    /// `number` of this end's stream as a place in it: 0 for the SYN, 1 for the first byte.
    pub(super) fn place(&self, number: u32) -> Option<u64> {
        let base = self.base?;
        let near = base.wrapping_add(self.next as u32);
        let ahead = i64::from(number.wrapping_sub(near) as i32);
        self.next.checked_add_signed(ahead)
    }

    /// Counts from `number` as place `place`, unless it is known from where to count.
    pub(super) fn begin(&mut self, number: u32, place: u32) {
        if self.base.is_none() {
            self.base = Some(number.wrapping_sub(place));
            self.next = self.next.max(u64::from(place));
            self.acknowledged = self.next;
        }
    }

    /// Whether `segment` can be this end's, although some bits of it flipped: it goes on with the
    /// stream or repeats some of it.
    pub(super) fn may_have_sent(&self, segment: &Segment) -> bool {
        self.place(segment.sequence)
            .and_then(|place| self.next.checked_sub(place))
            .is_some_and(|behind| behind < PLAUSIBLE)
    }

    /// This end sends what takes up places from `start` to `end`: how, and it is remembered.
    pub(super) fn send(
        &mut self,
        now: Instant,
        segment: &Segment,
        may_sack: bool,
        (start, end): (u64, u64),
    ) -> Judgement {
        let judgement = if start < self.next {
            let sending = Repetition {
                syn: segment.has(SYN),
                may_sack,
                start,
                end: end.min(self.next),
            };
            self.repeat(now, sending)
        } else {
            Judgement {
                sending: Sending::First,
                before: None,
            }
        };
        if end > self.next {
            if self.outstanding.len() < OUTSTANDING {
                self.outstanding.push_back(Outstanding {
                    start: start.max(self.next),
                    end,
                    sent: now,
                    times: 1,
                    sacked: false,
                });
            }
            self.next = end;
        }
        judgement
    }

    fn repeat(&mut self, now: Instant, again: Repetition) -> Judgement {
        let Repetition { start, end, .. } = again;
        let overlaps = |known: &Outstanding| known.start < end && known.end > start;
        let (mut before, mut times) = (None, 0);
        for known in self.outstanding.iter().filter(|known| overlaps(known)) {
            before = before.max(Some(known.sent));
            times = times.max(known.times);
        }
        let judge = |before| self.judge(now, again, before, times);
        let sending = before.map_or(Sending::Unclear, judge);
        for known in self.outstanding.iter_mut().filter(|known| overlaps(known)) {
            known.sent = now;
            known.times += 1;
        }
        self.duplicates = 0;
        if sending == Sending::Timeout {
            self.lost_until = self.next;
        }
        Judgement { sending, before }
    }

    fn judge(&self, now: Instant, again: Repetition, before: Instant, times: u32) -> Sending {
        let half_way = self.shortest.map_or(Span::ZERO, |shortest| shortest / 2);
        let prompt = self.told > before && now.since(self.told) <= half_way + PROMPT;
        let first = self.outstanding.iter().find(|known| !known.sacked);
        let is_first = first.is_none_or(|first| again.start <= first.start);
        let is_last = again.end >= self.next;
        let told_of_loss = self.arrived > before || (is_first && self.duplicates > 0);
        if again.syn {
            if prompt {
                Sending::Answer
            } else {
                Sending::Timeout
            }
        } else if prompt && again.start < self.lost_until {
            Sending::AfterTimeout
        } else if prompt && told_of_loss {
            Sending::Fast
        } else if is_first && is_last && times == 1 && again.may_sack {
            Sending::TimeoutOrProbe
        } else if is_first {
            Sending::Timeout
        } else if is_last {
            Sending::Probe
        } else {
            Sending::Unclear
        }
    }

    /// This end is told that everything before `place` has arrived, and what `blocks` hold;
    /// `empty` where it is told nothing else.
    pub(super) fn hear(&mut self, now: Instant, place: u64, empty: bool, blocks: &[(u64, u64)]) {
        self.told = now;
        if place > self.acknowledged {
            self.acknowledged = place;
            self.duplicates = 0;
            while let Some(first) = self
                .outstanding
                .front()
                .copied()
                .filter(|first| first.end <= place)
            {
                self.outstanding.pop_front();
                self.arrive(now, first);
            }
        } else if place == self.acknowledged && empty && !self.outstanding.is_empty() {
            self.duplicates += 1;
        }
        for index in 0..self.outstanding.len() {
            let known = self.outstanding[index];
            let within = blocks
                .iter()
                .any(|block| block.0 <= known.start && known.end <= block.1);
            if within && !known.sacked {
                self.outstanding[index].sacked = true;
                self.arrive(now, known);
            }
        }
    }

    /// This end is told that the other wants to begin.
    pub(super) fn hear_syn(&mut self, now: Instant) {
        self.told = now;
    }

    fn arrive(&mut self, now: Instant, known: Outstanding) {
        if !known.sacked {
            self.arrived = self.arrived.max(known.sent);
        }
        if known.times == 1 {
            let taken = now.since(known.sent);
            self.shortest = Some(self.shortest.map_or(taken, |shortest| shortest.min(taken)));
        }
    }
}
