//! Loss detection by later segments that arrived (RFC 6675, FACK, NewReno). `rack` detects losses by time, `early` with
//! few segments in flight.

use posthaste_units::Instant;

use super::PipeRecovery;
use crate::Offset;
use crate::profile::RecoveryEngine;
use crate::send::ack::AckEffect;
use crate::send::episode::RecoveryPhase;
use crate::send::flight::Flight;

/// Reordering of the path, as observed.
#[derive(Clone, Copy, Debug)]
pub(in crate::send) struct Reordering {
    /// Duplicates that prove a loss. Grows with observed reordering.
    pub(in crate::send) threshold: u32,
    /// Some segment has arrived late without a retransmission.
    pub(super) seen: bool,
}

impl Reordering {
    pub(super) const fn new(threshold: u32) -> Self {
        Self {
            threshold,
            seen: false,
        }
    }

    /// Raises the duplicate threshold after reordering: a segment arrived late without a retransmission, at `low`, after
    /// those up to `reached` (`tcp_check_sack_reordering`).
    pub(super) fn observe(&mut self, low: Offset, reached: Offset, mss: u64) {
        debug_assert!(
            low <= reached,
            "a late segment lies beyond those that overtook it"
        );
        let distance = reached.saturating_sub(low).div_ceil(mss.max(1)).min(300) as u32;
        self.threshold = self.threshold.max(distance);
        self.seen = true;
    }

    /// Counts a duplicate as an arrived segment if there is no SACK (`tcp_add_reno_sack`).
    pub(super) fn add_duplicate(&mut self, flight: &mut Flight, news: &mut AckEffect) {
        if flight.rules.sack() || !news.duplicate {
            return;
        }
        let holes = flight.board.lost_segments().max(1);
        let most = (flight.board.len() as u32).saturating_sub(holes);
        if flight.episode.duplicates < most {
            flight.episode.duplicates += 1;
        } else {
            // More duplicates than segments that can have arrived: the hole is only late
            // (`tcp_check_reno_reordering`).
            let una = flight.sequence.una;
            self.observe(una, una, flight.rules.mss());
        }
        news.delivered.bytes += flight.rules.mss();
        news.delivered.segments += 1;
    }

    /// Number of segments up to the highest that arrived, as proven by duplicates.
    pub(super) fn proven(&self, flight: &Flight) -> u32 {
        let sacked = flight.board.sacked_segments();
        if !flight.rules.sack() || sacked == 0 {
            return flight.reno_sacked().max(sacked);
        }
        if self.uses_fack(flight) {
            let last = flight.board.iter().rposition(|sent| sent.sacked);
            return last.map_or(0, |last| last as u32);
        }
        sacked
    }

    /// Returns true if FACK applies. Linux disables it for the connection once it sees reordering, because FACK takes
    /// every hole for a loss.
    fn uses_fack(&self, flight: &Flight) -> bool {
        matches!(
            flight.rules.recovery.engine,
            RecoveryEngine::Pipe { fack: true, .. }
        ) && !self.seen
    }

    /// Marks losses by later arrivals (RFC 6675, IsLost; Linux `tcp_mark_head_lost`). Also marks the first segment if
    /// recovery `begins`.
    pub(super) fn mark_by_count(&self, flight: &mut Flight, dubious: bool, begins: bool) {
        let has_rack = flight.rules.has_rack();
        if has_rack || !dubious || !flight.rules.sack() {
            if begins && !has_rack {
                flight.board.mark_lost(0);
            }
            return;
        }
        let fack = self.uses_fack(flight);
        let recover = flight.episode.recover;
        let board = &mut flight.board;
        let total = board.sacked_segments();
        let reached = board.iter().rposition(|sent| sent.sacked).unwrap_or(0);
        let mut passed = 0;
        for index in 0..board.len() {
            let Some(sent) = board.get(index).copied() else {
                break;
            };
            // Segments sent in this recovery, or beyond the last SACKed one, have no later arrivals that prove a loss.
            if sent.end > recover || (passed == total && index > 0) {
                break;
            }
            passed += u32::from(sent.sacked);
            let beyond = if fack {
                reached.saturating_sub(index) as u32
            } else {
                total - passed
            };
            let proven = beyond >= self.threshold || (begins && index == 0);
            if proven && !sent.sacked && !sent.lost {
                board.mark_lost(index);
            }
        }
    }
}

impl PipeRecovery {
    /// Marks lost segments, by RACK if enabled, or by NewReno without SACK.
    pub(super) fn identify(&mut self, flight: &mut Flight, now: Instant, news: &mut AckEffect) {
        if flight.board.is_empty() {
            return;
        }
        if flight.rules.has_rack() {
            if self.rack.mark(&self.reordering, flight, now) {
                news.timer = false;
            }
        } else if !flight.rules.sack() {
            let begins = flight.phase() < RecoveryPhase::Recovery
                && flight.episode.duplicates >= self.reordering.threshold;
            // RFC 6582, section 3.2, step 3: a partial acknowledgement shows the loss of the next segment.
            let partial = flight.phase() == RecoveryPhase::Recovery && news.advanced;
            let first = flight.board.get(0).is_some_and(|first| !first.lost);
            if (begins || partial) && first {
                flight.board.mark_lost(0);
            }
        }
    }

    /// Returns true if recovery must begin (`tcp_time_to_recover`).
    pub(super) fn is_time_to_recover(
        &self,
        flight: &mut Flight,
        now: Instant,
        news: &AckEffect,
    ) -> bool {
        if flight.board.lost_segments() > 0 {
            return true;
        }
        let counts = !flight.rules.has_rack();
        if counts && self.reordering.proven(flight) >= self.reordering.threshold {
            return true;
        }
        super::early::is_early(flight, now, news)
    }
}
