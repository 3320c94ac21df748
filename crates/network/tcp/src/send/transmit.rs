//! Selection of the next segment: a repair, new data, the FIN, a copy of the tail.
//!
//! The engines decide the usable window. The rules against small segments (Nagle, silly windows: RFC 9293, sections
//! 3.7.4 and 3.8.6.2.1) are the same for all.

use posthaste_units::Instant;

use super::episode::RecoveryPhase;
use super::scoreboard::SentSegment;
use super::timer::Purpose;
use super::{RecoveryEngine, Sender};
use crate::profile::{FramingRule, Nagle};
use crate::{EndpointCounters, Offset, Parity};

/// A part of the stream that leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) start: Offset,
    pub(crate) len: u32,
    pub(crate) fin: bool,
    /// No written data follows it.
    pub(crate) last: bool,
}

/// Reason of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    Fast,
    AfterTimeout,
    Probe,
}

impl Sender {
    /// Returns the next segment with data or a FIN. `room` is the payload that options leave of a full segment.
    #[inline(always)]
    pub(crate) fn transmit(
        &mut self,
        now: Instant,
        room: u32,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        if std::mem::take(&mut self.probe_now) {
            counters.window_probes += 1;
            return Some(self.window_probe(now, room));
        }
        let chunk = match self.rules.engine {
            RecoveryEngine::Bsd { .. } => self.bsd_transmit(now, room, counters),
            RecoveryEngine::Pipe { .. } => self.pipe_transmit(now, room, counters),
        };
        if chunk.is_some() {
            return chunk;
        }
        let copy = self.copy_tail(now, counters);
        if copy.is_none() {
            self.episode.credit = 0;
            self.episode.pair = false;
            self.watch_window(now);
        }
        copy
    }

    /// Returns a part of the data that was never sent, at most `allowed` bytes beyond `max`. None if it should wait.
    pub(super) fn fresh(&self, room: u32, allowed: u64) -> Option<Chunk> {
        let data = self.written.saturating_sub(self.max);
        if data == 0 && (!self.closing || self.fin_sent()) {
            return None;
        }
        let full = u64::from(self.frame(room));
        let open = (self.una + self.window).saturating_sub(self.max);
        let len = data.min(full).min(open).min(allowed);
        let ends = len == data;
        let fin = self.closing && ends && (self.rules.fin_rides || len == 0);
        if len == 0 && !fin {
            return None;
        }
        let idle = self.una == self.max;
        let exempt = match self.nagle {
            Nagle::Any => false,
            Nagle::Later => self.began_idle,
            Nagle::Small => self.small_end <= self.una,
        };
        let passes = len == full
            || (ends && (self.closing || self.no_delay || idle || exempt))
            || (!ends && 2 * len >= self.largest_window);
        passes.then_some(Chunk {
            start: self.max,
            len: len as u32,
            fin,
            last: ends,
        })
    }

    /// Payload of a full segment with `room` bytes left. Smaller while smart framing applies.
    pub(super) fn frame(&self, room: u32) -> u32 {
        match self.rules.framing {
            Some(FramingRule { parts, below }) if self.congestion.window() < below => {
                (room / parts.max(1)).max(1)
            }
            _ => room,
        }
    }

    /// Sends a chunk for the first time.
    pub(super) fn send_fresh(&mut self, now: Instant, chunk: Chunk) -> Chunk {
        let end = chunk.start + u64::from(chunk.len) + u64::from(chunk.fin);
        let charge = self.charge(end - chunk.start);
        let was_empty = self.board.is_empty();
        self.probed = false;
        self.board.push(SentSegment {
            start: chunk.start,
            end,
            fin: chunk.fin,
            charge,
            first_sent: now,
            sent: now,
            repeats: 0,
            sacked: false,
            lost: false,
            out_again: false,
        });
        if chunk.len < self.agreed.mss {
            self.small_end = end;
        }
        self.max = end;
        self.next = end;
        self.probed = false;
        self.spoke = now;
        if self.phase() == RecoveryPhase::Recovery {
            self.reduction.sent(u64::from(charge));
        }
        let timed = self.timer_is(Purpose::Retransmit)
            || self.timer_is(Purpose::Reorder)
            || self.timer_is(Purpose::Early);
        if was_empty || !timed {
            self.rearm(now, false);
        } else if let Some(first) = self.board.get(0) {
            let age = now.saturating_since(first.sent);
            self.schedule_probe(now, age, false);
        }
        chunk
    }

