//! The measurements of one second, for those who watch a run.

use std::collections::BTreeMap;

use posthaste_units::Span;

use crate::outcome::Outcomes;
use crate::tally::responses::Responses;
use crate::tally::{LoadTally, add_statuses};

/// Measurements of one second.
#[derive(Clone, Default)]
pub struct Tick {
    /// Requests that became due.
    pub intended: u64,
    /// Retries that were sent.
    pub retries: u64,
    /// Requests that ended, by outcome.
    pub outcomes: Outcomes,
    /// Complete replies, by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Response times of the requests that ended.
    pub responses: Responses,
    /// The maximum send lateness of the second.
    pub lateness: Span,
}

impl Tick {
    /// Returns the figures of the tally of a second.
    pub fn from_tally(second: &LoadTally) -> Self {
        let retry_lateness = &second.attempts.retry_lateness;
        Self {
            intended: second.intended,
            retries: retry_lateness.count(),
            outcomes: second.outcomes,
            statuses: second.statuses.clone(),
            responses: Responses::from_histograms(
                second.ok.histogram(),
                second.rest.distribution(),
            ),
            lateness: second.lateness.max().max(retry_lateness.max()),
        }
    }

    /// Adds another second, or the same one of other requests.
    pub fn merge(&mut self, other: &Self) {
        self.intended += other.intended;
        self.retries += other.retries;
        self.outcomes += other.outcomes;
        add_statuses(&mut self.statuses, &other.statuses);
        self.responses.merge(&other.responses);
        self.lateness = self.lateness.max(other.lateness);
    }
}
