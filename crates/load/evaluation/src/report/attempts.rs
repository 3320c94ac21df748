//! Attempts as data, for reports of clients that retry.

use posthaste_stats::Summary;
use serde::{Deserialize, Serialize};

use posthaste_load::{Outcomes, Run};

/// Attempts of the requests of a run whose clients retry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttemptsReport {
    /// All attempts, those included that could not be sent.
    pub total: u64,
    /// Attempts for each request. 1 without a retry.
    pub per_request: f64,
    /// Attempts sent per second of the measured time, whenever their requests were due.
    pub rate: f64,
    /// Attempts by outcome. The counts sum to `total`.
    pub outcomes: Outcomes,
    /// Requests by number of attempts: with one, with two, and so on. The counts sum to `intended`.
    pub requests: Vec<u64>,
    /// End of the back-off to sent: the generator's own lateness with retries.
    pub retry_lateness_ms: Summary,
}

impl AttemptsReport {
    pub(super) fn new(run: &Run) -> Self {
        let attempts = &run.attempts;
        let total = attempts.total();
        Self {
            total,
            per_request: total as f64 / run.intended.max(1) as f64,
            rate: run.attempt_rate(),
            outcomes: attempts.outcomes,
            requests: attempts.requests.clone(),
            retry_lateness_ms: attempts.retry_lateness.summary(),
        }
    }

    /// Requests with more than one attempt.
    pub(crate) fn retried(&self) -> u64 {
        self.requests.iter().skip(1).sum()
    }

    /// Numbers of attempts and the requests that had as many, without zeros.
    pub(super) fn by_number(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = self.requests.iter().copied();
        (1..).zip(counts).filter(|(_, count)| *count > 0)
    }
}
