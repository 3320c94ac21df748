//! A store that cannot be used: since when, why, and when it is tried again.

use std::time::{Duration, Instant};

use crate::store::StoreError;

/// The first wait between two tries; each is twice the last.
const FIRST: Duration = Duration::from_millis(100);
/// The longest.
const LONGEST: Duration = Duration::from_secs(5);

/// A store's trouble.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) error: StoreError,
    since: Instant,
    wait: Duration,
    /// When it is worth another try.
    pub(super) next: Instant,
}

impl Trouble {
    /// It begins, or goes on; says so when it begins.
    pub(super) fn after(before: Option<Self>, error: StoreError, now: Instant) -> Self {
        if before.is_none() {
            tracing::error!("the store cannot be used, lookups go on: {error}");
        }
        let (since, wait) = match before {
            None => (now, FIRST),
            Some(before) => (before.since, LONGEST.min(before.wait * 2)),
        };
        Self {
            error,
            since,
            wait,
            next: now + wait,
        }
    }

    /// It is over.
    pub(super) fn over(self, now: Instant) {
        let seconds = (now - self.since).as_secs_f64();
        tracing::info!(seconds, "the store is back");
    }
}
