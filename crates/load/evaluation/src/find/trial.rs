//! Trials of a search: proposed, made, and reported as JSON and as text.

use std::fmt;

use posthaste_units::{Rate, Span};
use serde::Serialize;

use super::evidence::Evidence;
use super::objective::BoundedFigure;

/// Share and number of replies missing at the end of a trial. From `MISSING` on the trial fails, from `SATURATED` on
/// the server counts as saturated. The values differ because a queue below its limit may also grow by chance.
const MISSING: (f64, f64) = (0.1, 10.0);
const SATURATED: (f64, f64) = (0.2, 15.0);

/// The reason for a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Light load, to check that the service answers as when idle.
    Recover,
    /// A rough search for the capacity. Too short to show that a rate holds.
    Locate,
    /// Measurement of the response curve near the capacity.
    Measure,
    /// Confirmation of the answer at its own rate.
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
        self.is_missing(MISSING)
    }

    /// True if replies came at the server's maximum rate.
    pub(super) fn is_saturated(&self) -> bool {
        self.is_missing(SATURATED)
    }

    fn is_missing(&self, (share, number): (f64, f64)) -> bool {
        let due = self.evidence.requests as f64;
        let came = self.evidence.throughput * self.proposal.length.as_secs_f64();
        due - came > (share * due).max(number)
    }

    /// True if the trial is long enough to measure the response curve.
    pub(super) const fn is_measurement(&self) -> bool {
        matches!(self.proposal.purpose, Purpose::Measure | Purpose::Confirm)
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
            seconds: made.proposal.length.as_secs_f64(),
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
            "{purpose:>8} {rate:>10.1}/s for {seconds:.1}s: {beyond} of {times} {counted}beyond the bound"
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
