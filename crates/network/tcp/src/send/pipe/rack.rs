//! RACK (RFC 8985, sections 5 and 6) as in Linux (tcp_recovery.c).

use posthaste_units::{Instant, Span};

use super::PipeRecovery;
use super::detect::Reordering;
use crate::send::ack::{Ack, AckEffect};
use crate::send::episode::RecoveryPhase;
use crate::send::flight::Flight;
use crate::send::scoreboard::SentSegment;
use crate::send::timer::Purpose;
use crate::{EndpointCounters, Offset};

/// Added to RACK's waiting time: Linux's `TCP_TIMEOUT_MIN_US`.
const TIMER_MARGIN: Span = Span::from_millis(2);
/// Recoveries during which a widened window stays: `TCP_RACK_RECOVERY_THRESH`.
const KEEP: u32 = 16;
/// Largest reordering window in quarters of the shortest round-trip time.
const MOST_STEPS: u32 = 255;

/// State of RACK (RFC 8985, section 5.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// Latest transmission of an acknowledged segment: its time, and the end of the segment.
    latest: Option<(Instant, Offset)>,
    /// Its round-trip time.
    pub(super) rtt: Span,
    /// Something has changed since the last check.
    pub(super) advanced: bool,
    /// Reordering window in quarters of the shortest round-trip time, grown by D-SACKs: `reo_wnd_steps`.
    steps: u32,
    /// Recoveries until the steps are reset: `reo_wnd_persist`.
    pub(super) persist: u32,
    /// No more growth before this offset is acknowledged: `rtt_seq`.
    round: Offset,
}

impl Rack {
    /// Handles a segment that was acknowledged or SACKed (`tcp_rack_advance`). `shortest` is the shortest round-trip
    /// time.
    pub(super) fn advance(&mut self, now: Instant, sent: &SentSegment, shortest: Option<Span>) {
        let rtt = now.saturating_since(sent.sent);
        // The acknowledgement came too early for the retransmission: it is of the original (RFC 8985, section 6.2,
        // step 2).
        if sent.repeats > 0 && rtt < shortest.unwrap_or_default() {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        let this = (sent.sent, sent.end);
        if self.latest.is_none_or(|latest| latest < this) {
            self.latest = Some(this);
        }
    }

    /// Adapts the reordering window: D-SACKs widen it, recoveries without them narrow it (`tcp_rack_update_reo_wnd`).
    /// `max` is the end of the data sent.
    pub(super) fn learn(&mut self, max: Offset, ack: &Ack<'_>, news: &AckEffect) {
        self.steps = self.steps.max(1);
        if news.dsack && ack.number >= self.round {
            self.steps = (self.steps + 1).min(MOST_STEPS);
            self.round = max;
            self.persist = KEEP;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Reordering window (`tcp_rack_reo_wnd`).
    fn window(&self, reordering: &Reordering, flight: &Flight) -> Span {
        // Without a sign of reordering, as many SACKed segments as the duplicate threshold prove a loss at once.
        if !reordering.seen {
            let enough = flight.board.sacked_segments() >= reordering.threshold;
            if flight.phase() >= RecoveryPhase::Recovery || enough {
                return Span::ZERO;
            }
        }
        let shortest = flight.timer.rtt.minimum().unwrap_or_default();
        let smoothed = flight.timer.rtt.smoothed().unwrap_or_default();
        let steps = u64::from(self.steps.max(1));
        (shortest / 4 * steps).min(smoothed)
    }

    /// Marks segments as lost that were sent too long before an arrived one. Returns the waiting time for the rest
    /// (`tcp_rack_detect_loss`).
    fn detect(&self, reordering: &Reordering, flight: &mut Flight, now: Instant) -> Span {
        let Some(latest) = self.latest else {
            return Span::ZERO;
        };
        let patience = self.rtt + self.window(reordering, flight);
        let board = &mut flight.board;
        let mut wait = Span::ZERO;
        for index in 0..board.len() {
            let Some(sent) = board.get(index).copied() else {
                break;
            };
            // All that follow were first sent even later.
            if sent.first_sent > latest.0 {
                break;
            }
            let waits = sent.lost && !sent.out_again;
            if sent.sacked || waits || (sent.sent, sent.end) >= latest {
                continue;
            }
            let age = now.saturating_since(sent.sent);
            if age >= patience {
                board.mark_lost(index);
            } else {
                wait = wait.max(patience.saturating_sub(age));
            }
        }
        wait
    }

    /// Marks losses. Returns true if a timer was set for segments that may only be late (`tcp_rack_mark_lost`).
    pub(super) fn mark(
        &mut self,
        reordering: &Reordering,
        flight: &mut Flight,
        now: Instant,
    ) -> bool {
        if !std::mem::take(&mut self.advanced) {
            return false;
        }
        let wait = self.detect(reordering, flight, now);
        if wait.is_zero() {
            return false;
        }
        flight.timer.set(now, wait + TIMER_MARGIN, Purpose::Reorder);
        true
    }
}

impl PipeRecovery {
    /// Handles the expired reordering timer (`tcp_rack_reo_timeout`).
    pub(in crate::send) fn rack_expired(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        counters: &mut EndpointCounters,
    ) {
        let before = flight.in_flight();
        self.rack.detect(&self.reordering, flight, now);
        if flight.in_flight() != before && flight.phase() != RecoveryPhase::Recovery {
            self.enter_recovery(flight, counters);
            let (mss, out) = (flight.rules.mss(), flight.in_flight());
            let window = flight.reduction.acked(mss, out, false);
            flight.congestion.set_window(window);
        }
        flight.rearm(now, false);
    }
}
