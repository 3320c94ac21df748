//! Results of a part of a run: one step of its rate, or one request of its mix.

use serde::{Deserialize, Serialize};

use crate::outcome::Outcomes;
use crate::tally::responses::Responses;

/// A part of the run that is counted separately: a step of the plan, or a request of the mix.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartResults {
    /// Its requests by outcome.
    pub outcomes: Outcomes,
    /// Complete replies in the measured time, including replies to requests of the warm-up.
    pub completed: u64,
    /// Complete replies in the measured time that were [`Outcome::Ok`].
    pub served: u64,
    /// Attempts of its requests.
    pub attempts: u64,
    /// Response times of its requests.
    pub responses: Responses,
}

impl PartResults {
    pub(crate) fn clear(&mut self) {
        self.outcomes = Outcomes::default();
        (self.completed, self.served, self.attempts) = (0, 0, 0);
        self.responses.clear();
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.outcomes += other.outcomes;
        self.completed += other.completed;
        self.served += other.served;
        self.attempts += other.attempts;
        self.responses.merge(&other.responses);
    }
}
