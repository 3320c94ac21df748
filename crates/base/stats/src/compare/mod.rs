//! Comparison of one statistic over two sides of runs.
//!
//! Each side is a list of runs of one plan. The core takes estimates instead of reports, so any source of runs can be
//! compared. Insufficient input gives [`ComparisonVerdict::Unknown`].
//!
//! | file | content |
//! |---|---|
//! | `times` | verdicts on means and quantiles: ratio, on the log scale |
//! | `shares` | verdicts on shares of requests: difference |
//! | `spread` | variance between runs, and the half-width of an interval |
//! | `judged` | the statistics that decide, and their confidence |
//! | `needed` | number or length of runs that would decide |
//!
//! Each statistic has its own confidence. A caller that acts on several statistics divides its risk of a false alarm
//! among them (Bonferroni): at any correlation, the total risk is at most the sum.

mod judged;
mod needed;
mod shares;
mod spread;
mod times;

use std::fmt;

use serde::Serialize;

pub use judged::{Judged, Margins};
pub use needed::Needed;
pub use shares::judge_shares;
pub use times::judge_times;

/// Confidence of the interval that must lie within the margin for `equal`: two one-sided tests at 5 % (Schuirmann,
/// Journal of Pharmacokinetics and Biopharmaceutics 15, 1987). It is narrower than the interval for `worse`, because a
/// comparison passes only if every statistic is equal or better, so the risks do not add up.
const EQUALITY: f64 = 0.9;

/// An estimate of a statistic in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MeasuredStatistic {
    /// A value above zero, with its 95 % interval if the run is long enough.
    Known {
        /// The estimate, in any unit that all runs share.
        value: f64,
        /// Interval from this run alone, without the scatter between runs.
        interval: Option<[f64; 2]>,
    },
    /// Longer than any bound: the statistic falls among requests without a reply.
    Beyond {
        /// A value that the statistic exceeds.
        bound: f64,
        /// Lower end of its 95 % interval, if known.
        low: Option<f64>,
    },
    /// No estimate.
    Absent,
}

/// The rules for one statistic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Two-sided confidence of the interval. The risk of a false `worse` is half of the remainder.
    pub confidence: f64,
    /// Maximum difference that counts as equal: relative for times, absolute for shares.
    pub margin: f64,
    /// Scatter between runs, if known from other measurements, as a standard deviation of the logarithm (0.05 is 5 %).
    /// With several runs it is a lower bound of their own scatter.
    pub scatter: Option<f64>,
    /// A run without an interval may follow a trend, and is neither equal nor better. True for means. A quantile may
    /// lack its interval because few values lie beyond it.
    pub steady: bool,
}

/// Result of a comparison of one statistic over two sides of runs. Lower is better.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: ComparisonVerdict,
    /// Average of the runs before: geometric for times, arithmetic for shares.
    pub before: Option<f64>,
    /// Average of the runs after.
    pub after: Option<f64>,
    /// Ratio of after to before; times only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// The change: relative for times (0.2 is 20 % longer), absolute for shares.
    pub change: Option<f64>,
    /// Interval of the change, including the scatter between runs.
    pub interval: Option<[f64; 2]>,
    /// Confidence of the interval.
    pub confidence: f64,
    /// Standard deviation between the runs of a side: relative for times, absolute for shares. `None` with one run per
    /// side.
    pub scatter: Option<f64>,
    /// Reason why there is no verdict, or why it differs from the numbers alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<JudgementReason>,
    /// Estimate of the data that would decide, if more data would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needed: Option<Needed>,
}

/// A conclusion about one statistic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ComparisonVerdict {
    /// The interval of the change lies below zero.
    Better,
    /// The interval of the change lies above zero.
    Worse,
    /// The 90 % interval of the change lies within this margin, which is at most that of the rules.
    Equal {
        /// The larger distance of the interval's ends from no change.
        within: f64,
    },
    /// The runs do not decide.
    Unknown,
}

/// An explanation of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JudgementReason {
    /// One run per side, and the scatter between runs is unknown.
    OneRun,
    /// The interval extends from no change to beyond the margin.
    Wide,
    /// A run has no interval of its mean: response times may grow throughout it.
    Grows,
    /// One run per side, and one of them has no interval.
    NoInterval,
    /// The statistic falls among requests without a reply, before and after.
    Censored,
    /// The statistic falls among requests without a reply in some runs of a side.
    CensoredInPart,
    /// The statistic falls among requests without a reply after, but not before (or the reverse).
    CensoredOnOneSide,
    /// A run has no such number, or an invalid one.
    Absent,
    /// The runs were stopped, or differ in pace or length.
    Incomparable,
}

impl fmt::Display for JudgementReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneRun => "scatter between runs is not known",
            Self::Wide => "the interval is too wide",
            Self::Grows => "a run has no interval of its mean: response times may grow during it",
            Self::NoInterval => "a run has no interval of this number: too few independent values",
            Self::Censored => "no reply in this part of the requests, before and after",
            Self::CensoredInPart => "no reply in this part of the requests, in some of the runs",
            Self::CensoredOnOneSide => "no reply in this part of the requests, on one side only",
            Self::Absent => "a run has no such number",
            Self::Incomparable => "the runs are not comparable",
        })
    }
}

impl Judgement {
    /// A judgement without numbers.
    fn unknown(reason: JudgementReason, rules: &Rules) -> Self {
        Self {
            verdict: ComparisonVerdict::Unknown,
            before: None,
            after: None,
            ratio: None,
            change: None,
            interval: None,
            confidence: rules.confidence,
            scatter: None,
            reason: Some(reason),
            needed: None,
        }
    }

    /// The same numbers without a verdict, for runs that cannot be compared.
    #[must_use]
    pub fn withdrawn(self, reason: JudgementReason) -> Self {
        Self {
            verdict: ComparisonVerdict::Unknown,
            reason: Some(reason),
            needed: None,
            ..self
        }
    }
}
