//! Counters of admitted and rejected requests, by reason.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use posthaste_admission::{By, REFUSALS, Why};

/// Ground on which a request is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AdmissionGround {
    /// No price applies.
    Plain,
    /// By the market.
    Price(By),
    /// It pays nothing and got what paying requests left.
    Unpaid,
    /// The policy would have rejected it.
    DryRun,
}

/// Reason of a rejection.
#[derive(Clone, Copy, Debug)]
pub(super) enum RejectionReason {
    /// The rate limit.
    Rate,
    /// The limit on requests in service, and too many wait.
    Limit,
    /// The request has waited too long for a slot of the limit.
    Wait,
    /// The rate of its client.
    ClientRate,
    /// The number of requests of its client.
    ClientConcurrency,
    /// The rate of its route.
    RouteRate,
    /// The number of requests on its route.
    RouteConcurrency,
    /// By the market.
    Price(Why),
}

const GROUNDS: [&str; 6] = [
    "plain",
    By::Quote.name(),
    By::Offer.name(),
    By::Free.name(),
    "unpaid",
    "dry-run",
];
const OTHERS: [&str; 7] = [
    "rate",
    "limit",
    "wait",
    "client-rate",
    "client-concurrency",
    "route-rate",
    "route-concurrency",
];
const REASONS: usize = OTHERS.len() + REFUSALS.len();

impl RejectionReason {
    /// Its name as a label of metrics, and in the access log of a dry run.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Price(why) => why.name(),
            other => OTHERS[other.index()],
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::Rate => 0,
            Self::Limit => 1,
            Self::Wait => 2,
            Self::ClientRate => 3,
            Self::ClientConcurrency => 4,
            Self::RouteRate => 5,
            Self::RouteConcurrency => 6,
            Self::Price(why) => OTHERS.len() + why.index(),
        }
    }
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct AdmissionCounters {
    admitted: [AtomicU64; GROUNDS.len()],
    rejected: [AtomicU64; REASONS],
    /// Requests that a dry run admitted in spite of such a reason.
    would_reject: [AtomicU64; REASONS],
    published: AtomicU64,
    not_published: AtomicU64,
}

impl AdmissionCounters {
    pub(super) fn admitted(&self, ground: AdmissionGround) {
        let index = match ground {
            AdmissionGround::Plain => 0,
            AdmissionGround::Price(by) => 1 + by as usize,
            AdmissionGround::Unpaid => GROUNDS.len() - 2,
            AdmissionGround::DryRun => GROUNDS.len() - 1,
        };
        self.admitted[index].fetch_add(1, Relaxed);
    }

    pub(super) fn rejected(&self, reason: RejectionReason) {
        self.rejected[reason.index()].fetch_add(1, Relaxed);
    }

    pub(super) fn would_reject(&self, reason: RejectionReason) {
        self.would_reject[reason.index()].fetch_add(1, Relaxed);
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
        named(&self.rejected)
    }

    /// Requests that a dry run admitted and the policy would have rejected, by reason.
    pub(crate) fn by_dry_reason(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        named(&self.would_reject)
    }

    /// Offers published, by outcome.
    pub(crate) fn publications(&self) -> [(&'static str, u64); 2] {
        [
            ("ok", self.published.load(Relaxed)),
            ("failed", self.not_published.load(Relaxed)),
        ]
    }
}

/// Counts by the name of their reason.
fn named(counts: &[AtomicU64; REASONS]) -> impl Iterator<Item = (&'static str, u64)> + '_ {
    let names = OTHERS.into_iter().chain(REFUSALS.map(Why::name));
    names.zip(counts.iter().map(|count| count.load(Relaxed)))
}
