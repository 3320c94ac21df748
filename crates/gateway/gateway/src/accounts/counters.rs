//! Counters of accounts. No account is a label.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use posthaste_admission::Amount;

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct AccountCounters {
    /// Keys shown: known, wrong.
    keys: [AtomicU64; 2],
    /// Requests with a price: charged, given back.
    payments: [AtomicU64; 2],
    /// Millionths charged.
    charged: AtomicU64,
    /// Reports: acknowledged, failed, refused.
    reports: [AtomicU64; 3],
    /// Millionths in refused batches, which may not be booked.
    lost: AtomicU64,
}

/// Outcome of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportEnd {
    Acknowledged,
    Failed,
    Refused,
}

impl AccountCounters {
    pub(super) fn key(&self, is_known: bool) {
        self.keys[usize::from(!is_known)].fetch_add(1, Relaxed);
    }

    pub(super) fn charged(&self, amount: Amount) {
        self.payments[0].fetch_add(1, Relaxed);
        self.charged.fetch_add(amount.micros(), Relaxed);
    }

    pub(super) fn given_back(&self) {
        self.payments[1].fetch_add(1, Relaxed);
    }

    pub(super) fn reported(&self, end: ReportEnd) {
        self.reports[end as usize].fetch_add(1, Relaxed);
    }

    pub(super) fn lost(&self, micros: u64) {
        self.lost.fetch_add(micros, Relaxed);
    }

    /// Keys shown, by outcome.
    pub(crate) fn by_key(&self) -> [(&'static str, u64); 2] {
        named(["known", "wrong"], &self.keys)
    }

    /// Requests with a price, by outcome.
    pub(crate) fn by_payment(&self) -> [(&'static str, u64); 2] {
        named(["charged", "given-back"], &self.payments)
    }

    /// Reports, by outcome.
    pub(crate) fn by_report(&self) -> [(&'static str, u64); 3] {
        named(["ok", "failed", "refused"], &self.reports)
    }

    /// Money charged, and money in refused batches, in units.
    pub(crate) fn sums(&self) -> [f64; 2] {
        [&self.charged, &self.lost].map(|micros| micros.load(Relaxed) as f64 / 1e6)
    }
}

fn named<const N: usize>(
    names: [&'static str; N],
    counts: &[AtomicU64; N],
) -> [(&'static str, u64); N] {
    std::array::from_fn(|index| (names[index], counts[index].load(Relaxed)))
}
