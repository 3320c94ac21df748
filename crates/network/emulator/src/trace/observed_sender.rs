//! Data sent by one end of a connection, and the end's knowledge of the data that has arrived.
//!
//! It rebuilds the sender's scoreboard from outside: outstanding segments with their last transmission, and the
//! acknowledgements delivered to the sender. Its size is bounded. Segments beyond the bound are judged as unclear.

use std::collections::VecDeque;

use posthaste_tcp::trace::Sending;
use posthaste_units::{Instant, Span};

use super::headers::{SYN, SegmentHeader};

/// Maximum number of segments remembered in each direction: a window of 5.9 MB in full segments.
const OUTSTANDING: usize = 4096;
/// Maximum distance of a plausible number behind the expected one, in a packet with flipped bits.
const PLAUSIBLE: u64 = 1 << 24;
/// Maximum reaction time of a sender to an acknowledgement, in addition to half a round trip.
const PROMPT: Span = Span::from_millis(10);

/// One end of a connection.
#[derive(Debug, Default)]
pub(super) struct ObservedSender {
    /// Sequence number of its SYN, the origin of relative numbers.
    base: Option<u32>,
    /// First number that it has not sent.
    pub(super) next: u64,
    /// First number not acknowledged, according to the acknowledgements delivered to it.
    acknowledged: u64,
    outstanding: VecDeque<Outstanding>,
    /// Latest transmission among the segments known to it to have arrived.
    arrived: Instant,
    /// Duplicate ACKs delivered since the last progress or retransmission.
    duplicates: u32,
    /// Time of the last segment delivered to it.
    heard: Instant,
    shortest: Option<Span>,
    /// End of the data that the latest timeout declared lost.
    lost_until: u64,
    /// Its last acknowledgement and window.
    pub(super) acknowledging: Option<(u64, u16)>,
    pub(super) scale: Option<u8>,
    pub(super) may_sack: bool,
}

/// A segment without an acknowledgement delivered to its sender.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    start: u64,
    end: u64,
    sent: Instant,
    times: u32,
    sacked: bool,
}

/// A retransmission.
#[derive(Clone, Copy)]
struct Repetition {
    syn: bool,
    may_sack: bool,
    start: u64,
    end: u64,
}

/// Judgement of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Judgement {
    pub(super) sending: Sending,
    /// Time of the previous transmission of the same data.
    pub(super) before: Option<Instant>,
}

impl ObservedSender {
    /// Relative number of `number` in this end's stream: 0 for the SYN, 1 for the first byte.
    pub(super) fn offset_of(&self, number: u32) -> Option<u64> {
        let base = self.base?;
        let near = base.wrapping_add(self.next as u32);
        let ahead = i64::from(number.wrapping_sub(near) as i32);
        self.next.checked_add_signed(ahead)
    }

    /// Sets the origin so that `number` has the relative number `offset`, unless it is already set.
    pub(super) fn begin(&mut self, number: u32, offset: u32) {
        if self.base.is_none() {
            self.base = Some(number.wrapping_sub(offset));
            self.next = self.next.max(u64::from(offset));
            self.acknowledged = self.next;
        }
    }

    /// True if `segment` can come from this end in spite of flipped bits: it continues the stream or repeats a part of
    /// it.
    pub(super) fn may_have_sent(&self, segment: &SegmentHeader) -> bool {
        self.offset_of(segment.sequence)
            .and_then(|offset| self.next.checked_sub(offset))
            .is_some_and(|behind| behind < PLAUSIBLE)
    }

    /// Notes and judges a transmission of the numbers from `start` to `end`.
    pub(super) fn send(
        &mut self,
        now: Instant,
        segment: &SegmentHeader,
        may_sack: bool,
        start: u64,
        end: u64,
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
        debug_assert!(start <= end, "a segment ends before it begins");
        if end > self.next {
            debug_assert!(
                self.outstanding
                    .back()
                    .is_none_or(|last| last.end <= self.next),
                "an outstanding segment lies beyond the next number"
            );
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
        let prompt = self.heard > before && now.saturating_since(self.heard) <= half_way + PROMPT;
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

    /// Handles an acknowledgement delivered to this end: of everything before `offset`, and of `blocks`. `empty` means
    /// that the segment carries nothing else.
    pub(super) fn hear(&mut self, now: Instant, offset: u64, empty: bool, blocks: &[(u64, u64)]) {
        self.heard = now;
        if offset > self.acknowledged {
            self.acknowledged = offset;
            self.duplicates = 0;
            while let Some(first) = self
                .outstanding
                .front()
                .copied()
                .filter(|first| first.end <= offset)
            {
                self.outstanding.pop_front();
                self.arrive(now, first);
            }
        } else if offset == self.acknowledged && empty && !self.outstanding.is_empty() {
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

    /// Handles a SYN delivered to this end.
    pub(super) fn hear_syn(&mut self, now: Instant) {
        self.heard = now;
    }

    fn arrive(&mut self, now: Instant, known: Outstanding) {
        if !known.sacked {
            self.arrived = self.arrived.max(known.sent);
        }
        if known.times == 1 {
            let taken = now.saturating_since(known.sent);
            self.shortest = Some(self.shortest.map_or(taken, |shortest| shortest.min(taken)));
        }
    }
}
