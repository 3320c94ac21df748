//! Restart of the timer for the data in flight.

use posthaste_units::{Instant, Span};

use super::Flight;
use crate::send::episode::RecoveryPhase;
use crate::send::timer::Purpose;

/// RTO restart applies while fewer segments are in flight than fast retransmit needs (RFC 7765, section 4).
const RESTART_BELOW: usize = 4;

impl Flight {
    /// Sets the timer for the data in flight: a probe's if the rules have one, else the retransmission timer (RFC 6298,
    /// section 5; Linux `tcp_rearm_rto`). `advancing` is true if an acknowledgement has moved the first segment.
    pub(in crate::send) fn rearm(&mut self, now: Instant, advancing: bool) {
        let Some(first) = self.board.get(0) else {
            if !self.timer.is_for(Purpose::Persist) {
                self.timer.stop();
            }
            return;
        };
        let age = now.saturating_since(first.sent);
        if self.schedule_probe(now, age, advancing) {
            return;
        }
        let mut span = self.timer.timeout();
        if self.timer.is_for(Purpose::Probe) || self.timer.is_for(Purpose::Reorder) {
            // Linux's `tcp_rearm_rto`: these timers ran instead of the timeout, which counts from the
            // transmission of the first segment.
            span = span.saturating_sub(age).max(Span::from_micros(1));
        }
        let restarts = advancing
            && self.rules.recovery.rto_restart
            && self.board.len() < RESTART_BELOW
            && self.sequence.unsent() == 0;
        if restarts && age < span {
            span = span.saturating_sub(age);
        }
        self.timer.set(now, span, Purpose::Retransmit);
    }

    /// Sets the retransmission timer if no timer runs.
    pub(in crate::send) fn ensure_timer(&mut self, now: Instant) {
        if self.timer.running.is_none() || self.timer.is_for(Purpose::Persist) {
            self.rearm(now, false);
        }
    }

    /// Sets a probe's timer instead of the retransmission timer, if the rules allow one (`tcp_schedule_loss_probe`).
    #[inline]
    pub(super) fn schedule_probe(&mut self, now: Instant, age: Span, advancing: bool) -> bool {
        let Some(rule) = self.rules.recovery.tail_probe else {
            return false;
        };
        if !self.rules.sack() || self.phase() != RecoveryPhase::Open || self.board.is_empty() {
            return false;
        }
        let Some(smoothed) = self.timer.rtt.smoothed() else {
            return false;
        };
        // The peer may delay the acknowledgement of a single segment (RFC 8985, section 7.2).
        let extra = if self.board.len() == 1 {
            rule.delayed_ack
        } else {
            rule.extra
        };
        let timeout = self.timer.timeout();
        let left = if advancing {
            timeout
        } else {
            timeout.saturating_sub(age)
        };
        let mut span = smoothed * 2 + extra;
        if !left.is_zero() {
            span = span.min(left);
        }
        self.timer.set(now, span, Purpose::Probe);
        true
    }
}
