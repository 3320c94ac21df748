//! Response times of a part of a run: of good replies, and of all requests due.
//!
//! Good replies and the rest are recorded separately, so that each request costs one entry. Their sum is made on
//! request.

use posthaste_stats::{CensoredHistogram, Histogram};
use posthaste_units::Span;
use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;

/// Response times by kind of outcome.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Responses {
    ok: Histogram,
    /// Replies that are not [`Outcome::Ok`], and requests without a complete reply.
    rest: CensoredHistogram,
}

impl Responses {
    /// Response times that were recorded by kind of outcome.
    pub(crate) fn from_histograms(ok: &Histogram, rest: &CensoredHistogram) -> Self {
        Self {
            ok: ok.clone(),
            rest: rest.clone(),
        }
    }

    /// Counts a request that ended `response` after it was due.
    pub fn record(&mut self, outcome: Outcome, response: Span) {
        match outcome {
            Outcome::Ok => self.ok.record(response),
            outcome if outcome.is_complete() => self.rest.record(response),
            outcome => self.rest.record_censored(outcome.waited(response)),
        }
    }

    /// Counts several requests that ended without a complete reply, after the same wait.
    pub(crate) fn record_many_censored(&mut self, waited: Option<Span>, count: u64) {
        self.rest.record_many_censored(waited, count);
    }

    /// Counts a request whose end is not known.
    pub(crate) fn record_unknown(&mut self) {
        self.rest.record_censored(None);
    }

    pub(crate) fn clear(&mut self) {
        self.ok.clear();
        self.rest.clear();
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.ok.merge(&other.ok);
        self.rest.merge(&other.rest);
    }

    /// Response times of [`Outcome::Ok`] only. A rejection may come much sooner.
    pub fn ok(&self) -> &Histogram {
        &self.ok
    }

    /// Response times of all requests due. A request without a complete reply is longer than any bound.
    pub fn all(&self) -> CensoredHistogram {
        let mut all = self.rest.clone();
        all.merge_known(&self.ok);
        all
    }

    /// Response times of all complete replies: the survivors, like papers that omit aborted requests.
    pub fn answered(&self) -> Histogram {
        let mut answered = self.rest.known().clone();
        answered.merge(&self.ok);
        answered
    }
}
