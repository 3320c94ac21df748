//! `--find 'p99<200ms'`: the highest rate at which an objective still holds.
//!
//! The rate is doubled until the objective fails, then the bracket is narrowed. Response
//! time as a multiple of its bound ("excess") grows steeply near capacity, so every trial
//! says more than pass or fail: the crossing of excess 1 is read from a weighted straight
//! line through the logarithms of the trials near it, and the line's own scatter gives the
//! interval. A server's own noise thus widens the interval instead of moving the answer.

use std::sync::atomic::{AtomicBool, Ordering};

use posthaste_units::{Rate, Span};
use serde::Serialize;
use thiserror::Error;

use crate::assertion::Assertion;
use crate::outcome::Outcome;
use crate::pace::{Arrivals, Step};
use crate::plan::{Pace, Plan};
use crate::report::Report;
use crate::run::{RunError, run};

/// Why no capacity was found.
#[derive(Debug, Error)]
pub enum FindError {
    /// A trial could not be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The objective does not bound a response time from above.
    #[error("{0}: an objective bounds a response time from above, for example p99<200ms")]
    Objective(String),
    /// The objective fails at the lowest rate tried.
    #[error("{objective} fails already at {rate}: {found}")]
    Hopeless {
        /// The objective.
        objective: String,
        /// The lowest rate tried.
        rate: Rate,
        /// What was measured there.
        found: String,
    },
    /// The generator, not the server, was the limit.
    #[error(
        "the generator itself was the limit at {rate}: give it more --threads or a machine of its own"
    )]
    Generator {
        /// The rate it could not send.
        rate: Rate,
    },
    /// Stopped before a bracket was found.
    #[error("stopped before the capacity was found")]
    Stopped,
}

/// One rate tried.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// Requests per second.
    pub rate: f64,
    /// Length in seconds.
    pub seconds: f64,
    /// The objective's response time as a multiple of its bound.
    pub excess: f64,
    /// Share of requests that did not end well.
    pub errors: f64,
    /// Whether the objective held and no request failed.
    pub held: bool,
}

/// The capacity with what is known of its error.
#[derive(Clone, Debug, Serialize)]
pub struct Capacity {
    /// The objective as written.
    pub objective: String,
    /// The highest rate at which it holds, requests per second.
    pub capacity_per_s: f64,
    /// 95 % interval of the capacity.
    pub capacity_interval: [f64; 2],
    /// Every rate tried, in order.
    pub trials: Vec<Trial>,
}

/// How much time and care a search takes.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The first rate.
    pub start: Rate,
    /// Time for the whole search.
    pub budget: Span,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            start: Rate::per_second(20.0).unwrap_or_default(),
            budget: Span::from_secs(50),
        }
    }
}

/// A trial whose sends were this late at p99, against the bound, says nothing of the server.
const LATE: f64 = 0.25;
/// Share of the budget for doubling; the rest narrows.
const DOUBLING: f64 = 0.2;

/// Searches the capacity of what `plan` requests, for `objective`.
pub fn find(
    plan: &Plan,
    objective: &Assertion,
    effort: Effort,
    stop: &AtomicBool,
    told: &mut dyn FnMut(&Trial),
) -> Result<Capacity, FindError> {
    if !objective.is_objective() {
        return Err(FindError::Objective(objective.to_string()));
    }
    let mut search = Search {
        plan,
        objective,
        stop,
        told,
        trials: Vec::new(),
    };
    let budget = effort.budget.as_secs_f64();
    let (low, high) = search.double(effort.start, budget * DOUBLING)?;
    search.narrow(low, high, budget * (1.0 - DOUBLING))?;
    let (capacity, interval) = crossing(&search.trials, low, high);
    Ok(Capacity {
        objective: objective.to_string(),
        capacity_per_s: capacity,
        capacity_interval: interval,
        trials: search.trials,
    })
}

struct Search<'s> {
    plan: &'s Plan,
    objective: &'s Assertion,
    stop: &'s AtomicBool,
    told: &'s mut dyn FnMut(&Trial),
    trials: Vec<Trial>,
}

