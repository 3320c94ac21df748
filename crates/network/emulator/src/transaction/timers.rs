//! Due times, earliest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use posthaste_units::Instant;

/// Due times with tokens. There is no cancellation: the caller ignores obsolete ones.
#[derive(Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(Instant, u64)>>);

impl Timers {
    pub(super) fn set(&mut self, due: Instant, token: u64) {
        self.0.push(Reverse((due, token)));
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((due, _))| *due)
    }

    /// The next token that is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<u64> {
        let due = self.next_due().is_some_and(|due| due <= now);
        let Reverse((_, token)) = if due { self.0.pop()? } else { return None };
        Some(token)
    }
}
