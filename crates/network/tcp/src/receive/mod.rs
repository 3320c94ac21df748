//! The receiving half: reassembly, advertised window, and content of acknowledgements.
//!
//! `ack` decides the time of acknowledgements, `window` the advertised window, `duplicates` the remedy for the peer's
//! tail. The endpoint validates segments first.

pub mod ack;
pub mod duplicates;
pub mod window;

use std::ops::Range;

use posthaste_units::{Instant, Span};

use crate::{EndpointCounters, Offset, Profile, Ranges, Segment};
use ack::{AckNow, AckPolicy, DataArrival, SegmentPosition};
use duplicates::Duplicates;
use window::{ReceiveSpace, ReceiveWindow, WindowArrival};

/// Offset of a FIN that has not arrived.
const UNKNOWN: Offset = Offset::MAX;

/// Data or a FIN, as offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    pub(crate) start: Offset,
    pub(crate) len: u32,
    pub(crate) fin: bool,
    pub(crate) push: bool,
}

/// State of the sending half that acknowledgements depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OtherHalf {
    /// This end has sent its FIN.
    pub(crate) closed: bool,
    pub(crate) rtt: Option<Span>,
    pub(crate) timeout: Span,
    /// Timestamp of this end that the segment echoes, and its age, if [`Receiver::measures`] it.
    pub(crate) echo: Option<(u32, Span)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// The next offset expected. 0 before the SYN.
    pub(crate) next: Offset,
    /// End of the advertised window (exclusive).
    edge: Offset,
    /// Offset of the first unread byte.
    read: Offset,
    /// Offset of the peer's FIN. The largest offset until it is known.
    fin: Offset,
    early: Ranges,
    policy: AckPolicy,
    window: ReceiveWindow,
    scale: u8,
    /// Number of the last acknowledgement.
    pub(crate) acknowledged: Offset,
    /// An acknowledgement is owed at once.
    pub(crate) owed_now: bool,
    /// Duplicate range to report once (RFC 2883).
    twice: Option<(Offset, Offset)>,
    pub(crate) duplicates: Option<Duplicates>,
    pub(crate) sack: bool,
    dsack: bool,
}

impl Receiver {
    #[inline(always)]
    pub(crate) fn new(profile: &Profile) -> Self {
        let mss = u32::from(profile.offer.mss);
        Self {
            next: 0,
            edge: 0,
            read: 1,
            fin: UNKNOWN,
            early: Ranges::default(),
            policy: AckPolicy::new(profile.ack, profile.clock, mss),
            window: ReceiveWindow::new(profile.window, profile.receive_buffer, mss),
            scale: 0,
            acknowledged: 0,
            owed_now: false,
            twice: None,
            duplicates: profile.adaptive_acks.map(Duplicates::new),
            sack: false,
            dsack: profile.strictness.dsack,
        }
    }

    /// Resets the state, reusing the allocated memory.
    pub(crate) fn reset(&mut self, profile: &Profile) {
        let mut early = std::mem::take(&mut self.early);
        early.clear();
        *self = Self {
            early,
            ..Self::new(profile)
        };
    }

    /// Handles the peer's SYN. Segments of at most `mss` bytes follow.
    pub(crate) fn open(&mut self, mss: u32, scale: u8, sack: bool) {
        self.next = 1;
        // A window that a SYN advertised before the peer's SYN arrived counts from the peer's first byte.
        self.edge += 1;
        self.acknowledged = self.acknowledged.max(1);
        self.scale = scale.min(14);
        self.window.scale(self.scale);
        self.window.resize(mss);
        self.policy.resize(mss);
        self.sack = sack;
    }

    /// Handles the SYN-ACK: its acknowledgement leaves at once, or with the first data.
    pub(crate) fn connected(&mut self, now: Instant) {
        self.owed_now = self.policy.connected(now, self.offered()) == AckNow::Now;
    }

    /// Panics if the receive state contradicts itself. Checked in debug builds.
    pub(crate) fn assert_invariants(&self) {
        if !cfg!(debug_assertions) || self.next == 0 {
            return;
        }
        let Self { next, edge, .. } = *self;
        assert!(
            next <= edge,
            "data up to {next} was received beyond the window's edge {edge}"
        );
        assert!(
            self.read <= self.data_end(),
            "bytes that never arrived were read"
        );
        assert!(
            self.acknowledged <= next,
            "bytes that never arrived were acknowledged"
        );
        let early = self.early.iter().next();
        assert!(
            early.is_none_or(|(start, _)| start > next),
            "data in order counts as early"
        );
        let end = self.early.end();
        assert!(
            end.is_none_or(|end| end <= edge),
            "early data lies beyond the window"
        );
        assert!(
            end.is_none_or(|end| self.fin == UNKNOWN || end <= self.fin + 1),
            "early data lies beyond the FIN"
        );
    }

