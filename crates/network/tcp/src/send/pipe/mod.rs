//! Recovery with marks and a pipe: Linux (tcp_input.c, `tcp_ack` and `tcp_fastretrans_alert`) and, with other rules,
//! RFC 6675 and RFC 6582.
//!
//! Detectors mark segments as lost, the scoreboard counts bytes in flight, and marked segments are sent again before
//! anything new. Without SACK each duplicate stands for an arrived segment. `arrivals` takes the information of an
//! acknowledgement, `alert` changes the phase, `transmit` sends. `rack` marks by time, and `undo` reverts reductions.
//!
//! Not modelled: congestion signals (ECN), path MTU probes, SACK reneging beyond the effect of a timeout, and Linux's
//! collapsing of segments. A segment is SACKed as a whole or not at all.

mod alert;
mod arrivals;
mod defer;
mod detect;
mod early;
mod rack;
mod tail_probe;
mod transmit;
mod undo;
mod window_use;

use posthaste_units::{Instant, Span};

use super::ack::{Ack, AckEffect};
use super::episode::RecoveryPhase;
use super::flight::Flight;
use crate::congestion::GrowthLimit;
use crate::profile::Recovery;
use crate::{EndpointCounters, Offset};
use defer::Deferral;
use detect::Reordering;
use rack::Rack;
use tail_probe::TailProbing;
use undo::Undo;
use window_use::WindowUse;

/// State that only recovery with a pipe has.
#[derive(Clone, Debug)]
pub(super) struct PipeRecovery {
    pub(super) reordering: Reordering,
    rack: Rack,
    pub(super) undo: Undo,
    pub(super) tail_probe: TailProbing,
    pub(super) deferral: Deferral,
    pub(super) usage: WindowUse,
    /// RFC 6675: no rescue before this offset is acknowledged, `RescueRxt`.
    rescued: Offset,
    /// F-RTO is active (RFC 5682).
    frto: bool,
    /// F-RTO waits: only new data may be sent now.
    only_new: bool,
}

impl PipeRecovery {
    pub(super) fn new(rules: &Recovery) -> Self {
        Self {
            reordering: Reordering::new(rules.threshold),
            rack: Rack::default(),
            undo: Undo::default(),
            tail_probe: TailProbing::default(),
            deferral: Deferral::default(),
            usage: WindowUse::default(),
            rescued: 0,
            frto: false,
            only_new: false,
        }
    }

    /// Handles an acknowledgement. `opened` is true if it updated the peer's window.
    pub(super) fn acknowledged(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        ack: &Ack<'_>,
        opened: bool,
        counters: &mut EndpointCounters,
    ) {
        self.undo.echoed = ack.echo.map(|(stamp, _)| stamp);
        let marked = flight.board.marked();
        let had_nothing = flight.board.is_empty();
        let una = flight.sequence.una;
        let mut news = AckEffect {
            in_flight: flight.in_flight(),
            ..AckEffect::default()
        };
        self.only_new = false;
        if !had_nothing || ack.number != una || !ack.blocks.is_empty() {
            self.take_news(flight, now, ack, &mut news, counters);
        }
        if !had_nothing && !news.advanced && !ack.carries {
            news.duplicate = !opened && ack.number == una && !news.dsack;
            counters.duplicate_acks += u64::from(news.duplicate);
            counters.uncounted_acks += u64::from(!news.duplicate);
        }
        self.rack.learn(flight.sequence.max, ack, &news);
        self.tail_probe.answered(flight, ack, &news);
        if had_nothing {
            // A D-SACK may arrive after the acknowledgement of everything.
            self.try_undo_dsack(flight, counters);
            return;
        }
        if news.duplicate || news.sacked > 0 || news.dsack || flight.phase() != RecoveryPhase::Open
        {
            self.alert(flight, now, una, &mut news, counters);
        }
        if news.timer {
            flight.rearm(now, true);
        }
        news.clean = news.advanced && flight.board.marked() == marked;
        self.control(flight, now, ack, &news);
    }

    /// Updates the congestion window after an acknowledgement (`tcp_cong_control`).
    fn control(&self, flight: &mut Flight, now: Instant, ack: &Ack<'_>, news: &AckEffect) {
        if flight.phase() == RecoveryPhase::Recovery {
            let out = flight.in_flight();
            let window = flight
                .reduction
                .acked(news.delivered.bytes, out, news.clean);
            flight.congestion.set_window(window);
        } else if self.may_grow(flight, news) && !(news.ended && flight.reduction.is_at_once()) {
            // RFC 6582, section 3.2, step 3: the acknowledgement that ends recovery sets the window without further
            // growth.
            let mut progress = flight.progress(now, news.delivered, ack);
            progress.rtt = news.sent.map(|sent| now.saturating_since(sent.1));
            progress.in_flight = match flight.rules.limit {
                GrowthLimit::Validated => self.usage.most_out as u64 * flight.rules.mss(),
                GrowthLimit::Full | GrowthLimit::Ignored => news.in_flight,
            };
            progress.limited = self.usage.limited;
            flight.congestion.acked(&progress);
        }
    }

    /// Returns true if the acknowledgement may raise the window. With reordering Linux counts data that SACK reports at
    /// once, since the acknowledgement that follows covers it no more (`tcp_may_raise_cwnd`).
    fn may_grow(&self, flight: &Flight, news: &AckEffect) -> bool {
        let reordered = self.reordering.threshold > flight.rules.recovery.threshold;
        let by_sack = reordered && flight.rules.limit == GrowthLimit::Validated;
        news.advanced || (by_sack && news.sacked > 0)
    }

    /// Handles an expired retransmission timer (`tcp_enter_loss`, `tcp_timeout_mark_lost`).
    pub(super) fn timed_out(&mut self, flight: &mut Flight, now: Instant) {
        flight.forget_duplicates();
        // The threshold falls once per window of data: not if this episode has already reduced it.
        let fresh = flight.phase() <= RecoveryPhase::Disorder
            || flight.sequence.una >= flight.episode.recover
            || (flight.phase() == RecoveryPhase::Loss && flight.timer.in_row == 1);
        if fresh {
            flight.congestion.finished();
            flight.congestion.timed_out(flight.basis());
            self.begin_undo(flight);
        } else {
            flight.congestion.collapse();
        }
        // `tcp_timeout_mark_lost`: a SACKed first segment that was not acknowledged shows that the receiver has
        // discarded it (RFC 2018, section 8).
        if flight.board.get(0).is_some_and(|first| first.sacked) {
            flight.board.forget_sacks();
        }
        // With RACK, segments younger than a round-trip time may still arrive. All others are lost.
        let recent = if flight.rules.has_rack() {
            self.rack.rtt
        } else {
            Span::ZERO
        };
        for index in 0..flight.board.len() {
            let young = flight
                .board
                .get(index)
                .is_some_and(|sent| index > 0 && now.saturating_since(sent.sent) < recent);
            if !young {
                flight.board.mark_lost(index);
            }
        }
        let window = flight.in_flight() + flight.rules.mss();
        flight.congestion.set_window(window);
        flight.episode.phase = RecoveryPhase::Loss;
        flight.episode.recover = flight.sequence.max;
        flight.episode.force = true;
        self.only_new = false;
        self.tail_probe.stop();
        // RFC 5682, section 3.1, step 1: F-RTO needs that no other recovery is under way, except after earlier timeouts
        // of the same segment (section 3.2).
        self.frto = flight.rules.recovery.frto && (fresh || flight.timer.in_row > 1);
    }
}
