//! Changes of the phase of recovery after an acknowledgement (`tcp_fastretrans_alert`).

use posthaste_units::Instant;

use super::PipeRecovery;
use crate::send::ack::AckEffect;
use crate::send::episode::RecoveryPhase;
use crate::send::flight::Flight;
use crate::send::timer::Purpose;
use crate::{EndpointCounters, Offset};

impl PipeRecovery {
    /// Advances the phase. `una` is the offset that was acknowledged before.
    pub(super) fn alert(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        una: Offset,
        news: &mut AckEffect,
        counters: &mut EndpointCounters,
    ) {
        if flight.phase() == RecoveryPhase::Open {
            // No repair is sent in this phase, so that the next retransmission is the first of its episode.
            self.undo.first_repeat = None;
        } else if flight.sequence.una >= flight.episode.recover
            && flight.phase() == RecoveryPhase::Recovery
        {
            flight.forget_duplicates();
            if self.try_undo_recovery(flight, counters) {
                return;
            }
            // `tcp_end_cwnd_reduction`.
            flight.congestion.set_window(flight.reduction.end());
            news.ended = true;
        }
        match flight.phase() {
            RecoveryPhase::Recovery => {
                if !news.advanced {
                    self.reordering.add_duplicate(flight, news);
                } else if self.try_undo_partial(flight, una, counters) {
                    return;
                }
                if self.try_undo_dsack(flight, counters) {
                    flight.keep_open();
                }
                self.identify(flight, now, news);
                // An undo has ended the episode. A new one needs a new proof of a loss.
                if flight.phase() != RecoveryPhase::Recovery {
                    if !self.is_time_to_recover(flight, now, news) {
                        return;
                    }
                    self.enter_recovery(flight, counters);
                }
            }
            RecoveryPhase::Loss => {
                self.in_loss(flight, news, counters);
                self.identify(flight, now, news);
                if flight.phase() == RecoveryPhase::Open {
                    return self.suspect(flight, now, news, counters);
                }
                // No later arrival marks a segment: with RACK, time does; without it, the timeout has marked all.
                return;
            }
            RecoveryPhase::Open | RecoveryPhase::Disorder => {
                return self.suspect(flight, now, news, counters);
            }
        }
        let dubious = news.duplicate || news.advanced || news.sacked > 0;
        self.reordering.mark_by_count(flight, dubious, false);
    }

    /// Checks outside recovery if the acknowledgement proves a loss.
    fn suspect(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        news: &mut AckEffect,
        counters: &mut EndpointCounters,
    ) {
        if news.advanced {
            flight.forget_duplicates();
        }
        self.reordering.add_duplicate(flight, news);
        self.try_undo_dsack(flight, counters);
        self.identify(flight, now, news);
        if self.is_time_to_recover(flight, now, news) {
            self.enter_recovery(flight, counters);
            self.reordering.mark_by_count(flight, true, true);
        } else {
            flight.keep_open();
        }
    }

    /// Starts recovery (`tcp_enter_recovery`).
    pub(super) fn enter_recovery(&mut self, flight: &mut Flight, counters: &mut EndpointCounters) {
        counters.recoveries += 1;
        self.begin_undo(flight);
        let window = flight.congestion.window();
        flight.congestion.finished();
        flight.congestion.lost(flight.basis());
        let threshold = flight.congestion.threshold();
        flight
            .reduction
            .begin(window, threshold, flight.rules.agreed.mss);
        // RFC 6675, section 5, (4.3): the first segment leaves regardless of the bytes in flight. The windows of the
        // other rules allow it anyway.
        flight.episode.force = flight.reduction.is_at_once();
        flight.episode.recover = flight.sequence.max;
        self.rescued = 0;
        flight.episode.phase = RecoveryPhase::Recovery;
        self.tail_probe.stop();
        if flight.timer.is_for(Purpose::Early) {
            flight.timer.stop();
        }
    }
}