    /// Returns true if the age of the timestamp that this segment echoes is a new measurement.
    pub(crate) fn measures(&self, segment: &Segment) -> bool {
        let stamps = segment.options.timestamps;
        stamps.is_some_and(|stamps| self.window.measures(stamps.echo))
    }

    /// Bytes that the peer may still send, from the next one expected.
    pub(crate) fn offered(&self) -> u64 {
        debug_assert!(self.edge >= self.next, "data lies beyond the window's edge");
        self.edge.saturating_sub(self.next)
    }

    pub(crate) fn readable(&self) -> u64 {
        self.data_end().saturating_sub(self.read)
    }

    /// Bytes of data received in order.
    pub(crate) fn received(&self) -> u64 {
        self.data_end().saturating_sub(1)
    }

    /// End of the data in order (exclusive). 0 before the SYN.
    fn data_end(&self) -> Offset {
        self.next - u64::from(self.has_closed())
    }

    /// Returns true once the FIN has arrived in order.
    pub(crate) fn has_closed(&self) -> bool {
        self.next > self.fin
    }

    /// Returns true if data or a FIN have arrived beyond a hole.
    pub(crate) fn has_hole(&self) -> bool {
        !self.early.is_empty() || (self.fin != UNKNOWN && self.next < self.fin)
    }

    fn room(&self) -> ReceiveSpace {
        ReceiveSpace {
            unread: self.readable(),
            early: self.early.iter().map(|(start, end)| end - start).sum(),
            edge: self.edge,
            next: self.next,
        }
    }

