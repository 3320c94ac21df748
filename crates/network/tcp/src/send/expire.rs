//! Expiry and restart of the sender's timer.

use posthaste_units::{Instant, Span};

use super::Sender;
use super::timer::Purpose;
use crate::EndpointCounters;
use crate::profile::RecoveryEngine;

/// Result of an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// The connection continues.
    Fine,
    /// The limit of retransmissions is reached.
    GaveUp,
}

/// RTO restart applies while fewer segments are in flight than fast retransmit needs (RFC 7765, section 4).
const RESTART_BELOW: usize = 4;

impl Sender {
    /// Handles the timer if it is due.
    pub(crate) fn expire(&mut self, now: Instant, counters: &mut EndpointCounters) -> Expired {
        let Some(timer) = self.timer.filter(|timer| timer.due <= now) else {
            return Expired::Fine;
        };
        self.timer = None;
        match timer.purpose {
            Purpose::Retransmit => return self.time_out(now, counters),
            Purpose::Probe => self.probe_tail(now),
            Purpose::Reorder => self.rack_expired(now, counters),
            Purpose::Early => self.early_expired(now, counters),
            Purpose::Persist => {
                if self.probes >= self.retries {
                    return Expired::GaveUp;
                }
                self.probes += 1;
                self.backoff += 1;
                self.probe_now = true;
                self.set_persist(now);
            }
        }
        Expired::Fine
    }

    fn time_out(&mut self, now: Instant, counters: &mut EndpointCounters) -> Expired {
        if self.board.is_empty() {
            return Expired::Fine;
        }
        if self.in_row >= self.retries {
            return Expired::GaveUp;
        }
        self.in_row += 1;
        self.backoff += 1;
        counters.timeouts += 1;
        self.rtt.backed_off(self.backoff);
        match self.rules.engine {
            RecoveryEngine::Bsd { .. } => self.bsd_timed_out(now),
            RecoveryEngine::Pipe { .. } => self.pipe_timed_out(now),
        }
        self.set_timer(now, self.timeout(), Purpose::Retransmit);
        Expired::Fine
    }

    /// Sets the timer for the data in flight: a probe's if the rules have one, else the retransmission timer (RFC 6298,
    /// section 5; Linux `tcp_rearm_rto`). `advancing` is true if an acknowledgement has moved the first segment.
    pub(super) fn rearm(&mut self, now: Instant, advancing: bool) {
        let Some(first) = self.board.get(0) else {
            if !self.timer_is(Purpose::Persist) {
                self.timer = None;
            }
            return;
        };
        let age = now.saturating_since(first.sent);
        if self.schedule_probe(now, age, advancing) {
            return;
        }
        let mut span = self.timeout();
        if self.timer_is(Purpose::Probe) || self.timer_is(Purpose::Reorder) {
            span = span.saturating_sub(age).max(Span::from_micros(1));
        }
        let restarts = advancing
            && self.rules.rto_restart
            && self.board.len() < RESTART_BELOW
            && self.unsent() == 0;
        if restarts && age < span {
            span = span.saturating_sub(age);
        }
        self.set_timer(now, span, Purpose::Retransmit);
    }

    /// Sets the retransmission timer if no timer runs.
    pub(super) fn ensure_timer(&mut self, now: Instant) {
        if self.timer.is_none() || self.timer_is(Purpose::Persist) {
            self.rearm(now, false);
        }
    }
}