impl Search<'_> {
    /// Doubles the rate until the objective fails; the last rate that held and the first
    /// that did not.
    fn double(&mut self, start: Rate, seconds: f64) -> Result<(f64, f64), FindError> {
        let mut rate = start.as_per_second();
        let mut held = None;
        loop {
            let trial = self.attempt(rate, (seconds / 10.0).clamp(0.5, 2.0))?;
            match (trial.held, held) {
                (true, _) => held = Some(rate),
                (false, Some(held)) => return Ok((held, rate)),
                (false, None) => {
                    return Err(FindError::Hopeless {
                        objective: self.objective.to_string(),
                        rate: Rate::per_second(rate).unwrap_or_default(),
                        found: format!("{:.2} times the bound", trial.excess),
                    });
                }
            }
            rate *= 2.0;
        }
    }

    /// Spends the time on rates ever closer to the crossing.
    fn narrow(&mut self, mut low: f64, mut high: f64, seconds: f64) -> Result<(), FindError> {
        // A few quick halvings first, then long trials around where the line crosses.
        let quick = (seconds * 0.05).max(0.5);
        for _ in 0..5 {
            let middle = (low * high).sqrt();
            if self.attempt(middle, quick)?.held {
                low = middle;
            } else {
                high = middle;
            }
        }
        const LONG: [f64; 8] = [0.985, 1.01, 0.97, 1.0, 0.99, 1.005, 0.975, 1.0];
        for factor in LONG {
            let (crossing, _) = crossing(&self.trials, low, high);
            let rate = (crossing * factor).clamp(low * 0.8, high * 1.1);
            self.attempt(rate, seconds * 0.75 / LONG.len() as f64)?;
        }
        Ok(())
    }

    fn attempt(&mut self, rate: f64, seconds: f64) -> Result<Trial, FindError> {
        let length = Span::from_secs_f64(seconds);
        let step = Step::steady(Rate::per_second(rate).unwrap_or_default(), length);
        let arrivals = match &self.plan.pace {
            Pace::Open { arrivals, .. } => arrivals.clone(),
            Pace::Closed { .. } => Arrivals::Constant,
        };
        let mut plan = self.plan.clone();
        plan.pace = Pace::Open {
            arrivals,
            steps: vec![step],
        };
        plan.warm_up = length / 5;
        plan.seed = plan.seed.child(&format!("trial {}", self.trials.len()));
        let run = run(&plan, self.stop, &mut ())?;
        if self.stop.load(Ordering::Relaxed) {
            return Err(FindError::Stopped);
        }
        let report = Report::new(&plan, &run);
        let excess = self.objective.excess(&report).unwrap_or(f64::INFINITY);
        let errors = report.error_share();
        let held = excess < 1.0 && errors < 0.01 && report.outcomes[Outcome::Ok] > 0;
        let late = report.send_lateness_ms.p99 / (report.response_time_ms.p99.max(1e-9));
        if !held && late > LATE {
            return Err(FindError::Generator { rate: step.from });
        }
        let trial = Trial {
            rate,
            seconds,
            excess,
            errors,
            held,
        };
        (self.told)(&trial);
        self.trials.push(trial.clone());
        Ok(trial)
    }
}

/// Where the excess crosses 1, with a 95 % interval: weighted least squares of log excess on
/// log rate over the trials near the crossing, each weighted by its length.
fn crossing(trials: &[Trial], low: f64, high: f64) -> (f64, [f64; 2]) {
    let middle = (low * high).sqrt();
    let near: Vec<(f64, f64, f64)> = trials
        .iter()
        .filter(|trial| trial.excess.is_finite() && trial.excess > 0.3 && trial.excess < 3.0)
        .filter(|trial| trial.rate > low * 0.8 && trial.rate < high * 1.2)
        .map(|trial| ((trial.rate / middle).ln(), trial.excess.ln(), trial.seconds))
        .collect();
    let weight: f64 = near.iter().map(|(_, _, w)| w).sum();
    let mean = |value: fn(&(f64, f64, f64)) -> f64| {
        near.iter().map(|point| value(point) * point.2).sum::<f64>() / weight
    };
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let spread: f64 = near.iter().map(|p| p.2 * (p.0 - x).powi(2)).sum();
    let joint: f64 = near.iter().map(|p| p.2 * (p.0 - x) * (p.1 - y)).sum();
    let slope = joint / spread;
    if near.len() < 3 || !slope.is_finite() || slope <= 0.0 {
        return (middle, [low, high]);
    }
    let root = x - y / slope;
    let residual: f64 = near
        .iter()
        .map(|p| p.2 * (p.1 - y - slope * (p.0 - x)).powi(2))
        .sum::<f64>()
        / weight;
    let free = (near.len() - 2).max(1) as f64;
    let error = (residual / free * (1.0 + weight * (root - x).powi(2) / spread)).sqrt() / slope;
    let half = 2.0 * error;
    let rate = |x: f64| middle * x.exp();
    (rate(root), [rate(root - half), rate(root + half)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(rate: f64, excess: f64) -> Trial {
        Trial {
            rate,
            seconds: 1.0,
            excess,
            errors: 0.0,
            held: excess < 1.0,
        }
    }

    #[test]
    fn the_crossing_of_a_straight_line_is_exact() {
        let trials: Vec<Trial> = [80.0, 90.0, 110.0, 120.0]
            .map(|r: f64| trial(r, (r / 100.0).powi(4)))
            .into();
        let (capacity, [low, high]) = crossing(&trials, 80.0, 120.0);
        assert!((capacity - 100.0).abs() < 1e-6, "{capacity}");
        assert!(high - low < 1e-3);
    }

    #[test]
    fn noise_widens_the_interval_and_leaves_the_truth_in_it() {
        let noise = [1.1, 0.93, 1.04, 0.9, 1.08, 0.95];
        let rates = [85.0, 92.0, 97.0, 103.0, 108.0, 115.0];
        let trials: Vec<Trial> = rates
            .iter()
            .zip(noise)
            .map(|(rate, noise): (&f64, f64)| trial(*rate, (rate / 100.0).powi(5) * noise))
            .collect();
        let (_, [low, high]) = crossing(&trials, 85.0, 115.0);
        assert!(low < 100.0 && high > 100.0 && high - low > 0.5 && high - low < 10.0);
    }

    #[test]
    fn too_little_gives_the_bracket() {
        assert_eq!(crossing(&[trial(10.0, 0.5)], 4.0, 9.0), (6.0, [4.0, 9.0]));
    }
}
