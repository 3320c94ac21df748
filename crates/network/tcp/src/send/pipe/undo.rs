//! Undo of unnecessary window reductions: Eifel by timestamps (RFC 3522), D-SACK (RFC 3708) and F-RTO (RFC 5682), as in
//! Linux (`tcp_try_undo_*` and `tcp_process_loss` in tcp_input.c).

use posthaste_units::Instant;

use super::PipeRecovery;
use crate::clock::stamp;
use crate::send::ack::AckEffect;
use crate::send::episode::RecoveryPhase;
use crate::send::flight::Flight;
use crate::{EndpointCounters, Offset};

/// Evidence about the retransmissions of an episode.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::send) struct Undo {
    /// Offset from which the episode can be undone, `undo_marker`.
    pub(in crate::send) start: Option<Offset>,
    /// Retransmissions that no D-SACK has shown to be unnecessary, `undo_retrans`.
    repeats: u32,
    /// The timestamp of the first retransmission of the episode, `retrans_stamp`.
    pub(super) first_repeat: Option<u32>,
    /// The timestamp that the last acknowledgement echoed.
    pub(super) echoed: Option<u32>,
    /// Retransmissions counted as unnecessary before their D-SACKs have arrived.
    forgiven: u32,
}

impl Undo {
    /// Starts to watch retransmissions, `repeats` of them in flight already (`tcp_init_undo`).
    const fn begin(&mut self, una: Offset, repeats: u32) {
        self.start = Some(una);
        self.repeats = repeats;
        self.first_repeat = None;
    }

    /// Records a retransmission. Eifel needs the time of the first one.
    pub(super) fn record(&mut self, stamp: u32) {
        self.repeats += 1;
        self.first_repeat.get_or_insert(stamp);
    }

    /// Handles a D-SACK of data up to `end`. Returns true if it reports an unnecessary retransmission that is not
    /// counted yet.
    pub(super) fn take_dsack(&mut self, end: Offset) -> bool {
        let counts = match self.forgiven.checked_sub(1) {
            Some(left) => {
                self.forgiven = left;
                false
            }
            None => true,
        };
        // A D-SACK of data from before the episode says nothing about its retransmissions (`tcp_check_dsack`).
        if self.start.is_some_and(|start| end > start) {
            self.repeats = self.repeats.saturating_sub(1);
        }
        counts
    }

    /// Returns true if an echoed timestamp matters although no new data is acknowledged.
    pub(in crate::send) const fn watches_echoes(&self) -> bool {
        self.first_repeat.is_some()
    }

    /// Returns true if the acknowledgement echoes a timestamp from before the first retransmission
    /// (`tcp_packet_delayed`; RFC 3522).
    fn is_delayed(&self) -> bool {
        match (self.first_repeat, self.echoed) {
            (Some(first), Some(echoed)) => (echoed.wrapping_sub(first) as i32) < 0,
            _ => false,
        }
    }

    /// Returns true if D-SACKs have shown all retransmissions to be unnecessary.
    const fn is_all_spurious(&self) -> bool {
        self.start.is_some() && self.repeats == 0
    }

    /// Returns true if the evidence is sufficient for an undo (`tcp_may_undo`).
    fn is_proven(&self) -> bool {
        self.start.is_some() && (self.repeats == 0 || self.is_delayed())
    }
}

impl PipeRecovery {
    /// Starts to watch the retransmissions of an episode.
    pub(super) fn begin_undo(&mut self, flight: &Flight) {
        // The scoreboard does not count a tail loss probe, but its D-SACK can arrive.
        let probes = u32::from(self.tail_probe.repeats());
        let repeats = flight.board.again_segments() + probes;
        self.undo.begin(flight.sequence.una, repeats);
    }

    /// Records a retransmission.
    pub(super) fn record_repeat(&mut self, flight: &Flight, now: Instant) {
        self.undo.record(stamp(now, flight.rules.tick));
    }

    fn may_undo(&self, flight: &Flight) -> bool {
        flight.rules.recovery.undo && self.undo.is_proven()
    }

    /// Reverts the reduction of the episode (`tcp_undo_cwnd_reduction`).
    fn revert(&mut self, flight: &mut Flight, unmark: bool, counters: &mut EndpointCounters) {
        if unmark {
            flight.board.unmark_all_lost();
        }
        counters.undone += 1;
        // All retransmissions of the episode count as unnecessary now. The D-SACKs that are still to come must not
        // count them again.
        counters.spurious += u64::from(self.undo.repeats);
        self.undo.forgiven += self.undo.repeats;
        flight.congestion.undo();
        self.undo.start = None;
        // RACK must examine the losses again, although nothing has arrived.
        self.rack.advanced = true;
    }

