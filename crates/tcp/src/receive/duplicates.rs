//! Adaptive duplicate acknowledgements: the receiver's help for a loss at a reply's end.
//!
//! A sender sends again quickly when three duplicates tell it of a hole, and only after its
//! timeout when fewer come. When the peer has finished and something is missing, the receiver
//! waits as long as a segment that is merely late would take, and then repeats its last
//! acknowledgement until there have been three (Garcia, Hurtig, Brunstrom, WEBIST 2007, their
//! proposal; the timer is ours: mean and mean deviation of the gaps between segments, smoothed as
//! RFC 6298 smooths round-trip times).
//!
//! Each hole has one chance. Repeats are what the endpoint would send anyway, so that window,
//! blocks and timestamps are right by construction.

use posthaste_units::{Instant, Span};

use crate::Offset;

/// Duplicates after which a sender sends again (RFC 5681, section 3.2).
const DUPLICATES: u32 = 3;

/// When a hole is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// From the FIN on, as the paper has it.
    Fin,
    /// On all data: a peer that is silent while there is a hole seems to have finished.
    Silence,
}

/// The rules of the timer: `min(longest, max(shortest, mean + deviations * deviation))` after the
/// last segment with new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveAcks {
    /// When a hole is looked for.
    pub trigger: Trigger,
    /// How many deviations beyond the mean gap are waited.
    pub deviations: u32,
    /// Shortest wait.
    pub shortest: Span,
    /// Longest wait, and the wait while no gap has been measured.
    pub longest: Span,
    /// Most repeats in a connection's life.
    pub per_connection: u32,
}

impl Default for AdaptiveAcks {
    /// Four deviations, 10 to 200 ms, three repeats: what the emulator's agent does.
    fn default() -> Self {
        Self {
            trigger: Trigger::Fin,
            deviations: 4,
            shortest: Span::from_millis(10),
            longest: Span::from_millis(200),
            per_connection: 3,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Duplicates {
    rule: AdaptiveAcks,
    last: Option<Instant>,
    gap: Option<(Span, Span)>,
    due: Option<Instant>,
    /// What was said last, number and window, and how often it has been repeated.
    said: Option<(Offset, u16)>,
    repeats: u32,
    /// The edge of the hole whose timer has run out.
    spent: Option<Offset>,
    sent: u32,
}

impl Duplicates {
    pub(crate) const fn new(rule: AdaptiveAcks) -> Self {
        Self {
            rule,
            last: None,
            gap: None,
            due: None,
            said: None,
            repeats: 0,
            spent: None,
            sent: 0,
        }
    }

    /// A segment has come; `new` where it brought something, `hole` where the rule's trigger
    /// holds and something is missing.
    pub(crate) fn arrived(&mut self, now: Instant, new: bool, fin_and_hole: bool, hole: bool) {
        if new && let Some(last) = self.last.replace(now) {
            self.measure(now.since(last));
        }
        let looks = match self.rule.trigger {
            Trigger::Fin => fin_and_hole,
            Trigger::Silence => hole,
        };
        self.due = looks.then(|| now + self.patience());
    }

    fn measure(&mut self, gap: Span) {
        self.gap = Some(match self.gap {
            None => (gap, gap / 2),
            Some((mean, deviation)) => {
                let off = mean.saturating_sub(gap) + gap.saturating_sub(mean);
                (
                    mean.saturating_sub(mean / 8) + gap / 8,
                    deviation.saturating_sub(deviation / 4) + off / 4,
                )
            }
        });
    }

    fn patience(&self) -> Span {
        self.gap.map_or(self.rule.longest, |(mean, deviation)| {
            let wait = mean + deviation * u64::from(self.rule.deviations);
            wait.max(self.rule.shortest).min(self.rule.longest)
        })
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

    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The timer has run out for the hole that begins at `edge`: how many repeats are to follow.
    pub(crate) fn expire(&mut self, now: Instant, edge: Offset) -> u32 {
        if self.due.is_none_or(|due| due > now) {
            return 0;
        }
        self.due = None;
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
