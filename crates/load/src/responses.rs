//! Response times of a part of a run: of good replies, and of everything that was due.
//!
//! Good replies and the rest are recorded apart, so that each request costs one entry; their sum is made when it is
//! asked for.

use posthaste_stats::{CensoredHistogram, Histogram};
use posthaste_units::Span;

use crate::outcome::Outcome;

/// Response times by the kind of end.
#[derive(Clone, Default)]
pub struct Responses {
    ok: Histogram,
    /// Replies that are not [`Outcome::Ok`], and requests without a complete reply.
    rest: CensoredHistogram,
}

impl Responses {
    /// Counts a request that ended `response` after it was due.
    pub fn record(&mut self, outcome: Outcome, response: Span) {
        match outcome {
            Outcome::Ok => self.ok.record(response),
            outcome if outcome.is_complete() => self.rest.record(response),
            outcome => self.rest.record_censored(outcome.waited(response)),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.ok.merge(&other.ok);
        self.rest.merge(&other.rest);
    }

    /// Those of [`Outcome::Ok`] alone: a refusal may come much sooner.
    pub fn ok(&self) -> &Histogram {
        &self.ok
    }

    /// Those of all requests that were due; one without a complete reply is longer than any bound.
    pub fn all(&self) -> CensoredHistogram {
        let mut all = self.rest.clone();
        all.merge_known(&self.ok);
        all
    }

    /// Those of complete replies, whatever they say: survivors only, as papers report them that leave aborted
    /// requests out.
    pub fn answered(&self) -> Histogram {
        let mut answered = self.rest.known().clone();
        answered.merge(&self.ok);
        answered
    }
}
