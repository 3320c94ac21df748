//! The answer of a search, as JSON and as text.

use std::fmt;

use serde::Serialize;

use super::trial::{CompletedTrial, Purpose, TrialReport};
use super::verdict::Findings;
use crate::assertion::Assertion;
use crate::objective::{Effort, Objective};
use crate::report::AssertionResult;

/// The limit of the range of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitedBy {
    /// The service.
    Service,
    /// The generator. The service may be able to do more.
    Generator,
    /// The time given to the search.
    Time,
}

/// Fewer bursts than this do not tell how often they come.
const FEW_BURSTS: u64 = 6;

/// The capacity and its uncertainty.
#[derive(Clone, Debug, Serialize)]
pub struct Capacity {
    /// The objective as written.
    pub objective: String,
    /// Probably the highest rate at which the objective holds, in requests per second: the middle of the interval. `null`
    /// without an interval.
    pub capacity_per_s: Option<f64>,
    /// Both ends. `null` if one is missing.
    pub capacity_interval: Option<[f64; 2]>,
    /// True if half the interval is at most the requested precision.
    pub precise: bool,
    /// The requested precision, as a share of the capacity.
    pub precision: f64,
    /// The highest rate that trials showed to hold.
    pub held_at_per_s: Option<f64>,
    /// The lowest rate that trials showed to fail.
    pub failed_at_per_s: Option<f64>,
    /// Seconds of the trials at the held rate. Rarer events are not in the answer.
    pub looked_s: f64,
    /// Bursts of bad requests in these trials.
    pub bursts: u64,
    /// True if a rate that had failed held later, or the other way round. The answer is of the last state.
    pub changed: bool,
    /// The limit of the range of rates.
    pub limited_by: LimitedBy,
    /// True if no trial contradicts an earlier one.
    pub consistent: bool,
    /// True if the confirming trial was at the held rate. `null` without a confirming trial.
    pub confirmed: Option<bool>,
    /// True if the service returned to its response times under light load before each trial.
    pub recovered: bool,
    /// Checked assertions on the lower end, in the order given. Absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assertions: Vec<AssertionResult>,
    /// All trials in order.
    pub trials: Vec<TrialReport>,
    /// The result at the lowest rate, if that is shown to fail.
    #[serde(skip)]
    pub(super) lowest: Option<String>,
    /// True if the user has stopped the search.
    pub stopped: bool,
}

/// The kind of an answer, for an exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindVerdict {
    /// A rate is shown to hold.
    Holds,
    /// The lowest rate is shown to fail.
    Fails,
    /// No rate is shown to hold.
    Unknown,
}

impl Capacity {
    /// Checks the lower end, and stores the results.
    pub fn check(&mut self, assertions: &[Assertion]) {
        let checked = assertions
            .iter()
            .map(|assertion| assertion.check_capacity(self.held_at_per_s));
        self.assertions = checked.collect();
    }

    /// The kind of the answer.
    pub fn verdict(&self) -> FindVerdict {
        match (self.held_at_per_s, &self.lowest) {
            (Some(_), _) => FindVerdict::Holds,
            (None, Some(_)) => FindVerdict::Fails,
            (None, None) => FindVerdict::Unknown,
        }
    }
}

/// Concludes an answer from `trials`. `written` is the objective as written. `limit` is the lowest rate that the
/// generator could not send. `recovered` is true if the service returned to its response times under light load.
pub(super) fn conclude(
    written: String,
    objective: &Objective,
    effort: &Effort,
    trials: &[CompletedTrial],
    limit: Option<f64>,
    recovered: bool,
) -> Capacity {
    let ends = Findings::new(objective, effort.budget, trials).ends();
    let interval = ends
        .held
        .zip(ends.failed)
        .map(|(held, failed)| [held, failed]);
    let rate = interval.map(|[held, failed]| (held * failed).sqrt());
    let half = interval
        .zip(rate)
        .map(|([low, high], rate)| (high - low) / (2.0 * rate));
    let confirming = trials
        .iter()
        .rfind(|made| made.proposal.purpose == Purpose::Confirm);
    Capacity {
        objective: written,
        capacity_per_s: rate,
        capacity_interval: interval,
        precise: half.is_some_and(|half| half <= effort.precision),
        consistent: !ends.changed,
        lowest: None,
        stopped: false,
        assertions: Vec::new(),
        precision: effort.precision,
        held_at_per_s: ends.held,
        failed_at_per_s: ends.failed,
        looked_s: ends.looked,
        bursts: ends.bursts as u64,
        changed: ends.changed,
        limited_by: match (limit, ends.failed) {
            (_, Some(_)) => LimitedBy::Service,
            (Some(_), None) => LimitedBy::Generator,
            (None, None) => LimitedBy::Time,
        },
        confirmed: confirming.map(|made| ends.held.is_some_and(|held| held >= made.proposal.rate)),
        recovered,
        trials: trials
            .iter()
            .map(|made| TrialReport::new(objective.figure, made))
            .collect(),
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.objective)?;
        match (self.held_at_per_s, self.failed_at_per_s) {
            (Some(held), Some(failed)) => write!(f, "between {held:.1}/s and {failed:.1}/s")?,
            (Some(held), None) => write!(
                f,
                "at least {held:.1}/s; no rate is shown to fail in this time"
            )?,
            (None, _) if self.lowest.is_some() => {
                write!(
                    f,
                    "fails at the lowest rate: {}",
                    self.lowest.as_deref().unwrap_or_default()
                )?;
            }
            (None, Some(failed)) => write!(
                f,
                "below {failed:.1}/s; no rate is shown to hold in this time"
            )?,
            (None, None) => {
                f.write_str("unknown: no rate is shown to hold or to fail in this time")?
            }
        }
        self.write_evidence(f)?;
        self.write_remarks(f)
    }
}

impl Capacity {
    /// The evidence of the lower end.
    fn write_evidence(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(held) = self.held_at_per_s else {
            return Ok(());
        };
        let looked = format!("in {:.1} s", self.looked_s);
        write!(f, "\n{held:.1}/s: ")?;
        match self.bursts {
            0 => write!(
                f,
                "no late or failed request {looked}; rarer events are not in this answer"
            )?,
            1 => write!(f, "one burst of late or failed requests {looked}")?,
            bursts => write!(f, "{bursts} bursts of late or failed requests {looked}")?,
        }
        if (1..FEW_BURSTS).contains(&self.bursts) {
            f.write_str(": give a longer --duration to know how often they come")?;
        }
        Ok(())
    }

    fn write_remarks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.capacity_interval.is_some() && !self.precise {
            write!(f, "\nwider than ±{:.1} %", self.precision * 100.0)?;
        }
        if self.changed {
            f.write_str(
                "\nthe service changed during the search: the answer is of its last state",
            )?;
        }
        if self.limited_by == LimitedBy::Generator {
            f.write_str("\nbeyond that, the generator is the limit: give it more --threads, --max-connections or a machine of its own")?;
        }
        if !self.recovered {
            f.write_str(
                "\nthe service did not come back to its response times under light load: \
                 an older backlog may be part of these trials",
            )?;
        }
        if self.stopped {
            f.write_str("\nstopped before the end of the search")?;
        }
        Ok(())
    }
}
