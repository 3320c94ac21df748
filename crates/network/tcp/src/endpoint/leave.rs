//! Segments that leave, one at a time, and expiry of the timers.

use posthaste_units::Instant;

use super::Endpoint;
use crate::send::{Chunk, Expired};
use crate::{ConnectionEnd, Options, Parity, Segment, TcpState, Timestamps, wrap};

/// SACK blocks with and without timestamps: the number that fits in 40 bytes of options.
const BLOCKS: (usize, usize) = (3, 4);

impl Endpoint {
    pub(super) fn next_segment(&mut self, now: Instant) -> Option<Segment> {
        if self.reset.is_some() {
            return self.reset.take();
        }
        if self.opening.send {
            return Some(self.syn(now));
        }
        if !self.state.is_synchronised() {
            return None;
        }
        let (chunk, parity) = self.chunk(now)?;
        if self.receiver.has_blocks() {
            return Some(self.report(now, &chunk, parity));
        }
        Some(self.segment(now, &chunk, parity))
    }

    /// Returns the next part of the stream to send, the parity of its tail, or an empty chunk for an acknowledgement.
    fn chunk(&mut self, now: Instant) -> Option<(Chunk, Option<Parity>)> {
        if self.sender.may_send() {
            let room = self.room();
            if let Some(chunk) = self.sender.transmit(now, room, &mut self.counters) {
                return Some((chunk, None));
            }
            if let Some((parity, len)) = self.sender.parity(&mut self.counters) {
                return Some((self.empty(len), Some(parity)));
            }
        }
        if self.receiver.owed_now {
            return Some((self.empty(0), None));
        }
        self.repeats = self.repeats.checked_sub(1)?;
        self.counters.adaptive_acks += 1;
        Some((self.empty(0), None))
    }

    /// Payload outside the sequence space.
    const fn empty(&self, len: u32) -> Chunk {
        Chunk {
            start: self.sender.sequence().max,
            len,
            fin: false,
            last: false,
        }
    }

    /// Handles all timers that are due.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.state.is_closed() {
            return;
        }
        if self.opening.due <= now && !self.expire_opening() {
            return self.finish(ConnectionEnd::TimedOut);
        }
        if self.linger <= now {
            let end = match self.state {
                TcpState::TimeWait => ConnectionEnd::Finished,
                _ => ConnectionEnd::TimedOut,
            };
            return self.finish(end);
        }
        if self.sender.expire(now, &mut self.counters) == Expired::GaveUp {
            return self.finish(ConnectionEnd::TimedOut);
        }
        self.receiver.expire(now);
        let edge = self.receiver.next;
        if let Some(duplicates) = &mut self.receiver.duplicates {
            self.repeats += duplicates.expire(now, edge);
            debug_assert!(duplicates.due() > now, "the timer of a hole stays due");
        }
    }

    /// This end's timestamp clock. Never 0, because 0 means that there is no timestamp.
    pub(super) fn stamp(&self, now: Instant) -> u32 {
        crate::clock::stamp(now, self.profile.offer.timestamp_tick)
    }

    pub(super) fn timestamps_option(&self, now: Instant) -> Timestamps {
        Timestamps {
            value: self.stamp(now),
            echo: self.recent.map_or(0, |recent| recent.0),
        }
    }

    /// Payload bytes that fit in a segment with its current options.
    fn room(&self) -> u32 {
        let mss = self.sender.mss();
        if !self.receiver.has_blocks() {
            return mss;
        }
        let blocks = self.receiver.block_count(self.most_blocks()) as u32;
        mss.saturating_sub(4 + 8 * blocks).max(1)
    }

    const fn most_blocks(&self) -> usize {
        if self.timestamps { BLOCKS.0 } else { BLOCKS.1 }
    }

    /// Builds the segment for `chunk`. Parity takes no sequence numbers.
    #[inline(always)]
    fn segment(&mut self, now: Instant, chunk: &Chunk, parity: Option<Parity>) -> Segment {
        let window = self.receiver.advertise(false);
        let number = self.receiver.next;
        let carries = parity.is_none() && (chunk.len > 0 || chunk.fin);
        self.receiver.acknowledges(now, carries);
        if let Some(duplicates) = &mut self.receiver.duplicates {
            duplicates.said(number, window, !carries);
        }
        Segment {
            seq: wrap(self.isn, chunk.start),
            ack: self.peer_isn.map(|isn| wrap(isn, number)),
            syn: false,
            fin: chunk.fin,
            rst: false,
            psh: chunk.len > 0 && chunk.last,
            window,
            options: Options {
                timestamps: self.timestamps.then(|| self.timestamps_option(now)),
                parity,
                ..Options::default()
            },
            len: chunk.len,
        }
    }

    /// Adds SACK blocks (data beyond holes, and D-SACK). A chunk that was cut before there were blocks leaves space for
    /// few or none. Linux would cut it again.
    #[cold]
    fn report(&mut self, now: Instant, chunk: &Chunk, parity: Option<Parity>) -> Segment {
        let mut segment = self.segment(now, chunk, parity);
        let left = self.sender.mss().saturating_sub(segment.len + 4) as usize / 8;
        let most = self.most_blocks().min(left);
        if let Some(isn) = self.peer_isn.filter(|_| most > 0) {
            for (start, end) in self.receiver.blocks(most) {
                segment.options.sack.push(wrap(isn, start), wrap(isn, end));
            }
        }
        segment
    }

    /// A RST with the sequence number that the peer expects next.
    pub(super) fn bare_reset(&self) -> Segment {
        Segment {
            seq: wrap(self.isn, self.sender.sequence().max.max(1)),
            ack: self.peer_isn.map(|isn| wrap(isn, self.receiver.next)),
            rst: true,
            ..Segment::default()
        }
    }
}
