//! Undo of unnecessary window reductions: Eifel by timestamps (RFC 3522), D-SACK (RFC 3708) and F-RTO (RFC 5682), as in
//! Linux (`tcp_try_undo_*` and `tcp_process_loss` in tcp_input.c).

use posthaste_units::Instant;

use super::Sender;
use super::episode::RecoveryPhase;
use super::pipe::AckEffect;
use crate::clock::stamp;
use crate::{EndpointCounters, Offset};

impl Sender {
    /// Starts to watch retransmissions (`tcp_init_undo`).
    pub(super) fn begin_undo(&mut self) {
        self.episode.undo = Some(self.una);
        let probed = self.episode.probe.is_some_and(|(_, repeated)| repeated);
        self.episode.undo_repeats = self.board.again_segments() + u32::from(probed);
        self.episode.first_repeat = None;
    }

    /// Records a retransmission. Eifel needs the time of the first one.
    pub(super) fn repeats_now(&mut self, now: Instant) {
        self.episode.undo_repeats += 1;
        let stamp = stamp(now, self.tick);
        self.episode.first_repeat.get_or_insert(stamp);
    }

    /// Returns true if an echoed timestamp matters although no new data is acknowledged.
    pub(crate) const fn watches_echoes(&self) -> bool {
        self.episode.first_repeat.is_some()
    }

    /// Returns true if the acknowledgement echoes a timestamp from before the first retransmission.
    fn is_delayed(&self) -> bool {
        match (self.episode.first_repeat, self.echoed) {
            (Some(first), Some(echoed)) => (echoed.wrapping_sub(first) as i32) < 0,
            _ => false,
        }
    }

    fn may_undo(&self) -> bool {
        let watched = self.rules.undo && self.episode.undo.is_some();
        watched && (self.episode.undo_repeats == 0 || self.is_delayed())
    }

    fn undo(&mut self, unmark: bool, counters: &mut EndpointCounters) {
        if unmark {
            self.board.unmark_all_lost();
        }
        counters.undone += 1;
        counters.spurious += u64::from(self.episode.undo_repeats);
        self.episode.forgiven += self.episode.undo_repeats;
        self.congestion.undo();
        self.episode.undo = None;
        self.episode.rack.advanced = true;
    }

    /// Handles the acknowledgement of all data of the recovery. Returns true if the phase stays, because without SACK
    /// late duplicates would start another recovery (RFC 6582, section 3.2).
    pub(super) fn try_undo_recovery(&mut self, counters: &mut EndpointCounters) -> bool {
        if self.may_undo() {
            self.undo(false, counters);
            self.reduction_undone();
        } else {
            self.episode.rack.persist = self.episode.rack.persist.saturating_sub(1);
        }
        if self.una == self.episode.recover && !self.agreed.sack {
            return true;
        }
        self.episode.phase = RecoveryPhase::Open;
        false
    }

    /// Keeps the window at the end of recovery after an undo.
    fn reduction_undone(&mut self) {
        let window = self.congestion.window();
        self.reduction.begin(window, window, self.agreed.mss);
    }

    /// Undoes the episode if D-SACKs have shown all of its retransmissions to be unnecessary.
    pub(super) fn try_undo_dsack(&mut self, counters: &mut EndpointCounters) -> bool {
        let all = self.episode.undo.is_some() && self.episode.undo_repeats == 0;
        if !self.rules.undo || !all || self.phase() == RecoveryPhase::Loss {
            return false;
        }
        self.undo(false, counters);
        self.reduction_undone();
        true
    }

    /// Handles a partial acknowledgement of late segments, as opposed to retransmitted ones. Returns true if the
    /// recovery only waits.
    pub(super) fn try_undo_partial(
        &mut self,
        una: Offset,
        counters: &mut EndpointCounters,
    ) -> bool {
        if !self.rules.undo || self.episode.undo.is_none() || !self.is_delayed() {
            return false;
        }
        self.saw_reordering(una, self.una);
        if self.board.again_segments() > 0 {
            return true;
        }
        self.episode.first_repeat = None;
        self.undo(true, counters);
        self.reduction_undone();
        self.keep_open();
        false
    }

    /// Undoes an unnecessary timeout. `proven` is true after a proof by F-RTO.
    fn try_undo_loss(&mut self, proven: bool, counters: &mut EndpointCounters) -> bool {
        if !proven && !self.may_undo() {
            return false;
        }
        self.undo(true, counters);
        self.backoff = 0;
        if self.una == self.episode.recover && !self.agreed.sack {
            return true;
        }
        if proven || self.agreed.sack {
            self.episode.phase = RecoveryPhase::Open;
        }
        true
    }

    /// Handles an acknowledgement after a timeout (`tcp_process_loss`).
    pub(super) fn in_loss(&mut self, news: &AckEffect, counters: &mut EndpointCounters) {
        let recovered = self.una >= self.episode.recover;
        if news.advanced && self.try_undo_loss(false, counters) {
            return;
        }
        if self.episode.frto {
            if news.original && self.try_undo_loss(true, counters) {
                return;
            }
            if self.max > self.episode.recover {
                if news.sacked > 0 || news.duplicate {
                    self.episode.frto = false;
                }
            } else if news.advanced && !recovered {
                self.episode.recover = self.max;
                if self.unsent() > 0 && self.fits_something() {
                    self.episode.only_new = true;
                    return;
                }
                self.episode.frto = false;
            }
        }
        if recovered {
            if !self.agreed.sack {
                self.episode.duplicates = 0;
            }
            self.try_undo_recovery(counters);
            return;
        }
        if !self.agreed.sack {
            if self.max > self.episode.recover && news.duplicate {
                self.episode.duplicates += 1;
            } else if news.advanced {
                self.episode.duplicates = 0;
            }
        }
    }
}
