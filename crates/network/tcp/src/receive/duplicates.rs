//! Adaptive duplicate acknowledgements: a remedy at the receiver for a loss at the end of a reply.
//!
//! A sender retransmits quickly after three duplicates, and only after its timeout when fewer arrive. If the peer has
//! finished and data is missing, the receiver waits as long as a merely late segment would take. It then repeats its
//! last acknowledgement until there have been three (proposal of Garcia, Hurtig, Brunstrom, WEBIST 2007; the timer is
//! ours, see [`AdaptiveAcks`]).
//!
//! The timer expires once per hole. The endpoint sends repeats like any acknowledgement, so window, blocks and
//! timestamps are right by construction.

mod gaps;
mod rule;

use posthaste_units::Instant;

pub use gaps::Gaps;
pub use rule::{AdaptiveAcks, Trigger, TriggerError};

use crate::Offset;

/// Number of duplicates that make a sender retransmit (RFC 5681, section 3.2).
pub const DUPLICATES: u32 = 3;

#[derive(Clone, Debug)]
pub(crate) struct Duplicates {
    rule: AdaptiveAcks,
    gaps: Gaps,
    due: Instant,
    /// Number and window of the last acknowledgement, and the number of its repeats.
    last: Option<(Offset, u16)>,
    repeats: u32,
    /// Start of the hole whose timer has expired.
    spent: Option<Offset>,
    sent: u32,
}

impl Duplicates {
    pub(crate) fn new(rule: AdaptiveAcks) -> Self {
        Self {
            rule,
            gaps: Gaps::default(),
            due: Instant::FAR_FUTURE,
            last: None,
            repeats: 0,
            spent: None,
            sent: 0,
        }
    }

    /// Handles an arriving segment. `new` is true if it had new data, `fin` once the peer has finished, `hole` if data
    /// is missing.
    pub(crate) fn arrived(&mut self, now: Instant, new: bool, fin: bool, hole: bool) {
        if new {
            self.gaps.arrival(now);
        }
        let looks = hole && (fin || self.rule.trigger == Trigger::Silence);
        self.due = if looks {
            now + self.gaps.patience(&self.rule)
        } else {
            Instant::FAR_FUTURE
        };
    }

    /// Records an acknowledgement that leaves. `pure` is true if it carries nothing else.
    pub(crate) fn acknowledged(&mut self, number: Offset, window: u16, pure: bool) {
        if pure && self.last == Some((number, window)) {
            self.repeats += 1;
        } else if self.last.is_none_or(|last| last.0 != number) {
            self.repeats = 0;
        }
        self.last = Some((number, window));
    }

    pub(crate) const fn due(&self) -> Instant {
        self.due
    }

    /// Handles the expired timer for the hole that begins at `edge`. Returns the number of repeats to send.
    pub(crate) fn expire(&mut self, now: Instant, edge: Offset) -> u32 {
        if self.due > now {
            return 0;
        }
        self.due = Instant::FAR_FUTURE;
        let confirmed = self.last.is_some_and(|last| last.0 == edge);
        if self.spent.replace(edge) == Some(edge) || !confirmed {
            return 0;
        }
        let left = self.rule.per_connection - self.sent.min(self.rule.per_connection);
        let count = DUPLICATES.saturating_sub(self.repeats).min(left);
        self.sent += count;
        debug_assert!(
            self.sent <= self.rule.per_connection,
            "more duplicates than the rule allows"
        );
        count
    }
}
