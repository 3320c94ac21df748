//! Segments sent and not acknowledged.
//!
//! Detectors mark segments, the scoreboard counts: `in flight = out - sacked - lost + sent again`. Each segment has a
//! charge in bytes. Stacks that count segments charge a short one as a full one. A SACK block over a part of a segment
//! has no effect here. Stacks split the segment, but no receiver among the profiles acknowledges parts.

use std::collections::VecDeque;

use posthaste_units::Instant;

use crate::Offset;

/// Number of segments up to which the invariants are always checked.
const SHORT: usize = 256;

/// One unacknowledged segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentSegment {
    pub(crate) start: Offset,
    /// End of the segment (exclusive), including the FIN.
    pub(crate) end: Offset,
    pub(crate) fin: bool,
    /// Bytes that it counts for in a window.
    pub(crate) charge: u32,
    pub(crate) first_sent: Instant,
    /// Time of the last transmission.
    pub(crate) sent: Instant,
    /// Number of retransmissions.
    pub(crate) repeats: u32,
    pub(crate) sacked: bool,
    pub(crate) lost: bool,
    /// Sent again since it was marked lost, and not acknowledged since.
    pub(crate) out_again: bool,
}

/// Sums over some of the segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    charge: u64,
    segments: u32,
}

impl Sum {
    fn change(&mut self, charge: u32, before: bool, after: bool) {
        if after && !before {
            self.charge += u64::from(charge);
            self.segments += 1;
        } else if before && !after {
            self.charge -= u64::from(charge);
            self.segments -= 1;
        }
    }
}

/// Marks of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SegmentMarks {
    sacked: bool,
    lost: bool,
    out_again: bool,
}

/// The segments in order, and sums over their marks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    sent: VecDeque<SentSegment>,
    out: u64,
    sacked: Sum,
    lost: Sum,
    again: Sum,
    /// Lost and not sent again.
    unrepaired: Sum,
    /// Number of times that a segment has been marked as lost.
    marked: u64,
}

