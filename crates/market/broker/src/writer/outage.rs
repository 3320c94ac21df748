//! Outage of a store: start, cause and time of the next attempt.

use std::time::{Duration, Instant};

use crate::store::StoreError;

/// Wait before the first retry. Doubles with each retry.
const FIRST: Duration = Duration::from_millis(100);
/// Maximum wait.
const LONGEST: Duration = Duration::from_secs(5);

/// An outage of the store.
#[derive(Debug)]
pub(super) struct Outage {
    pub(super) error: StoreError,
    since: Instant,
    wait: Duration,
    /// Time of the next attempt.
    pub(super) next: Instant,
}

impl Outage {
    /// Starts or continues an outage. Logs the start.
    pub(super) fn after(before: Option<Self>, error: StoreError, now: Instant) -> Self {
        if before.is_none() {
            tracing::error!("the store cannot be used, lookups go on: {error}");
        }
        let (since, wait) = match before {
            None => (now, FIRST),
            Some(before) => (before.since, LONGEST.min(before.wait * 2)),
        };
        debug_assert!((FIRST..=LONGEST).contains(&wait), "a pause out of bounds");
        Self {
            error,
            since,
            wait,
            next: now + wait,
        }
    }

    /// Ends the outage and logs its duration.
    pub(super) fn over(self, now: Instant) {
        let seconds = (now - self.since).as_secs_f64();
        tracing::info!(seconds, "the store is back");
    }
}
