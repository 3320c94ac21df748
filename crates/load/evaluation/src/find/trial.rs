//! Trials of a search: proposed, made, and reported as JSON and as text.

use std::fmt;

use posthaste_units::{Rate, Span};
use serde::Serialize;

use super::evidence::Evidence;
use crate::objective::{BoundedFigure, Objective};

/// Share and number of replies missing at the end of a trial with a queue.
const MISSING: (f64, f64) = (0.1, 10.0);

/// The reason for a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Light load, to check that the service answers as when idle.
    Recover,
    /// A rough search for the capacity. Too short to show that a rate holds.
    Locate,
    /// A long look at a rate that may hold.
    Measure,
    /// A long look at the rate that will probably be shown to hold.
    Confirm,
}

/// A trial to be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proposal {
    /// Its reason.
    pub purpose: Purpose,
    /// Requests per second.
    pub rate: f64,
    /// Time at this rate before requests are counted.
    pub settle: Span,
    /// Time in which requests are counted.
    pub length: Span,
}

impl Proposal {
    /// Its rate as a quantity.
    pub(super) fn rate(&self) -> Rate {
        Rate::per_second(self.rate).expect("a rate is proposed")
    }
}

/// A completed trial.
#[derive(Clone, Debug)]
pub struct CompletedTrial {
    /// The proposal.
    pub proposal: Proposal,
    /// Its evidence.
    pub evidence: Evidence,
}

impl CompletedTrial {
    /// True if fewer replies came than requests became due, beyond the number always under way.
    pub(super) fn falls_behind(&self) -> bool {
        let (share, number) = MISSING;
        let due = self.evidence.requests as f64;
        let came = self.evidence.throughput * self.seconds();
        due - came > (share * due).max(number)
    }

    /// True if the trial is evidence about its rate.
    pub(super) fn counts(&self, objective: &Objective) -> bool {
        self.proposal.purpose != Purpose::Recover
            && self.evidence.requests > 0
            && !self.spoilt(objective)
    }

    /// Seconds in which requests were counted.
    pub(super) fn seconds(&self) -> f64 {
        self.proposal.length.as_secs_f64()
    }

    /// True for a long look at a rate.
    pub(super) const fn is_look(&self) -> bool {
        matches!(self.proposal.purpose, Purpose::Measure | Purpose::Confirm)
    }

    /// True if the generator may be the reason for too many bad requests. Failures by status are the service's.
    pub(super) fn spoilt(&self, objective: &Objective) -> bool {
        let evidence = &self.evidence;
        let by_time = evidence.bad() - (evidence.failed - evidence.unanswered) as f64;
        let has_slow_mean = evidence.mean.is_some_and(|mean| mean.excess > 1.0);
        let is_slow = by_time > objective.allowed() * evidence.times as f64;
        evidence.late && (is_slow || has_slow_mean)
    }
}

/// One trial at one rate.
#[derive(Clone, Debug, Serialize)]
pub struct TrialReport {
    /// `recover`, `locate`, `measure` or `confirm`. Only the last two are long enough to be evidence by themselves.
    pub purpose: &'static str,
    /// Requests per second.
    pub rate: f64,
    /// Counted length in seconds.
    pub seconds: f64,
    /// Requests counted.
    pub requests: u64,
    /// Times of the objective's figure: one per request, unless it is about gaps or rates of streams.
    pub times: u64,
    /// Times beyond the bound, unanswered requests included.
    pub beyond: u64,
    /// The counted times in words; empty for response times.
    #[serde(skip)]
    pub counted: &'static str,
    /// The objective's statistic as a multiple of its bound. Absent if it lies among the unanswered.
    pub excess: Option<f64>,
    /// Share of requests that did not end `ok`.
    pub errors: f64,
    /// Replies per second.
    pub throughput: f64,
    /// True if fewer replies came than requests became due: the service queues.
    pub falls_behind: bool,
    /// True if the generator was too late for the trial to count.
    pub late: bool,
}

impl TrialReport {
    pub(super) fn new(figure: BoundedFigure, made: &CompletedTrial) -> Self {
        let evidence = &made.evidence;
        Self {
            purpose: match made.proposal.purpose {
                Purpose::Recover => "recover",
                Purpose::Locate => "locate",
                Purpose::Measure => "measure",
                Purpose::Confirm => "confirm",
            },
            rate: made.proposal.rate,
            seconds: made.seconds(),
            requests: evidence.requests,
            times: evidence.times,
            beyond: evidence.beyond,
            counted: figure.plural(),
            excess: evidence.excess.is_finite().then_some(evidence.excess),
            errors: evidence.errors(),
            throughput: evidence.throughput,
            falls_behind: made.falls_behind(),
            late: evidence.late,
        }
    }
}

impl fmt::Display for TrialReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            purpose,
            rate,
            seconds,
            times,
            beyond,
            counted,
            ..
        } = self;
        write!(
            f,
            "{purpose:>8} {rate:>10.1}/s for {seconds:.1} s: {beyond} of {times} {counted}beyond the bound"
        )?;
        if self.errors > 0.0 {
            write!(f, ", {:.2} % failed", self.errors * 100.0)?;
        }
        if self.falls_behind {
            write!(f, ", only {:.1} replies/s", self.throughput)?;
        }
        f.write_str(if self.late { ", generator late" } else { "" })
    }
}
