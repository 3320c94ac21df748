//! Counters of requests and fetches.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of the HTTP interface.
#[derive(Debug, Default)]
pub(crate) struct BrokerMetrics {
    /// Replies by class: ok, refused, failed.
    pub(crate) replies: [AtomicU64; 3],
    /// Queries for the best offer answered with an offer.
    pub(crate) found: AtomicU64,
    /// Queries for the best offer without an adequate offer.
    pub(crate) none_adequate: AtomicU64,
    /// Requests with a missing or invalid token.
    pub(crate) refused_tokens: AtomicU64,
    /// Documents fetched.
    pub(crate) fetched: AtomicU64,
    /// Documents that could not be fetched or used.
    pub(crate) not_fetched: AtomicU64,
}

impl BrokerMetrics {
    /// Counts a query for the best offer.
    pub(crate) fn count_answer(&self, found: bool) {
        let counter = if found {
            &self.found
        } else {
            &self.none_adequate
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Counts a missing or invalid token.
    pub(crate) fn count_refused_token(&self) {
        self.refused_tokens.fetch_add(1, Relaxed);
    }

    /// Counts a fetch of a source.
    pub(crate) fn count_fetch(&self, well: bool) {
        let counter = if well {
            &self.fetched
        } else {
            &self.not_fetched
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Queries answered with an offer, and without.
    pub(crate) fn answers(&self) -> (u64, u64) {
        (self.found.load(Relaxed), self.none_adequate.load(Relaxed))
    }
}
