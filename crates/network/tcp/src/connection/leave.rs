//! Segments that leave, one at a time, and expiry of the timers.

use posthaste_units::Instant;

use super::Connection;
use crate::send::{Chunk, Expired};
use crate::{ConnectionEnd, Offset, Options, Parity, Segment, TcpState, wrap};

impl Connection {
    pub(crate) fn next_segment(&mut self, now: Instant) -> Option<Segment> {
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
                return Some((outside(self.sender.sequence().max, len), Some(parity)));
            }
        }
        let max = self.sender.sequence().max;
        if self.receiver.owed_now {
            return Some((outside(max, 0), None));
        }
        self.repeats = self.repeats.checked_sub(1)?;
        self.counters.adaptive_acks += 1;
        Some((outside(max, 0), None))
    }

    /// Handles all timers that are due.
    pub(crate) fn expire(&mut self, now: Instant) {
        if self.state.is_closed() {
            return;
        }
        let handshake = &self.profile.handshake;
        let opening = &mut self.opening;
        if opening.due <= now && !opening.expire(handshake, &mut self.counters) {
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

    /// Payload bytes that fit in a segment with its current options.
    fn room(&self) -> u32 {
        let mss = self.sender.mss();
        if !self.receiver.has_blocks() {
            return mss;
        }
        let blocks = self.receiver.block_count(self.negotiated.most_blocks()) as u32;
        mss.saturating_sub(4 + 8 * blocks).max(1)
    }

    /// Builds the segment for `chunk`. Parity takes no sequence numbers.
    #[inline(always)]
    fn segment(&mut self, now: Instant, chunk: &Chunk, parity: Option<Parity>) -> Segment {
        let window = self.receiver.advertise(false);
        let number = self.receiver.next;
        let carries = parity.is_none() && (chunk.len > 0 || chunk.fin);
        self.receiver.acknowledges(now, carries);
        if let Some(duplicates) = &mut self.receiver.duplicates {
            duplicates.acknowledged(number, window, !carries);
        }
        Segment {
            seq: wrap(self.negotiated.isn, chunk.start),
            ack: self.negotiated.peer_isn.map(|isn| wrap(isn, number)),
            syn: false,
            fin: chunk.fin,
            rst: false,
            psh: chunk.len > 0 && chunk.last,
            window,
            options: Options {
                timestamps: self
                    .negotiated
                    .timestamps
                    .then(|| self.negotiated.timestamps_option(now)),
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
        let most = self.negotiated.most_blocks().min(left);
        if let Some(isn) = self.negotiated.peer_isn.filter(|_| most > 0) {
            for (start, end) in self.receiver.blocks(most) {
                segment.options.sack.push(wrap(isn, start), wrap(isn, end));
            }
        }
        segment
    }

    /// A RST with the sequence number that the peer expects next.
    pub(super) fn bare_reset(&self) -> Segment {
        Segment {
            seq: wrap(self.negotiated.isn, self.sender.sequence().max.max(1)),
            ack: self
                .negotiated
                .peer_isn
                .map(|isn| wrap(isn, self.receiver.next)),
            rst: true,
            ..Segment::default()
        }
    }
}

/// Payload outside the sequence space, at the end of the data sent.
const fn outside(max: Offset, len: u32) -> Chunk {
    Chunk {
        start: max,
        len,
        fin: false,
        last: false,
    }
}
