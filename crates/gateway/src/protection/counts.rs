//! Counters of admitted and rejected requests, by reason.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use posthaste_admission::{By, REFUSALS, Why};

/// Ground on which a request is admitted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entrance {
    /// No price applies.
    Plain,
    /// By the market.
    Price(By),
}

/// Reason of a rejection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reason {
    /// The rate limit.
    Rate,
    /// The limit on requests in service.
    Limit,
    /// By the market.
    Price(Why),
}

const ENTRANCES: [&str; 4] = ["plain", By::Quote.name(), By::Offer.name(), By::Free.name()];
const OTHERS: [&str; 2] = ["rate", "limit"];

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    entered: [AtomicU64; ENTRANCES.len()],
    refused: [AtomicU64; OTHERS.len() + REFUSALS.len()],
    published: AtomicU64,
    not_published: AtomicU64,
}

impl Counts {
    pub(super) fn entered(&self, by: Entrance) {
        let place = match by {
            Entrance::Plain => 0,
            Entrance::Price(by) => 1 + by as usize,
        };
        self.entered[place].fetch_add(1, Relaxed);
    }

    pub(super) fn refused(&self, why: Reason) {
        let place = match why {
            Reason::Rate => 0,
            Reason::Limit => 1,
            Reason::Price(why) => OTHERS.len() + why.index(),
        };
        self.refused[place].fetch_add(1, Relaxed);
    }

    pub(super) fn published(&self, well: bool) {
        let counter = if well {
            &self.published
        } else {
            &self.not_published
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Admitted requests, by ground.
    pub(crate) fn entrances(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = self.entered.iter().map(|count| count.load(Relaxed));
        ENTRANCES.into_iter().zip(counts)
    }

    /// Rejected requests, by reason.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let names = OTHERS.into_iter().chain(REFUSALS.map(Why::name));
        names.zip(self.refused.iter().map(|count| count.load(Relaxed)))
    }

    /// Offers published, by outcome.
    pub(crate) fn publishing(&self) -> [(&'static str, u64); 2] {
        [
            ("ok", self.published.load(Relaxed)),
            ("failed", self.not_published.load(Relaxed)),
        ]
    }
}