    /// Retransmits a segment.
    pub(super) fn send_again(
        &mut self,
        now: Instant,
        index: usize,
        repair: Repair,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        self.board.repeat(index, now, repair != Repair::Probe);
        let sent = self.board.get(index)?;
        debug_assert!(sent.end > self.una, "an acknowledged segment is sent again");
        let chunk = Chunk {
            start: sent.start,
            len: (sent.end - sent.start - u64::from(sent.fin)) as u32,
            fin: sent.fin,
            last: sent.end >= self.written,
        };
        let charge = u64::from(sent.charge);
        counters.retransmissions += 1;
        match repair {
            Repair::Fast => counters.fast += 1,
            Repair::AfterTimeout => counters.after_timeout += 1,
            Repair::Probe => counters.probes += 1,
        }
        if self.phase() == RecoveryPhase::Recovery {
            self.reduction.sent(charge);
        }
        self.spoke = now;
        Some(chunk)
    }

    /// Counter category of a repair in this phase.
    pub(super) fn repair(&self) -> Repair {
        match self.phase() {
            RecoveryPhase::Loss => Repair::AfterTimeout,
            _ => Repair::Fast,
        }
    }

    /// Remedy: sends the last segments again as soon as nothing else is left to send.
    fn copy_tail(&mut self, now: Instant, counters: &mut EndpointCounters) -> Option<Chunk> {
        let copies = self.rules.tail_copies as usize;
        if copies == 0 || self.unsent() > 0 || self.copied >= self.max {
            return None;
        }
        let first = self.board.len().saturating_sub(copies);
        let index = (first..self.board.len()).find(|index| {
            self.board
                .get(*index)
                .is_some_and(|sent| sent.end > self.copied)
        })?;
        self.copied = self.board.get(index).map_or(self.max, |sent| sent.end);
        self.send_again(now, index, Repair::Probe, counters)
    }

    /// Remedy: sends the parity of the last segments once, as soon as nothing else is left to send. Returns the covered
    /// range, and the payload in bytes.
    pub(crate) fn parity(&mut self, counters: &mut EndpointCounters) -> Option<(Parity, u32)> {
        let most = self.rules.tail_parity as usize;
        if most == 0 || !self.agreed.parity || self.unsent() > 0 || self.covered >= self.max {
            return None;
        }
        let tail = self.board.iter().rev().take(most);
        let (start, len) = tail.take_while(|sent| sent.end > self.covered).fold(
            (self.max, 0),
            |(_, len), sent| {
                let data = sent.end - sent.start - u64::from(sent.fin);
                (sent.start, len.max(data))
            },
        );
        self.covered = self.max;
        if len == 0 {
            return None;
        }
        counters.parities += 1;
        let parity = Parity {
            covered: (self.max - start) as u32,
            fin: self.fin_sent(),
        };
        Some((parity, len as u32))
    }

    /// Returns true if the peer's window has space for any of the waiting data.
    pub(super) fn fits_something(&self) -> bool {
        self.fresh(self.agreed.mss, u64::MAX).is_some()
    }

    /// Starts the persist timer if nothing is in flight and the peer's window blocks waiting data.
    fn watch_window(&mut self, now: Instant) {
        let waits = self.timer.is_none() && self.board.is_empty() && self.unsent() > 0;
        if waits && !self.fits_something() {
            self.set_persist(now);
        }
    }

    pub(super) fn set_persist(&mut self, now: Instant) {
        let span = self
            .rtt
            .timeout_after(self.backoff)
            .max(self.persist.minimum)
            .min(self.persist.maximum);
        self.set_timer(now, span, Purpose::Persist);
    }

    /// Builds a window probe: the data that fits in a window too small for a segment. With a closed window: one byte
    /// beyond it, or a sequence number that the peer has already acknowledged, so that it answers. The byte does not
    /// count as sent. Unless it is acknowledged, it leaves again with the data after it.
    fn window_probe(&mut self, now: Instant, room: u32) -> Chunk {
        let open = (self.una + self.window).saturating_sub(self.max);
        let data = self.written.saturating_sub(self.max);
        let len = data.min(open).min(u64::from(room));
        let chunk = Chunk {
            start: self.max,
            len: len as u32,
            fin: false,
            last: len == data,
        };
        if len > 0 && self.board.is_empty() {
            return self.send_fresh(now, chunk);
        }
        if self.persist.with_data && data > 0 && self.board.is_empty() {
            self.probed = true;
            return Chunk { len: 1, ..chunk };
        }
        Chunk {
            start: self.una.saturating_sub(1),
            len: 0,
            last: false,
            ..chunk
        }
    }

    /// Records the byte of a window probe as sent once the peer has accepted it.
    pub(super) fn book_probe(&mut self, now: Instant, ack: Offset) {
        if self.probed && ack == self.max + 1 {
            let timer = self.timer;
            self.send_fresh(
                now,
                Chunk {
                    start: self.max,
                    len: 1,
                    fin: false,
                    last: false,
                },
            );
            self.timer = timer;
        }
    }
}
