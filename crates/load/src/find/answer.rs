//! The answer of a search, as JSON and as text.

use std::fmt;

use posthaste_stats::isotonic::{self, Tried};
use serde::Serialize;

use super::estimate;
use super::objective::{Effort, Objective};
use super::trial::{CompletedTrial, Purpose, TrialReport};

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

/// The capacity and its uncertainty.
#[derive(Clone, Debug, Serialize)]
pub struct Capacity {
    /// The objective as written.
    pub objective: String,
    /// The highest rate at which the objective holds, in requests per second. `null` if the trials give no interval.
    pub capacity_per_s: Option<f64>,
    /// Its 95 % interval.
    pub capacity_interval: Option<[f64; 2]>,
    /// True if half the interval is at most the requested precision.
    pub precise: bool,
    /// The requested precision, as a share of the capacity.
    pub precision: f64,
    /// A lower bound of the capacity, 97.5 % sure.
    pub held_at_per_s: Option<f64>,
    /// An upper bound of the capacity, 97.5 % sure.
    pub failed_at_per_s: Option<f64>,
    /// The limit of the range of rates.
    pub limited_by: LimitedBy,
    /// True if the trials, the confirming one included, agree with one curve as far as chance permits. `null` without a
    /// fitted curve.
    pub consistent: Option<bool>,
    /// True if the confirming trial, by itself, is compatible with the bound being met at its rate. `null` without such
    /// a trial.
    pub confirmed: Option<bool>,
    /// True if the service returned to its response times under light load before each trial.
    pub recovered: bool,
    /// Estimated length in seconds of a search with the requested precision.
    pub seconds_needed: Option<f64>,
    /// All trials in order.
    pub trials: Vec<TrialReport>,
}

/// Concludes an answer from `trials`. `written` is the objective as written. `limit` is the lowest rate that the
/// generator could not send. `recovered` is true if the service returned to its response times under light load.
pub(super) fn conclude(
    written: String,
    objective: &Objective,
    effort: &Effort,
    trials: &[CompletedTrial],
    (limit, recovered): (Option<f64>, bool),
) -> Capacity {
    let [mut held, mut failed] = estimate::bounds(objective, trials);
    let fit = match estimate::is_shedding(objective, trials) || limit.is_some() {
        true => None,
        false => estimate::reliable_fit(objective, trials),
    };
    if let Some(fit) = &fit {
        // One curve cannot contradict itself. Its ends replace the bounds from single trials.
        [held, failed] = fit.interval;
    }
    let (rate, interval) = match &fit {
        Some(fit) => match fit.interval {
            [Some(low), Some(high)] => (Some(unbiased(fit.rate, low, high)), Some([low, high])),
            _ => (None, None),
        },
        None => (None, None),
    };
    let half = interval
        .zip(rate)
        .map(|([low, high], rate)| (high - low) / (2.0 * rate));
    let precise = half.is_some_and(|half| half <= effort.precision);
    let needed = half
        .filter(|_| !precise)
        .map(|half| effort.budget.as_secs_f64() * (half / effort.precision).powi(2));
    let confirming = trials
        .iter()
        .rev()
        .find(|made| made.proposal.purpose == Purpose::Confirm && made.evidence.requests > 0);
    Capacity {
        objective: written,
        capacity_per_s: rate,
        capacity_interval: interval,
        precise,
        precision: effort.precision,
        held_at_per_s: held,
        failed_at_per_s: failed,
        limited_by: match (limit, failed) {
            (Some(_), _) => LimitedBy::Generator,
            (None, Some(_)) => LimitedBy::Service,
            (None, None) => LimitedBy::Time,
        },
        consistent: fit.map(|fit| fit.inflation <= 1.0),
        confirmed: confirming.map(|made| is_met(objective, made)),
        recovered,
        seconds_needed: needed,
        trials: trials
            .iter()
            .map(|made| TrialReport::new(objective.figure, made))
            .collect(),
    }
}

/// The estimate on the scale of rates. The likelihood is nearly symmetrical in the logarithm of the rate; the mean of a
/// log-normal variable exceeds its median by half its variance.
fn unbiased(rate: f64, low: f64, high: f64) -> f64 {
    let deviation = (high / low).ln() / (2.0 * estimate::NORMAL);
    (rate * (-0.5 * deviation.powi(2)).exp()).clamp(low, high)
}

/// True if the trial is compatible with the objective at its rate.
fn is_met(objective: &Objective, made: &CompletedTrial) -> bool {
    let evidence = &made.evidence;
    let dependence = &evidence.dependence;
    match objective.quantile {
        Some(_) => {
            let dispersion = dependence.dispersion().unwrap_or(1.0);
            let [low, _] = isotonic::share(Tried {
                rate: made.proposal.rate,
                count: evidence.times as f64 / dispersion,
                beyond: evidence.beyond as f64 / dispersion,
            });
            low <= objective.allowed()
        }
        None => {
            let error = dependence.mean_relative_variance.unwrap_or(0.0).sqrt();
            evidence.excess * (1.0 - 2.0 * error) <= 1.0
        }
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.objective)?;
        match (self.capacity_per_s, self.capacity_interval) {
            (Some(rate), Some([low, high])) if self.precise => {
                write!(f, "{rate:.1}/s (95 % sure: {low:.1}/s to {high:.1}/s)")?;
            }
            (Some(rate), Some([low, high])) => {
                let percent = self.precision * 100.0;
                write!(
                    f,
                    "between {low:.1}/s and {high:.1}/s (95 % sure), probably {rate:.1}/s"
                )?;
                write!(f, "\nthe time does not suffice for ±{percent:.1} %")?;
                if let Some(needed) = self.seconds_needed {
                    write!(f, ": give about --duration {:.0}s", needed.ceil())?;
                }
            }
            _ => self.write_bounds(f)?,
        }
        if self.consistent == Some(false) {
            f.write_str("\nthe trials differ by more than chance: the interval is widened for it")?;
        }
        if !self.recovered {
            f.write_str(
                "\nthe service did not come back to its response times under light load: \
                 an older backlog may be part of these trials",
            )?;
        }
        if self.confirmed == Some(false) {
            f.write_str("\nthe confirming trial exceeded the bound: it is part of the interval")?;
        }
        Ok(())
    }
}

impl Capacity {
    fn write_bounds(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.limited_by, self.held_at_per_s, self.failed_at_per_s) {
            (LimitedBy::Generator, Some(held), _) => write!(
                f,
                "at least {held:.1}/s; beyond that, the generator is the limit: \
                 give it more --threads, --max-connections or a machine of its own"
            ),
            (LimitedBy::Generator, None, _) => {
                f.write_str("unknown: the generator is the limit before a rate is shown to hold")
            }
            (_, Some(held), Some(failed)) => {
                write!(
                    f,
                    "between {held:.1}/s and {failed:.1}/s; the trials do not say more"
                )
            }
            (_, Some(held), None) => {
                write!(
                    f,
                    "at least {held:.1}/s; no rate is shown to fail in this time"
                )
            }
            (_, None, Some(failed)) => {
                write!(
                    f,
                    "below {failed:.1}/s; no rate is shown to hold in this time"
                )
            }
            (_, None, None) => {
                f.write_str("unknown: no rate is shown to hold or fail in this time")
            }
        }
    }
}