    /// Accepts data or a FIN at least partly in the window. Returns the offsets of the accepted data.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        incoming: Incoming,
        other: OtherHalf,
        counters: &mut EndpointCounters,
    ) -> Option<Range<Offset>> {
        let end = incoming.start + u64::from(incoming.len);
        if self.contradicts(&incoming, end) {
            counters.refused.after_fin += 1;
            self.owed_now = true;
            return None;
        }
        let taken = incoming.start.max(self.next)..end.min(self.edge.max(self.next));
        let fin = incoming.fin && end < self.edge.max(self.next + 1);
        let position = self.position(&incoming, &taken, fin);
        match position {
            // Nothing fits: all of it had been received before, or the window is closed.
            SegmentPosition::Old if end > self.next => {
                counters.refused.out_of_window += 1;
                self.repeated(incoming.start, self.next);
            }
            SegmentPosition::Old => {
                counters.duplicate_data += 1;
                self.repeated(incoming.start, end);
            }
            SegmentPosition::Beyond => {
                if self.early.covers(taken.start, taken.end) {
                    counters.duplicate_data += u64::from(!taken.is_empty());
                }
                self.repeated_early(&taken);
                // The block includes the FIN's sequence number (as in Linux; RFC 2018 speaks of data alone).
                if !self.early.add(taken.start, taken.end + u64::from(fin)) {
                    counters.refused.holes += 1;
                    self.owed_now = true;
                    return None;
                }
                counters.out_of_order += 1;
            }
            SegmentPosition::Next | SegmentPosition::Fills => {
                if incoming.start < self.next {
                    self.repeated(incoming.start, self.next);
                } else {
                    self.repeated_early(&taken);
                }
                self.next = self.early.advance(taken.end.max(self.next));
            }
        }
        if fin {
            self.fin = end;
        }
        if self.fin == self.next {
            self.next += 1;
            self.edge = self.edge.max(self.next);
        }
        self.acknowledge_later(now, &incoming, position, other);
        if let Some(duplicates) = &mut self.duplicates {
            let (known, ahead) = (self.fin != UNKNOWN, self.next < self.fin);
            let hole = !self.early.is_empty() || (known && ahead);
            duplicates.arrived(now, position != SegmentPosition::Old, known, hole);
        }
        (!taken.is_empty()).then_some(taken)
    }

    /// Returns true for data after a FIN, or a FIN at a different offset.
    fn contradicts(&self, incoming: &Incoming, end: Offset) -> bool {
        match self.fin {
            UNKNOWN => incoming.fin && self.early.end().unwrap_or(0).max(self.next) > end,
            fin => end > fin || (incoming.fin && end != fin),
        }
    }

    fn position(&self, incoming: &Incoming, taken: &Range<Offset>, fin: bool) -> SegmentPosition {
        if incoming.start > self.next {
            SegmentPosition::Beyond
        } else if taken.is_empty() && !(fin && taken.end == self.next && !self.has_closed()) {
            SegmentPosition::Old
        } else if self.has_hole() {
            SegmentPosition::Fills
        } else {
            SegmentPosition::Next
        }
    }

    fn repeated(&mut self, start: Offset, end: Offset) {
        if self.sack && self.dsack && start < end {
            self.twice = Some((start, end));
        }
    }

    /// Reports the first part of `taken` that waits beyond a hole already (RFC 2883, section 4; Linux `tcp_ofo_queue`
    /// and `tcp_data_queue_ofo`).
    fn repeated_early(&mut self, taken: &Range<Offset>) {
        let overlap = |(start, end): (Offset, Offset)| (start.max(taken.start), end.min(taken.end));
        let first = self
            .early
            .iter()
            .map(overlap)
            .find(|(start, end)| start < end);
        if let Some((start, end)) = first {
            self.repeated(start, end);
        }
    }

    fn acknowledge_later(
        &mut self,
        now: Instant,
        incoming: &Incoming,
        position: SegmentPosition,
        other: OtherHalf,
    ) {
        let in_order = matches!(position, SegmentPosition::Next | SegmentPosition::Fills);
        let counts = in_order || (self.sack && position == SegmentPosition::Beyond);
        let window_grew = counts && {
            let arrival = WindowArrival {
                now,
                len: incoming.len,
                beyond: !in_order,
                echo: other.echo,
            };
            self.window.arrived(&arrival, &self.room())
        };
        debug_assert!(
            self.edge >= self.acknowledged,
            "the window ends before acknowledged data"
        );
        let offered = self.edge.saturating_sub(self.acknowledged);
        let arrival = DataArrival {
            len: incoming.len,
            position,
            fin: incoming.fin,
            push: incoming.push,
            window: self.offered(),
            window_holds: !self.policy.asks_for_window(incoming.len)
                || self.window.offer(&self.room()) >= offered,
            window_grew,
            closed: other.closed,
            sack: self.sack,
            rtt: other.rtt,
            timeout: other.timeout,
        };
        if self.policy.arrived(now, &arrival) == AckNow::Now {
            self.owed_now = true;
        }
    }

    /// Reads application data. Returns the number of bytes read.
    pub(crate) fn read(&mut self, bytes: u64) -> u64 {
        let bytes = bytes.min(self.readable());
        self.read += bytes;
        let room = self.room();
        self.window.read(&room, self.read);
        if bytes > 0 && !self.has_closed() {
            let emptied = self.readable() == 0;
            let delayed = self.policy.deadline() < Instant::FAR_FUTURE;
            if self.policy.read(emptied) == AckNow::Now || self.window.update_due(&room, delayed) {
                self.owed_now = true;
            }
        }
        bytes
    }

    /// Handles an acknowledgement deadline that has passed.
    pub(crate) fn expire(&mut self, now: Instant) {
        if self.policy.deadline() <= now {
            self.policy.expired(now);
            self.owed_now = true;
        }
    }

    /// Time of the next timer.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        let ack = self.policy.deadline();
        match &self.duplicates {
            Some(duplicates) => ack.min(duplicates.due()),
            None => ack,
        }
    }

    /// Returns the window field of a segment that leaves now, and moves the edge.
    #[inline(always)]
    pub(crate) fn advertise(&mut self, is_syn: bool) -> u16 {
        let offer = self.window.offer(&self.room());
        let field = if is_syn {
            offer.min(u64::from(u16::MAX)) as u16
        } else {
            self.window.field(offer)
        };
        let shown = if is_syn {
            u64::from(field)
        } else {
            u64::from(field) << self.scale
        };
        self.edge = self.edge.max(self.next + shown);
        field
    }

    /// Records that a segment with an acknowledgement leaves now.
    #[inline(always)]
    pub(crate) fn acknowledges(&mut self, now: Instant, has_data: bool) {
        self.acknowledged = self.next;
        self.owed_now = false;
        self.policy.sent();
        if has_data {
            self.policy.sent_data(now);
        }
    }

    /// Returns the SACK blocks to report, at most `most`: a duplicate range first, then the newest first.
    pub(crate) fn blocks(&mut self, most: usize) -> impl Iterator<Item = (Offset, Offset)> + '_ {
        let twice = self.twice.take();
        let early = self.early.newest_first();
        twice
            .into_iter()
            .chain(early)
            .take(if self.sack { most } else { 0 })
    }

    /// Number of blocks in an acknowledgement that leaves now, at most `most`.
    pub(crate) fn block_count(&self, most: usize) -> usize {
        (self.early.iter().count() + usize::from(self.twice.is_some())).min(most)
    }

    /// Returns the missing part of `start..end` if it is a single hole.
    pub(crate) fn only_hole(&self, start: Offset, end: Offset) -> Option<Range<Offset>> {
        let (mut from, mut only) = (start.max(self.next), None);
        let pieces = self.early.iter().chain([(end, end)]);
        for (first, last) in pieces {
            let until = first.min(end);
            if from < until && only.replace(from..until).is_some() {
                return None;
            }
            from = from.max(last);
        }
        only
    }

    /// Returns true if an acknowledgement that leaves now would hold blocks.
    pub(crate) fn has_blocks(&self) -> bool {
        self.sack && (!self.early.is_empty() || self.twice.is_some())
    }
}
