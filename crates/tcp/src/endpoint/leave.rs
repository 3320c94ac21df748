//! What leaves, one segment at a time, and what the timers do.

use posthaste_units::Instant;

use super::Endpoint;
use crate::send::{Chunk, Expired};
use crate::{End, Offset, Options, SackBlocks, Segment, State, Timestamps, wrap};

/// SACK blocks beside timestamps, and without them: what 40 bytes of options hold.
const BLOCKS: (usize, usize) = (3, 4);

impl Endpoint {
    pub(super) fn next_segment(&mut self, now: Instant) -> Option<Segment> {
        if let Some(reset) = self.reset.take() {
            return Some(reset);
        }
        if self.opening.send {
            return Some(self.syn(now));
        }
        if !self.state.is_synchronised() {
            return None;
        }
        if !self.sender.is_idle() {
            let room = self.room();
            if let Some(chunk) = self.sender.transmit(now, room, &mut self.counters) {
                return Some(self.with_chunk(now, chunk));
            }
            if let Some((parity, len)) = self.sender.parity(&mut self.counters) {
                let mut segment = self.header(now, self.sender.max, len, false);
                segment.len = len;
                segment.options.parity = Some(parity);
                return Some(segment);
            }
        }
        if self.receiver.owed_now {
            return Some(self.pure_ack(now));
        }
        if self.repeats > 0 {
            self.repeats -= 1;
            self.counters.adaptive_acks += 1;
            return Some(self.pure_ack(now));
        }
        None
    }

    /// Lets run out what is due.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.state.is_closed() {
            return;
        }
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        if is_due(self.opening.due) && !self.expire_opening() {
            return self.finish(End::TimedOut);
        }
        if is_due(self.linger) {
            let end = match self.state {
                State::TimeWait => End::Finished,
                _ => End::TimedOut,
            };
            return self.finish(end);
        }
        if self.sender.expire(now, &mut self.counters) == Expired::GaveUp {
            return self.finish(End::TimedOut);
        }
        self.receiver.expire(now);
        let edge = self.receiver.next;
        if let Some(duplicates) = &mut self.receiver.duplicates {
            self.repeats += duplicates.expire(now, edge);
        }
    }

    /// This end's timestamp clock; never 0, which says that there is none.
    pub(super) fn stamp(&self, now: Instant) -> u32 {
        crate::clock::stamp(now, self.profile.offer.timestamp_tick)
    }

    pub(super) fn timestamps_option(&self, now: Instant) -> Timestamps {
        Timestamps {
            value: self.stamp(now),
            echo: self.recent.map_or(0, |recent| recent.0),
        }
    }

    /// Payload that fits beside the options that a segment has now.
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

    fn with_chunk(&mut self, now: Instant, chunk: Chunk) -> Segment {
        let mut segment = self.header(now, chunk.start, chunk.len, chunk.len > 0 || chunk.fin);
        segment.len = chunk.len;
        segment.fin = chunk.fin;
        segment.psh = chunk.len > 0 && chunk.last;
        segment
    }

    fn pure_ack(&mut self, now: Instant) -> Segment {
        let next = self.sender.max;
        self.header(now, next, 0, false)
    }

    /// A segment without its payload. One that was cut before there were blocks to report leaves
    /// room for few, or none: Linux would cut it anew.
    fn header(&mut self, now: Instant, start: Offset, len: u32, carries: bool) -> Segment {
        let window = self.receiver.advertise(false);
        let mut sack = SackBlocks::default();
        let left = self.sender.mss().saturating_sub(len + 4) as usize / 8;
        let most = self.most_blocks().min(left);
        if most > 0
            && self.receiver.has_blocks()
            && let Some(isn) = self.peer_isn
        {
            for (start, end) in self.receiver.blocks(most) {
                sack.push(wrap(isn, start), wrap(isn, end));
            }
        }
        let number = self.receiver.next;
        self.receiver.acknowledges(now, carries);
        if let Some(duplicates) = &mut self.receiver.duplicates {
            duplicates.said(number, window, !carries);
        }
        Segment {
            seq: wrap(self.isn, start),
            ack: self.peer_isn.map(|isn| wrap(isn, number)),
            window,
            options: Options {
                timestamps: self.timestamps.then(|| self.timestamps_option(now)),
                sack,
                ..Options::default()
            },
            ..Segment::default()
        }
    }

    /// A RST where the peer expects the next segment.
    pub(super) fn bare_reset(&self) -> Segment {
        Segment {
            seq: wrap(self.isn, self.sender.max.max(1)),
            ack: self.peer_isn.map(|isn| wrap(isn, self.receiver.next)),
            rst: true,
            ..Segment::default()
        }
    }
}
