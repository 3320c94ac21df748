//! Counters of retries and of the exclusion of endpoints.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Reasons of retries, in the order of [`RetryReason`].
pub(crate) const RETRIES: [&str; 3] = ["status", "broken", "timeout"];

/// Outcomes of the rules for ejection, in the order of [`EjectionOutcome`].
pub(crate) const EJECTIONS: [&str; 3] = ["failures", "slow", "not-permitted"];

/// The reason of a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryReason {
    /// The status of the reply.
    Status,
    /// The connection broke.
    Broken,
    /// No reply in time.
    Timeout,
}

/// The outcome of a rule for ejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EjectionOutcome {
    /// Ejected for failures in a row.
    Failures,
    /// Ejected for slow replies.
    Slow,
    /// Not ejected, because too many endpoints are or no other is usable.
    NotPermitted,
}

/// Counters since the start, shared by all threads.
#[derive(Debug, Default)]
pub(crate) struct UpstreamCounters {
    /// In the order of [`RETRIES`].
    pub(crate) retries: [AtomicU64; RETRIES.len()],
    /// Retries for which there was no budget.
    pub(crate) retries_refused: AtomicU64,
    /// In the order of [`EJECTIONS`].
    pub(crate) ejections: [AtomicU64; EJECTIONS.len()],
}

impl UpstreamCounters {
    pub(crate) fn retried(&self, reason: RetryReason) {
        self.retries[reason as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn retry_refused(&self) {
        self.retries_refused.fetch_add(1, Relaxed);
    }

    pub(crate) fn ejection(&self, outcome: EjectionOutcome) {
        self.ejections[outcome as usize].fetch_add(1, Relaxed);
    }
}
