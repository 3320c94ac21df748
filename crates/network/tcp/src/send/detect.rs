//! Loss detection by later segments that arrived (RFC 6675, FACK, NewReno), and earlier if few segments are in flight
//! (RFC 5827). `rack` detects losses by time.

use posthaste_units::{Instant, Span};

use super::Sender;
use super::episode::RecoveryPhase;
use super::pipe::AckEffect;
use super::timer::Purpose;
use crate::EndpointCounters;
use crate::profile::RecoveryEngine;

impl Sender {
    /// Counts a duplicate as an arrived segment if there is no SACK (`tcp_add_reno_sack`).
    pub(super) fn add_duplicate(&mut self, news: &mut AckEffect) {
        if self.agreed.sack || !news.duplicate {
            return;
        }
        let holes = self.board.lost_segments().max(1);
        let most = (self.board.len() as u32).saturating_sub(holes);
        if self.episode.duplicates < most {
            self.episode.duplicates += 1;
        } else {
            self.saw_reordering(self.una, self.una);
        }
        news.delivered.0 += u64::from(self.agreed.mss);
        news.delivered.1 += 1;
    }

    /// Marks lost segments, by RACK if enabled, or by NewReno without SACK.
    pub(super) fn identify(&mut self, now: Instant, news: &mut AckEffect) {
        if self.board.is_empty() {
            return;
        }
        if self.has_rack() {
            let again = self.board.again_segments();
            if self.rack_mark(now) {
                news.timer = false;
            }
            news.repeat_lost |= self.board.again_segments() < again;
        } else if !self.agreed.sack {
            let begins = self.phase() < RecoveryPhase::Recovery
                && self.episode.duplicates >= self.episode.threshold;
            let partial = self.phase() == RecoveryPhase::Recovery && news.advanced;
            let first = self.board.get(0).is_some_and(|first| !first.lost);
            if (begins || partial) && first {
                self.board.mark_lost(0);
            }
        }
    }

    /// Number of segments up to the highest that arrived, as proven by duplicates.
    fn proven(&self) -> u32 {
        let sacked = self.board.sacked_segments();
        if !self.agreed.sack || sacked == 0 {
            return self.reno_sacked().max(sacked);
        }
        if self.uses_fack() {
            let last = self.board.iter().rposition(|sent| sent.sacked);
            return last.map_or(0, |last| last as u32);
        }
        sacked
    }

    fn uses_fack(&self) -> bool {
        matches!(self.rules.engine, RecoveryEngine::Pipe { fack: true, .. })
            && !self.episode.reordered
    }

    /// Returns true if recovery must begin (`tcp_time_to_recover`).
    pub(super) fn is_time_to_recover(&mut self, now: Instant, news: &AckEffect) -> bool {
        if self.board.lost_segments() > 0 {
            return true;
        }
        if !self.has_rack() && self.proven() >= self.episode.threshold {
            return true;
        }
        self.is_early(now, news)
    }

    /// Early retransmit (RFC 5827, section 3.2): fewer than four segments are in flight, nothing can follow, and all
    /// but one have arrived. RACK decides by time and needs no such count.
    fn is_early(&mut self, now: Instant, news: &AckEffect) -> bool {
        let Some(rule) = self.rules.early_retransmit.filter(|_| !self.has_rack()) else {
            return false;
        };
        let out = self.board.len() as u32;
        let come = self.board.sacked_segments().max(self.reno_sacked());
        let few = out < 4 && come > 0 && come + 1 >= out;
        let said = !news.advanced || news.sacked > 0;
        if !few || !said || self.unsent() > 0 || self.board.again_segments() > 0 {
            return false;
        }
        if !rule.delayed {
            return true;
        }
        if self.timer_is(Purpose::Early) {
            return false;
        }
        let quarter = self.rtt.smoothed().unwrap_or_default() / 4;
        let wait = quarter.max(Span::from_millis(2));
        let sooner = self.timer.is_some_and(|timer| timer.due <= now + wait);
        if !sooner {
            self.set_timer(now, wait, Purpose::Early);
        }
        false
    }

    /// Starts recovery after the delay of an early retransmit.
    pub(super) fn early_expired(&mut self, now: Instant, counters: &mut EndpointCounters) {
        if self.phase() < RecoveryPhase::Recovery && !self.board.is_empty() {
            self.enter_recovery(counters);
            self.mark_by_count(true, true);
            self.reduction.acked(0, self.in_flight(), false);
        }
        self.rearm(now, false);
    }

    /// Marks losses by later arrivals (RFC 6675, IsLost; Linux `tcp_mark_head_lost`). Also marks the first segment if
    /// recovery `begins`.
    pub(super) fn mark_by_count(&mut self, dubious: bool, begins: bool) {
        if self.has_rack() || !dubious || !self.agreed.sack {
            if begins && !self.has_rack() {
                self.board.mark_lost(0);
            }
            return;
        }
        let total = self.board.sacked_segments();
        let fack = self.uses_fack();
        let reached = self.board.iter().rposition(|sent| sent.sacked).unwrap_or(0);
        let mut passed = 0;
        for index in 0..self.board.len() {
            let Some(sent) = self.board.get(index).copied() else {
                break;
            };
            if sent.end > self.episode.recover || (passed == total && index > 0) {
                break;
            }
            passed += u32::from(sent.sacked);
            let beyond = if fack {
                reached.saturating_sub(index) as u32
            } else {
                total - passed
            };
            let proven = beyond >= self.episode.threshold || (begins && index == 0);
            if proven && !sent.sacked && !sent.lost {
                self.board.mark_lost(index);
            }
        }
    }
}