    /// Handles the acknowledgement of all data of the recovery (`tcp_try_undo_recovery`). Returns true if the phase
    /// stays, because without SACK late duplicates would start another recovery (RFC 6582, section 3.2).
    pub(super) fn try_undo_recovery(
        &mut self,
        flight: &mut Flight,
        counters: &mut EndpointCounters,
    ) -> bool {
        if self.may_undo(flight) {
            self.revert(flight, false, counters);
            flight.keep_window();
        } else {
            self.rack.persist = self.rack.persist.saturating_sub(1);
        }
        if is_end_without_sack(flight) {
            return true;
        }
        flight.episode.phase = RecoveryPhase::Open;
        false
    }

    /// Undoes the episode if D-SACKs have shown all of its retransmissions to be unnecessary (`tcp_try_undo_dsack`).
    pub(super) fn try_undo_dsack(
        &mut self,
        flight: &mut Flight,
        counters: &mut EndpointCounters,
    ) -> bool {
        // After a timeout `in_loss` decides.
        let applies = flight.rules.recovery.undo && flight.phase() != RecoveryPhase::Loss;
        if !applies || !self.undo.is_all_spurious() {
            return false;
        }
        self.revert(flight, false, counters);
        flight.keep_window();
        true
    }

    /// Handles a partial acknowledgement of late segments, as opposed to retransmitted ones (`tcp_try_undo_partial`).
    /// Returns true if the recovery only waits.
    pub(super) fn try_undo_partial(
        &mut self,
        flight: &mut Flight,
        una: Offset,
        counters: &mut EndpointCounters,
    ) -> bool {
        let watched = flight.rules.recovery.undo && self.undo.start.is_some();
        if !watched || !self.undo.is_delayed() {
            return false;
        }
        // The original transmission filled the hole after all: the path reorders.
        let reached = flight.sequence.una;
        self.reordering.observe(una, reached, flight.rules.mss());
        // The acknowledgements of the other retransmissions decide. Until then nothing more is marked or sent again.
        if flight.board.again_segments() > 0 {
            return true;
        }
        self.undo.first_repeat = None;
        self.revert(flight, true, counters);
        flight.keep_window();
        flight.keep_open();
        false
    }

    /// Undoes an unnecessary timeout (`tcp_try_undo_loss`). `proven` is true after a proof by F-RTO.
    fn try_undo_loss(
        &mut self,
        flight: &mut Flight,
        proven: bool,
        counters: &mut EndpointCounters,
    ) -> bool {
        if !proven && !self.may_undo(flight) {
            return false;
        }
        self.revert(flight, true, counters);
        flight.timer.backoff = 0;
        if is_end_without_sack(flight) {
            return true;
        }
        if proven || flight.rules.sack() {
            flight.episode.phase = RecoveryPhase::Open;
        }
        true
    }

    /// Handles an acknowledgement after a timeout (`tcp_process_loss`).
    pub(super) fn in_loss(
        &mut self,
        flight: &mut Flight,
        news: &AckEffect,
        counters: &mut EndpointCounters,
    ) {
        let recovered = flight.sequence.una >= flight.episode.recover;
        if news.advanced && self.try_undo_loss(flight, false, counters) {
            return;
        }
        if self.frto && self.apply_frto(flight, news, counters) {
            return;
        }
        if recovered {
            flight.forget_duplicates();
            self.try_undo_recovery(flight, counters);
            return;
        }
        if !flight.rules.sack() {
            // A duplicate means that the new data of F-RTO's step 2.b has arrived: fewer bytes are in flight.
            if flight.sequence.max > flight.episode.recover && news.duplicate {
                flight.episode.duplicates += 1;
            } else if news.advanced {
                flight.episode.duplicates = 0;
            }
        }
    }

    /// Handles an acknowledgement while F-RTO is active. Returns true if it decides alone: the timeout was unnecessary,
    /// or the next acknowledgement will tell.
    fn apply_frto(
        &mut self,
        flight: &mut Flight,
        news: &AckEffect,
        counters: &mut EndpointCounters,
    ) -> bool {
        // RFC 5682, section 3.1, step 3.b: data that was never sent again has arrived, so that the timeout was
        // unnecessary.
        if news.original && self.try_undo_loss(flight, true, counters) {
            return true;
        }
        let recovered = flight.sequence.una >= flight.episode.recover;
        if flight.sequence.max > flight.episode.recover {
            // Step 3.a: the answer to the new data is a duplicate, so that the loss is real.
            if news.sacked > 0 || news.duplicate {
                self.frto = false;
            }
        } else if news.advanced && !recovered {
            // Step 2.b: a part is acknowledged. Send new data, and let the next acknowledgement decide.
            flight.episode.recover = flight.sequence.max;
            if flight.sequence.unsent() > 0 && flight.fits_something() {
                self.only_new = true;
                return true;
            }
            self.frto = false;
        }
        false
    }
}

/// Returns true at exactly the end of an episode without SACK. The phase then stays until more is acknowledged.
const fn is_end_without_sack(flight: &Flight) -> bool {
    flight.sequence.una == flight.episode.recover && !flight.rules.sack()
}
