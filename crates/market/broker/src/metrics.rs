//! Counters of requests, fetches and charges.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use posthaste_broker_client::accounts::ReportedCharge;
use posthaste_qos::Currency;

use crate::store::accounts::AccountCounts;

/// Maximum number of currencies with a metric. Charges in others count as [`OTHER`].
const CURRENCIES: usize = 16;

/// Label of further currencies.
const OTHER: &str = "other";

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
    /// Accounts and reports of charges.
    pub(crate) accounts: AccountMetrics,
}

/// Counters of accounts. No account is a label.
#[derive(Debug, Default)]
pub(crate) struct AccountMetrics {
    /// Batches of charges by outcome: booked, repeated, refused.
    pub(crate) batches: [AtomicU64; 3],
    /// Requests in booked batches.
    pub(crate) requests: AtomicU64,
    /// Booked money in millionths, by currency.
    charged: Mutex<BTreeMap<String, u64>>,
    /// Accounts by state, at the last count.
    counts: Mutex<AccountCounts>,
}

impl AccountMetrics {
    /// Counts a booked batch.
    pub(crate) fn booked(&self, charges: &[ReportedCharge]) {
        self.batches[0].fetch_add(1, Relaxed);
        let requests = charges.iter().map(|charge| charge.requests);
        let requests = requests.fold(0, u64::saturating_add);
        self.requests.fetch_add(requests, Relaxed);
        let mut sums = self.charged.lock().unwrap_or_else(PoisonError::into_inner);
        for charge in charges {
            let currency: Currency = charge.charge.currency();
            let is_full = sums.len() >= CURRENCIES && !sums.contains_key(currency.code());
            let label = if is_full { OTHER } else { currency.code() };
            let sum = sums.entry(label.to_owned()).or_default();
            *sum = sum.saturating_add(charge.charge.micros());
        }
    }

    /// Booked money in units, by currency.
    pub(crate) fn charged(&self) -> Vec<(String, f64)> {
        let sums = self.charged.lock().unwrap_or_else(PoisonError::into_inner);
        let sums = sums.iter();
        sums.map(|(currency, micros)| (currency.clone(), *micros as f64 / 1e6))
            .collect()
    }

    /// Stores the numbers of accounts.
    pub(crate) fn counted(&self, counts: AccountCounts) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }

    /// Numbers of accounts at the last count.
    pub(crate) fn counts(&self) -> AccountCounts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
