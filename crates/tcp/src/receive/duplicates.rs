//! Adaptive duplicate acknowledgements: the receiver's help for a loss at a reply's end.
//!
//! A sender sends again quickly when three duplicates tell it of a hole, and only after its
//! timeout when fewer come. When the peer has finished and something is missing, the receiver
//! waits as long as a segment that is merely late would take, and then repeats its last
//! acknowledgement until there have been three (Garcia, Hurtig, Brunstrom, WEBIST 2007, their
//! proposal; the timer is ours, see [`AdaptiveAcks`]).
//!
//! Each hole has one chance. Repeats are what the endpoint would send anyway, so that window,
//! blocks and timestamps are right by construction.

mod gaps;
mod rule;

use posthaste_units::Instant;

pub use gaps::Gaps;
pub use rule::{AdaptiveAcks, Trigger, TriggerError};

use crate::Offset;

/// Duplicates after which a sender sends again (RFC 5681, section 3.2).
pub const DUPLICATES: u32 = 3;

#[derive(Clone, Debug)]
pub(crate) struct Duplicates {
    rule: AdaptiveAcks,
    gaps: Gaps,
    due: Instant,
    /// What was said last, number and window, and how often it has been repeated.
    said: Option<(Offset, u16)>,
    repeats: u32,
    /// The edge of the hole whose timer has run out.
    spent: Option<Offset>,
    sent: u32,
}

impl Duplicates {
    pub(crate) fn new(rule: AdaptiveAcks) -> Self {
        Self {
            rule,
            gaps: Gaps::default(),
            due: Instant::FAR_FUTURE,
            said: None,
            repeats: 0,
            spent: None,
            sent: 0,
        }
    }

    /// A segment has come; `new` where it brought something, `fin` once the peer has finished,
    /// `hole` where something is missing.
    pub(crate) fn arrived(&mut self, now: Instant, new: bool, fin: bool, hole: bool) {
        if new {
            self.gaps.arrival(now);
        }
        let looks = hole && (fin || self.rule.trigger == Trigger::Silence);
        self.due = match looks {
            true => now + self.gaps.patience(&self.rule),
            false => Instant::FAR_FUTURE,
        };
    }

    /// An acknowledgement leaves; `pure` where it does nothing else.
    pub(crate) fn said(&mut self, number: Offset, window: u16, pure: bool) {
        if pure && self.said == Some((number, window)) {
            self.repeats += 1;
        } else if self.said.is_none_or(|said| said.0 != number) {
            self.repeats = 0;
        }
        self.said = Some((number, window));
    }

    pub(crate) const fn due(&self) -> Instant {
        self.due
    }

    /// The timer has run out for the hole that begins at `edge`: how many repeats are to follow.
    pub(crate) fn expire(&mut self, now: Instant, edge: Offset) -> u32 {
        if self.due > now {
            return 0;
        }
        self.due = Instant::FAR_FUTURE;
        let confirmed = self.said.is_some_and(|said| said.0 == edge);
        if self.spent.replace(edge) == Some(edge) || !confirmed {
            return 0;
        }
        let left = self.rule.per_connection - self.sent.min(self.rule.per_connection);
        let count = DUPLICATES.saturating_sub(self.repeats).min(left);
        self.sent += count;
        count
    }
}
