//! Counters of admitted and rejected requests, by reason.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use posthaste_admission::{By, REFUSALS, Why};

/// Ground on which a request is admitted.
#[derive(Clone, Copy, Debug)]
pub(super) enum AdmissionGround {
    /// No price applies.
    Plain,
    /// By the market.
    Price(By),
}

/// Reason of a rejection.
#[derive(Clone, Copy, Debug)]
pub(super) enum RejectionReason {
    /// The rate limit.
    Rate,
    /// The limit on requests in service.
    Limit,
    /// By the market.
    Price(Why),
}

const GROUNDS: [&str; 4] = ["plain", By::Quote.name(), By::Offer.name(), By::Free.name()];
const OTHERS: [&str; 2] = ["rate", "limit"];

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct AdmissionCounters {
    admitted: [AtomicU64; GROUNDS.len()],
    rejected: [AtomicU64; OTHERS.len() + REFUSALS.len()],
    published: AtomicU64,
    not_published: AtomicU64,
}

impl AdmissionCounters {
    pub(super) fn admitted(&self, ground: AdmissionGround) {
        let index = match ground {
            AdmissionGround::Plain => 0,
            AdmissionGround::Price(by) => 1 + by as usize,
        };
        self.admitted[index].fetch_add(1, Relaxed);
    }

    pub(super) fn rejected(&self, reason: RejectionReason) {
        let index = match reason {
            RejectionReason::Rate => 0,
            RejectionReason::Limit => 1,
            RejectionReason::Price(why) => OTHERS.len() + why.index(),
        };
        self.rejected[index].fetch_add(1, Relaxed);
    }

    pub(super) fn published(&self, succeeded: bool) {
        let counter = if succeeded {
            &self.published
        } else {
            &self.not_published
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Admitted requests, by ground.
    pub(crate) fn by_ground(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = self.admitted.iter().map(|count| count.load(Relaxed));
        GROUNDS.into_iter().zip(counts)
    }

    /// Rejected requests, by reason.
    pub(crate) fn by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let names = OTHERS.into_iter().chain(REFUSALS.map(Why::name));
        names.zip(self.rejected.iter().map(|count| count.load(Relaxed)))
    }

    /// Offers published, by outcome.
    pub(crate) fn publications(&self) -> [(&'static str, u64); 2] {
        [
            ("ok", self.published.load(Relaxed)),
            ("failed", self.not_published.load(Relaxed)),
        ]
    }
}
