//! The sender's timer, and the timeout that sets it. A single timer with a changing purpose is enough, as in Linux.

use posthaste_units::{Instant, Span};

use crate::profile::Persist;
use crate::rtt::Rtt;
use crate::{Offset, Profile, TimerClock};

/// Purpose of the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Retransmission timeout.
    Retransmit,
    /// Tail loss probe (RFC 8985, section 7).
    Probe,
    /// Segments that RACK still waits for count as lost (RFC 8985, section 6.2).
    Reorder,
    /// The delay of an early retransmit.
    Early,
    /// Probe of a closed window (RFC 9293, section 3.8.6.1).
    Persist,
}

/// A running timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SenderTimer {
    pub(crate) due: Instant,
    pub(crate) purpose: Purpose,
}

/// The timer, the round-trip time and the back-off.
#[derive(Clone, Debug)]
pub(super) struct RetransmissionTimer {
    clock: TimerClock,
    pub(super) running: Option<SenderTimer>,
    pub(super) rtt: Rtt,
    /// Doublings of the timeout.
    pub(super) backoff: u32,
    /// Timeouts since the last acknowledgement of new data.
    pub(super) in_row: u32,
}

impl RetransmissionTimer {
    pub(super) fn new(profile: &Profile) -> Self {
        Self {
            clock: profile.clock,
            running: None,
            rtt: Rtt::new(profile.rtt, profile.timeout),
            backoff: 0,
            in_row: 0,
        }
    }

    pub(super) fn is_for(&self, purpose: Purpose) -> bool {
        self.running.is_some_and(|timer| timer.purpose == purpose)
    }

    pub(super) fn set(&mut self, now: Instant, span: Span, purpose: Purpose) {
        let due = self.clock.expiry(now, span);
        debug_assert!(due >= now, "a timer is set to the past");
        self.running = Some(SenderTimer { due, purpose });
    }

    pub(super) const fn stop(&mut self) {
        self.running = None;
    }

    /// Sets the retransmission timer to the whole timeout.
    pub(super) fn set_timeout(&mut self, now: Instant) {
        self.set(now, self.timeout(), Purpose::Retransmit);
    }

    /// Sets the timer of the next window probe.
    pub(super) fn set_persist(&mut self, now: Instant, rule: Persist) {
        let span = self.timeout().max(rule.minimum).min(rule.maximum);
        self.set(now, span, Purpose::Persist);
    }

    #[inline]
    pub(super) fn deadline(&self) -> Instant {
        self.running.map_or(Instant::FAR_FUTURE, |timer| timer.due)
    }

    /// The current retransmission timeout.
    pub(super) fn timeout(&self) -> Span {
        self.rtt.timeout_after(self.backoff)
    }

    /// Records a round-trip time. Only a new one ends the back-off (RFC 6298, section 5).
    pub(super) fn sample(&mut self, rtt: Span, acked: Offset, next: Offset) {
        self.rtt.sample(rtt, acked, next);
        self.backoff = 0;
    }
}