impl Scoreboard {
    pub(crate) fn clear(&mut self) {
        let mut sent = std::mem::take(&mut self.sent);
        sent.clear();
        *self = Self {
            sent,
            ..Self::default()
        };
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Unacknowledged segments, including SACKed ones.
    pub(crate) fn len(&self) -> usize {
        self.sent.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&SentSegment> {
        self.sent.get(index)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &SentSegment> + ExactSizeIterator {
        self.sent.iter()
    }

    /// Index of the first segment that ends beyond `offset`.
    pub(crate) fn at(&self, offset: Offset) -> usize {
        self.sent.partition_point(|sent| sent.end <= offset)
    }

    pub(crate) fn push(&mut self, sent: SentSegment) {
        debug_assert!(
            sent.start < sent.end,
            "a segment without sequence numbers is sent"
        );
        debug_assert!(
            self.sent.back().is_none_or(|last| last.end == sent.start),
            "new data does not follow the last segment"
        );
        self.out += u64::from(sent.charge);
        self.sent.push_back(sent);
    }

    /// Bytes in flight, as derived from the marks.
    pub(crate) fn in_flight(&self) -> u64 {
        let (out, gone) = (
            self.out + self.again.charge,
            self.sacked.charge + self.lost.charge,
        );
        debug_assert!(out >= gone, "{gone} bytes of {out} have left the network");
        out.saturating_sub(gone)
    }

    /// Panics unless the segments are contiguous from `una` to `max` and the sums are theirs. Checked in debug builds,
    /// and for long lists only at powers of two, so that tests stay fast.
    pub(crate) fn assert_invariants(&self, una: Offset, max: Offset) {
        let segments = self.sent.len();
        let is_short = segments <= SHORT || segments.is_power_of_two();
        if !cfg!(debug_assertions) || !is_short {
            return;
        }
        let mut at = una;
        let mut sums = [Sum::default(); 5];
        for sent in &self.sent {
            assert_eq!(sent.start, at, "segments overlap or leave a hole");
            assert!(sent.end > at, "a segment at {at} is empty");
            assert!(
                !(sent.sacked && sent.lost),
                "a segment at {at} has arrived and is lost"
            );
            at = sent.end;
            let waits = sent.lost && !sent.out_again;
            let marks = [true, sent.sacked, sent.lost, sent.out_again, waits];
            for (sum, mark) in sums.iter_mut().zip(marks) {
                sum.change(sent.charge, false, mark);
            }
        }
        assert_eq!(at, max, "the segments end elsewhere than the data sent");
        let [out, marked @ ..] = sums;
        assert_eq!(self.out, out.charge, "the sum of all charges is wrong");
        let sums = [self.sacked, self.lost, self.again, self.unrepaired];
        assert_eq!(sums, marked, "the sums over marks are wrong");
    }

    /// Charges of the retransmitted segments that are not acknowledged.
    pub(crate) fn again(&self) -> u64 {
        self.again.charge
    }

    pub(crate) fn sacked_segments(&self) -> u32 {
        self.sacked.segments
    }

    pub(crate) fn lost_segments(&self) -> u32 {
        self.lost.segments
    }

    pub(crate) fn again_segments(&self) -> u32 {
        self.again.segments
    }

    /// Number of times that a segment has been marked as lost.
    pub(crate) fn marked(&self) -> u64 {
        self.marked
    }

    /// Removes the first segment if `ack` covers all of it. Otherwise trims the acknowledged part in place.
    pub(crate) fn acknowledge(&mut self, ack: Offset) -> Option<SentSegment> {
        let first = self.sent.front_mut()?;
        if first.end > ack {
            first.start = first.start.max(ack);
            return None;
        }
        let first = *first;
        self.mark(0, |_| SegmentMarks::default());
        self.sent.pop_front();
        self.out -= u64::from(first.charge);
        Some(first)
    }

    /// Changes the marks of a segment. Returns false if nothing changes.
    fn mark(&mut self, index: usize, change: impl Fn(SegmentMarks) -> SegmentMarks) -> bool {
        let Some(sent) = self.sent.get_mut(index) else {
            return false;
        };
        let before = SegmentMarks {
            sacked: sent.sacked,
            lost: sent.lost,
            out_again: sent.out_again,
        };
        let after = change(before);
        if before == after {
            return false;
        }
        (sent.sacked, sent.lost, sent.out_again) = (after.sacked, after.lost, after.out_again);
        let charge = sent.charge;
        self.sacked.change(charge, before.sacked, after.sacked);
        self.lost.change(charge, before.lost, after.lost);
        self.again.change(charge, before.out_again, after.out_again);
        let waits = |marks: SegmentMarks| marks.lost && !marks.out_again;
        self.unrepaired.change(charge, waits(before), waits(after));
        true
    }

    /// Marks a segment as SACKed: no longer lost nor in flight. Returns false if it was already.
    pub(crate) fn mark_sacked(&mut self, index: usize) -> bool {
        self.mark(index, |_| SegmentMarks {
            sacked: true,
            ..SegmentMarks::default()
        })
    }

    /// Marks a segment, and its retransmission, as lost. Returns false if nothing changes.
    pub(crate) fn mark_lost(&mut self, index: usize) -> bool {
        let changes = self.mark(index, |marks| {
            if marks.sacked {
                marks
            } else {
                SegmentMarks {
                    lost: true,
                    ..SegmentMarks::default()
                }
            }
        });
        self.marked += u64::from(changes);
        changes
    }

    /// Clears all loss marks. Retransmissions stay in flight.
    pub(crate) fn unmark_all_lost(&mut self) {
        for index in 0..self.sent.len() {
            self.mark(index, |marks| SegmentMarks {
                lost: false,
                ..marks
            });
        }
    }

    /// Clears all SACK marks (RFC 2018, section 8).
    pub(crate) fn forget_sacks(&mut self) {
        for index in 0..self.sent.len() {
            self.mark(index, |marks| SegmentMarks {
                sacked: false,
                ..marks
            });
        }
    }

    /// Excludes retransmissions from the bytes in flight.
    pub(crate) fn forget_repeats(&mut self) {
        for index in 0..self.sent.len() {
            self.mark(index, |marks| SegmentMarks {
                out_again: false,
                ..marks
            });
        }
    }

    /// Records a retransmission at `now`. `counted` is true for a repair in flight, false for a probe.
    pub(crate) fn repeat(&mut self, index: usize, now: Instant, counted: bool) {
        if let Some(sent) = self.sent.get_mut(index) {
            sent.sent = now;
            sent.repeats = sent.repeats.saturating_add(1);
        }
        if counted {
            self.mark(index, |marks| SegmentMarks {
                out_again: true,
                ..marks
            });
        }
    }

    /// Returns true if any segment is lost and not sent again.
    pub(crate) fn has_unrepaired(&self) -> bool {
        self.unrepaired.segments > 0
    }

    /// Index of the first segment that is lost and not sent again.
    pub(crate) fn first_unrepaired(&self) -> Option<usize> {
        if !self.has_unrepaired() {
            return None;
        }
        self.sent
            .iter()
            .position(|sent| sent.lost && !sent.out_again)
    }

    /// End of the last SACKed segment (exclusive).
    pub(crate) fn highest_sacked(&self) -> Option<Offset> {
        if self.sacked.segments == 0 {
            return None;
        }
        let last = self.sent.iter().rev().find(|sent| sent.sacked);
        last.map(|sent| sent.end)
    }
}
