//! Taking back what was wrong: Eifel by timestamps (RFC 3522), D-SACK (RFC 3708), F-RTO (RFC
//! 5682), as Linux does it (`tcp_try_undo_*` and `tcp_process_loss` in tcp_input.c).

use posthaste_units::Instant;

use super::Sender;
use super::episode::Phase;
use super::pipe::News;
use crate::clock::stamp;
use crate::{Counters, Offset};

impl Sender {
    /// From here on retransmissions are watched (`tcp_init_undo`).
    pub(super) fn begin_undo(&mut self) {
        self.episode.undo = Some(self.una);
        let probed = self.episode.probe.is_some_and(|(_, repeated)| repeated);
        self.episode.undo_repeats = self.board.again_segments() + u32::from(probed);
        self.episode.first_repeat = None;
    }

    /// A segment is sent once more: when the first was matters to Eifel.
    pub(super) fn repeats_now(&mut self, now: Instant) {
        self.episode.undo_repeats += 1;
        let stamp = stamp(now, self.tick);
        self.episode.first_repeat.get_or_insert(stamp);
    }

    /// Whether an echoed timestamp matters although nothing new is acknowledged.
    pub(crate) const fn watches_echoes(&self) -> bool {
        self.episode.first_repeat.is_some()
    }

    /// The acknowledgement echoes a timestamp from before the first retransmission.
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

    fn undo(&mut self, unmark: bool, counters: &mut Counters) {
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

    /// Everything of the recovery is acknowledged; true where the phase is kept, because without
    /// SACK late duplicates would begin another one (RFC 6582, section 3.2).
    pub(super) fn try_undo_recovery(&mut self, counters: &mut Counters) -> bool {
        if self.may_undo() {
            self.undo(false, counters);
            self.reduction_undone();
        } else {
            self.episode.rack.persist = self.episode.rack.persist.saturating_sub(1);
        }
        if self.una == self.episode.recover && !self.agreed.sack {
            return true;
        }
        self.episode.phase = Phase::Open;
        false
    }

    /// After an undo the window stays what it is at the end of recovery.
    fn reduction_undone(&mut self) {
        let window = self.congestion.window();
        self.reduction.begin(window, window, self.agreed.mss);
    }

    /// D-SACKs have shown that nothing of the episode was necessary.
    pub(super) fn try_undo_dsack(&mut self, counters: &mut Counters) -> bool {
        let all = self.episode.undo.is_some() && self.episode.undo_repeats == 0;
        if !self.rules.undo || !all || self.phase() == Phase::Loss {
            return false;
        }
        self.undo(false, counters);
        self.reduction_undone();
        true
    }

    /// A partial acknowledgement for what was late, not for what was sent again. True where the
    /// recovery only waits.
    pub(super) fn try_undo_partial(&mut self, una: Offset, counters: &mut Counters) -> bool {
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

    /// A timeout that was wrong; `proven` by F-RTO.
    fn try_undo_loss(&mut self, proven: bool, counters: &mut Counters) -> bool {
        if !proven && !self.may_undo() {
            return false;
        }
        self.undo(true, counters);
        self.backoff = 0;
        if self.una == self.episode.recover && !self.agreed.sack {
            return true;
        }
        if proven || self.agreed.sack {
            self.episode.phase = Phase::Open;
        }
        true
    }

    /// An acknowledgement after a timeout (`tcp_process_loss`).
    pub(super) fn in_loss(&mut self, news: &News, counters: &mut Counters) {
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
