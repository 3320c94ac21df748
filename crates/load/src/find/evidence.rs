//! The evidence of one trial, and the only place of the search that reads a [`Run`].

use posthaste_stats::{Beyond, Recorder, Time};
use posthaste_units::Span;

use super::objective::Objective;
use crate::outcome::Outcome;
use crate::results::Run;

/// A failed trial says nothing about the server if its sends were late by more than this share of its response times,
/// both at the 99th percentile.
const LATE: f64 = 0.25;
/// The same if at least this share of its requests was never sent.
const UNSENT: f64 = 0.01;

/// The result of one trial.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Requests that became due in the measured time.
    pub requests: u64,
    /// Requests beyond the bound. A request without a complete reply is beyond every bound.
    pub beyond: u64,
    /// Requests without a complete reply.
    pub unanswered: u64,
    /// Requests that did not end `ok`, unanswered ones included.
    pub failed: u64,
    /// The objective's statistic as a multiple of its bound. Infinite if it lies among the unanswered.
    pub excess: f64,
    /// Median response time in seconds. Infinite if it lies among the unanswered.
    pub median: f64,
    /// Requests beyond the bound, and their dependence on each other.
    pub dependence: Beyond,
    /// Replies per second of the measured time.
    pub throughput: f64,
    /// True if the generator sent too late, or too little, for the trial to count.
    pub late: bool,
    /// Duration of the trial, settling and draining included.
    pub elapsed: Span,
}

impl Evidence {
    /// Evidence of a run that took `elapsed`.
    pub(crate) fn from_run(objective: &Objective, run: &Run, elapsed: Span) -> Self {
        let unanswered = run.response.distribution().censored();
        let errors = run.outcomes.failed().saturating_sub(unanswered);
        let replies = run.response.histogram();
        let slowest = replies.quantile(0.99).as_secs_f64();
        // Without a complete reply there is no time to compare with, and the server is the cause.
        let is_behind = run.lateness.quantile(0.99).as_secs_f64() > LATE * slowest;
        let unsent = [
            Outcome::Dropped,
            Outcome::ClientFailed,
            Outcome::MemoryLimit,
        ]
        .map(|outcome| run.outcomes[outcome])
        .iter()
        .sum::<u64>();
        let is_unsent = unsent as f64 >= UNSENT * run.intended.max(1) as f64;
        Self {
            throughput: run.achieved_rate(),
            late: replies.count() > 0 && is_behind || is_unsent,
            elapsed,
            ..Self::new(objective, &run.response, errors)
        }
    }

    /// Evidence of response times. Of the complete replies among them, `errors` did not end `ok`.
    pub fn new(objective: &Objective, times: &Recorder, errors: u64) -> Self {
        let all = times.distribution();
        let seconds = |time: Time| time.known().map_or(f64::INFINITY, Span::as_secs_f64);
        let statistic = match objective.quantile {
            Some(share) => all.quantile(share),
            None => all.mean(),
        };
        let dependence = times.beyond(objective.bound);
        Self {
            requests: dependence.count,
            beyond: dependence.beyond,
            unanswered: all.censored(),
            failed: all.censored() + errors,
            excess: seconds(statistic) / objective.bound.as_secs_f64(),
            median: seconds(all.quantile(0.5)),
            dependence,
            ..Self::default()
        }
    }

    /// The share of requests that did not end `ok`.
    pub fn errors(&self) -> f64 {
        self.failed as f64 / self.requests.max(1) as f64
    }

    /// The share of requests beyond the bound.
    pub fn share(&self) -> f64 {
        self.beyond as f64 / self.requests.max(1) as f64
    }
}
