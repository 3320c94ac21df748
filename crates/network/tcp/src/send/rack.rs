//! RACK and tail loss probe (RFC 8985) as in Linux (tcp_recovery.c; in tcp_output.c `tcp_schedule_loss_probe` and
//! `tcp_send_loss_probe`).

use posthaste_units::{Instant, Span};

use super::episode::RecoveryPhase;
use super::pipe::AckEffect;
use super::scoreboard::SentSegment;
use super::timer::Purpose;
use super::transmit::{Chunk, Repair};
use super::{Ack, Sender};
use crate::EndpointCounters;

/// Added to RACK's waiting time: Linux's `TCP_TIMEOUT_MIN_US`.
const TIMER_MARGIN: Span = Span::from_millis(2);
/// Recoveries during which a widened window stays: `TCP_RACK_RECOVERY_THRESH`.
const KEEP: u32 = 16;
/// Largest reordering window in quarters of the shortest round-trip time.
const MOST_STEPS: u32 = 255;

impl Sender {
    pub(super) fn has_rack(&self) -> bool {
        self.rules.rack && self.agreed.sack
    }

    /// Handles a segment that was acknowledged or SACKed (`tcp_rack_advance`).
    pub(super) fn rack_heard(&mut self, now: Instant, sent: &SentSegment) {
        let rtt = now.saturating_since(sent.sent);
        let shortest = self.rtt.minimum().unwrap_or_default();
        if sent.repeats > 0 && rtt < shortest {
            return;
        }
        let rack = &mut self.episode.rack;
        rack.advanced = true;
        rack.rtt = rtt;
        let this = (sent.sent, sent.end);
        if rack.latest.is_none_or(|latest| latest < this) {
            rack.latest = Some(this);
        }
    }

    /// Adapts the reordering window: D-SACKs widen it, recoveries without them narrow it (`tcp_rack_update_reo_wnd`).
    pub(super) fn rack_learn(&mut self, ack: &Ack<'_>, news: &AckEffect) {
        let rack = &mut self.episode.rack;
        rack.steps = rack.steps.max(1);
        if news.dsack && ack.number >= rack.round {
            rack.steps = (rack.steps + 1).min(MOST_STEPS);
            rack.round = self.max;
            rack.persist = KEEP;
        } else if rack.persist == 0 {
            rack.steps = 1;
        }
    }

    fn rack_window(&self) -> Span {
        if !self.episode.reordered {
            let enough = self.board.sacked_segments() >= self.episode.threshold;
            if self.phase() >= RecoveryPhase::Recovery || enough {
                return Span::ZERO;
            }
        }
        let shortest = self.rtt.minimum().unwrap_or_default();
        let smoothed = self.rtt.smoothed().unwrap_or_default();
        let steps = u64::from(self.episode.rack.steps.max(1));
        (shortest / 4 * steps).min(smoothed)
    }

    /// Marks segments as lost that were sent too long before an arrived one. Returns the waiting time for the rest
    /// (`tcp_rack_detect_loss`).
    fn rack_detect(&mut self, now: Instant) -> Span {
        let Some(latest) = self.episode.rack.latest else {
            return Span::ZERO;
        };
        let patience = self.episode.rack.rtt + self.rack_window();
        let mut wait = Span::ZERO;
        for index in 0..self.board.len() {
            let Some(sent) = self.board.get(index).copied() else {
                break;
            };
            if sent.first_sent > latest.0 {
                break;
            }
            let waits = sent.lost && !sent.out_again;
            if sent.sacked || waits || (sent.sent, sent.end) >= latest {
                continue;
            }
            let age = now.saturating_since(sent.sent);
            if age >= patience {
                self.board.mark_lost(index);
            } else {
                wait = wait.max(patience.saturating_sub(age));
            }
        }
        wait
    }

    /// Marks losses. Returns true if a timer was set for segments that may only be late (`tcp_rack_mark_lost`).
    pub(super) fn rack_mark(&mut self, now: Instant) -> bool {
        if !std::mem::take(&mut self.episode.rack.advanced) {
            return false;
        }
        let wait = self.rack_detect(now);
        if wait.is_zero() {
            return false;
        }
        self.set_timer(now, wait + TIMER_MARGIN, Purpose::Reorder);
        true
    }

    /// Handles the expired reordering timer (`tcp_rack_reo_timeout`).
    pub(super) fn rack_expired(&mut self, now: Instant, counters: &mut EndpointCounters) {
        let before = self.in_flight();
        self.rack_detect(now);
        if self.in_flight() != before && self.phase() != RecoveryPhase::Recovery {
            self.enter_recovery(counters);
            let mss = u64::from(self.agreed.mss);
            let window = self.reduction.acked(mss, self.in_flight(), false);
            self.congestion.set_window(window);
        }
        self.rearm(now, false);
    }

    /// Sets a probe's timer instead of the retransmission timer, if the rules allow one (`tcp_schedule_loss_probe`).
    #[inline]
    pub(super) fn schedule_probe(&mut self, now: Instant, age: Span, advancing: bool) -> bool {
        let Some(rule) = self.rules.tail_probe else {
            return false;
        };
        if !self.agreed.sack || self.phase() != RecoveryPhase::Open || self.board.is_empty() {
            return false;
        }
        let Some(smoothed) = self.rtt.smoothed() else {
            return false;
        };
        let extra = if self.board.len() == 1 {
            rule.delayed_ack
        } else {
            rule.extra
        };
        let timeout = self.timeout();
        let left = if advancing {
            timeout
        } else {
            timeout.saturating_sub(age)
        };
        let mut span = smoothed * 2 + extra;
        if !left.is_zero() {
            span = span.min(left);
        }
        self.set_timer(now, span, Purpose::Probe);
        true
    }

    /// Handles the probe's timer: schedules new data if there is any, else the last segment again
    /// (`tcp_send_loss_probe`). At most one probe is in flight.
    pub(super) fn probe_tail(&mut self, now: Instant) {
        if self.board.is_empty() {
            return;
        }
        self.episode.probing = self.episode.probe.is_none();
        self.set_timer(now, self.timeout(), Purpose::Retransmit);
    }

    /// Sends the probe, and restarts the retransmission timer.
    pub(super) fn send_probe(
        &mut self,
        now: Instant,
        room: u32,
        counters: &mut EndpointCounters,
    ) -> Option<Chunk> {
        let chunk = match self.fresh(room, u64::MAX) {
            Some(fresh) => {
                let chunk = self.send_fresh(now, fresh);
                self.episode.probe = Some((self.max, false));
                Some(chunk)
            }
            None => {
                let last = self.board.len().checked_sub(1)?;
                self.episode.probe = Some((self.max, true));
                self.send_again(now, last, Repair::Probe, counters)
            }
        };
        self.set_timer(now, self.timeout(), Purpose::Retransmit);
        chunk
    }

    /// Evaluates an acknowledgement after a probe (`tcp_process_tlp_ack`).
    pub(super) fn probe_answered(&mut self, ack: &Ack<'_>, news: &AckEffect) {
        let Some((reach, repeated)) = self.episode.probe else {
            return;
        };
        if ack.number < reach {
            return;
        }
        if !repeated || news.dsack {
            self.episode.probe = None;
        } else if ack.number > reach {
            // The probe repaired a loss that had no other sign: reduce the window.
            self.episode.probe = None;
            self.congestion.lost(self.basis());
            let threshold = self.congestion.threshold();
            self.congestion.set_window(threshold);
            self.congestion.finished();
        } else if news.duplicate && news.sacked == 0 {
            self.episode.probe = None;
        }
    }
}
