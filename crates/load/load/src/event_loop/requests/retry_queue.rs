//! Requests between two attempts, by the end of their back-off.
//!
//! Their number is limited by the plan: the requests that become due within the longest series of attempts and waits.

use std::collections::BTreeMap;

use posthaste_units::Instant;

use crate::exchange::Attempt;
use crate::plan::source::Due;

/// A request that waits for its next attempt.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct WaitingRetry {
    pub(crate) due: Due,
    pub(crate) request: usize,
    /// The next attempt.
    pub(crate) attempt: Attempt,
}

/// The waiting retries of an event loop.
#[derive(Default)]
pub(in super::super) struct RetryQueue {
    waiting: BTreeMap<(Instant, u64), WaitingRetry>,
    pushed: u64,
}

impl RetryQueue {
    /// Adds a request whose next attempt is due at its time.
    pub(crate) fn push(&mut self, retry: WaitingRetry) {
        self.waiting.insert((retry.attempt.due, self.pushed), retry);
        self.pushed += 1;
    }

    /// Due time of the earliest retry.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let ((due, _), _) = self.waiting.first_key_value()?;
        Some(*due)
    }

    /// Takes the earliest retry if it is due by `now`. Of several due at one instant, the first added.
    pub(crate) fn take(&mut self, now: Instant) -> Option<WaitingRetry> {
        self.next_due().filter(|due| *due <= now)?;
        self.waiting.pop_first().map(|(_, retry)| retry)
    }

    /// Takes all retries, due or not.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = WaitingRetry> + use<> {
        std::mem::take(&mut self.waiting).into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn retry(number: u64, due: u64) -> WaitingRetry {
        let due_at = Instant::from_nanos(due);
        WaitingRetry {
            due: Due {
                number,
                at: Instant::ORIGIN,
                step: 0,
                client: 0,
            },
            request: 0,
            attempt: Attempt {
                number: 2,
                due: due_at,
                resent: 0,
            },
        }
    }

    proptest! {
        #[test]
        fn retries_leave_once_each_in_the_order_of_their_times(
            acts in proptest::collection::vec((0u64..50, any::<bool>()), 0..200),
        ) {
            let mut queue = RetryQueue::default();
            let mut model: Vec<(u64, u64)> = Vec::new();
            let mut number = 0;
            for (time, adds) in acts {
                if adds {
                    queue.push(retry(number, time));
                    model.push((time, number));
                    number += 1;
                } else {
                    model.sort_unstable();
                    let expected = model.first().copied().filter(|(due, _)| *due <= time);
                    let taken = queue.take(Instant::from_nanos(time));
                    prop_assert_eq!(taken.map(|retry| retry.due.number), expected.map(|first| first.1));
                    if expected.is_some() {
                        model.remove(0);
                    }
                }
                let earliest = model.iter().map(|(due, _)| Instant::from_nanos(*due)).min();
                prop_assert_eq!(queue.next_due(), earliest);
            }
            prop_assert_eq!(queue.drain().count(), model.len());
            prop_assert_eq!(queue.next_due(), None);
        }
    }
}
