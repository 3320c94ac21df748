//! Sending of segments: new data, the FIN, a retransmission.
//!
//! The engines decide the usable window. The rules against small segments are the same for all.

use posthaste_units::Instant;

use super::Flight;
use crate::send::episode::RecoveryPhase;
use crate::send::scoreboard::SentSegment;
use crate::send::timer::Purpose;
use crate::{EndpointCounters, Offset};

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
pub(in crate::send) enum Repair {
    Fast,
    AfterTimeout,
    Probe,
}

impl Flight {
    /// Returns a part of the data that was never sent, at most `allowed` bytes beyond `max`. None if it should wait.
    pub(in crate::send) fn fresh(&self, room: u32, allowed: u64) -> Option<Chunk> {
        let sequence = &self.sequence;
        let data = sequence.unsent_data();
        if data == 0 && (!sequence.closing || sequence.fin_sent()) {
            return None;
        }
        let full = u64::from(self.rules.frame(room, self.congestion.window()));
        let open = self.peer.open_beyond(sequence);
        let len = data.min(full).min(open).min(allowed);
        let ends = len == data;
        let fin = sequence.closing && ends && (self.rules.recovery.fin_rides || len == 0);
        if len == 0 && !fin {
            return None;
        }
        // A part of the data leaves if it fills half of the largest window that the peer has offered, so that a
        // receiver with a small buffer still gets data (RFC 9293, section 3.8.6.2.1).
        let passes = len == full
            || (ends && self.small.frees_end(sequence))
            || (!ends && 2 * len >= self.peer.largest);
        passes.then_some(Chunk {
            start: sequence.max,
            len: len as u32,
            fin,
            last: ends,
        })
    }

    /// Returns true if the peer's window has space for any of the waiting data.
    pub(in crate::send) fn fits_something(&self) -> bool {
        self.fresh(self.rules.agreed.mss, u64::MAX).is_some()
    }

    /// Sends a chunk for the first time.
    pub(in crate::send) fn send_fresh(&mut self, now: Instant, chunk: Chunk) -> Chunk {
        let end = chunk.start + u64::from(chunk.len) + u64::from(chunk.fin);
        let charge = self.rules.charge(end - chunk.start);
        let was_empty = self.board.is_empty();
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
        if chunk.len < self.rules.agreed.mss {
            self.small.last_end = end;
        }
        self.sequence.max = end;
        self.sequence.next = end;
        self.sequence.probed = false;
        self.spoke = now;
        if self.phase() == RecoveryPhase::Recovery {
            self.reduction.sent(u64::from(charge));
        }
        let timed = self.timer.is_for(Purpose::Retransmit)
            || self.timer.is_for(Purpose::Reorder)
            || self.timer.is_for(Purpose::Early);
        if was_empty || !timed {
            self.rearm(now, false);
        } else if let Some(first) = self.board.get(0) {
            let age = now.saturating_since(first.sent);
            self.schedule_probe(now, age, false);
        }
        chunk
    }

    /// Retransmits a segment.
    pub(in crate::send) fn send_again(
        &mut self,
        now: Instant,
        index: usize,
        repair: Repair,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        self.board.repeat(index, now, repair != Repair::Probe);
        let sent = self.board.get(index)?;
        debug_assert!(
            sent.end > self.sequence.una,
            "an acknowledged segment is sent again"
        );
        let chunk = Chunk {
            start: sent.start,
            len: (sent.end - sent.start - u64::from(sent.fin)) as u32,
            fin: sent.fin,
            last: sent.end >= self.sequence.written,
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
    pub(in crate::send) const fn repair(&self) -> Repair {
        match self.phase() {
            RecoveryPhase::Loss => Repair::AfterTimeout,
            _ => Repair::Fast,
        }
    }
}
