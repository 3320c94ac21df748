//! `--find 'p99<200ms'`: the highest rate at which an objective still holds.
//!
//! The rate is doubled until the objective fails, the bracket is halved a few times, and the
//! rest of the time goes into long trials around the estimate. Every trial says more than
//! pass or fail: near a queue's capacity the inverse of its response time falls in a straight
//! line with the rate (exactly so for M/M/1, where every quantile is a constant over the spare
//! capacity). The capacity is where the line through the trials reaches the objective, and
//! their scatter about it gives the interval: noise widens it instead of moving the answer.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant as WallInstant;

use posthaste_stats::{Weighted, crossing};
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
        "the generator itself was the limit at {rate}: give it more --threads, --max-connections or a machine of its own"
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
    /// Whether the objective held and fewer requests failed than it allows.
    pub held: bool,
    /// Whether more failed: 1 % of requests, 0.1 % where p999 is bounded, one where the maximum is.
    #[serde(skip)]
    pub sheds: bool,
}

impl Trial {
    /// What speaks most plainly against it.
    fn found(&self) -> String {
        if self.sheds {
            format!("{:.2} % of requests failed", self.errors * 100.0)
        } else {
            format!("{:.2} times the bound", self.excess)
        }
    }
}

/// The capacity with what is known of its error.
#[derive(Clone, Debug, Serialize)]
pub struct Capacity {
    /// The objective as written.
    pub objective: String,
    /// The highest rate at which it holds, requests per second.
    pub capacity_per_s: f64,
    /// 95 % interval of the capacity; none where the trials do not say how their times grow with the rate.
    pub capacity_interval: Option<[f64; 2]>,
    /// The highest rate that held.
    pub held_at_per_s: f64,
    /// The lowest rate beyond that which failed, where one was tried.
    pub failed_at_per_s: Option<f64>,
    /// Every rate tried, in order.
    pub trials: Vec<Trial>,
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:.1}/s (", self.objective, self.capacity_per_s)?;
        if let Some([low, high]) = self.capacity_interval {
            return write!(f, "95 % sure: {low:.1}/s to {high:.1}/s)");
        }
        write!(f, "held at {:.1}/s", self.held_at_per_s)?;
        if let Some(failed) = self.failed_at_per_s {
            write!(f, ", failed at {failed:.1}/s")?;
        }
        f.write_str("; times do not say more)")
    }
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

/// A failed trial whose sends were late by more than this share of its p99 says nothing of
/// the server.
const LATE: f64 = 0.25;
/// A trial of whose requests this share was never sent says nothing of the server.
const UNSENT: f64 = 0.01;
/// So often is such a trial made again before the generator is said to be the limit.
const ATTEMPTS: usize = 3;
/// A trial of the doubling has so many requests, within these limits of its length in seconds.
const DOUBLING: (f64, f64, f64) = (100.0, 0.5, 2.0);
/// So often is the bracket halved, each time with this share of what is left.
const HALVINGS: usize = 3;
const HALVING: f64 = 0.04;
/// Long trials shorter than this, in seconds, are not worth making.
const SHORTEST: f64 = 0.5;
/// A reply later than this many times the bound has failed: no need to wait for it.
const HOPELESS: f64 = 20.0;
/// Long trials, as multiples of the estimate at the time.
const AROUND: [f64; 6] = [0.97, 1.02, 0.98, 1.01, 0.99, 1.0];
/// Trials within this factor of the estimate decide it.
const NEAR: f64 = 1.15;
/// Time before each trial, as a share of it, in which the server's queue settles.
const WARM_UP: f64 = 0.2;

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
        made: 0,
    };
    let deadline = WallInstant::now() + effort.budget.into();
    let (low, high) = search.double(effort.start)?;
    let centre = search.narrow(low, high, deadline)?;
    let (estimate, interval) = capacity(&search.trials, centre);
    let [held, failed] = bracket(&search.trials);
    Ok(Capacity {
        objective: objective.to_string(),
        // Without an interval the line only told where to look: what was seen to hold and to fail says more.
        capacity_per_s: interval.map_or(centre.clamp(held, failed), |_| estimate),
        capacity_interval: interval,
        held_at_per_s: held,
        failed_at_per_s: failed.is_finite().then_some(failed),
        trials: search.trials,
    })
}

struct Search<'s> {
    plan: &'s Plan,
    objective: &'s Assertion,
    stop: &'s AtomicBool,
    told: &'s mut dyn FnMut(&Trial),
    trials: Vec<Trial>,
    made: usize,
}

impl Search<'_> {
    /// Doubles the rate until the objective fails; the last rate that held and the first
    /// that did not.
    fn double(&mut self, start: Rate) -> Result<(f64, f64), FindError> {
        let mut rate = start.as_per_second();
        let mut held = None;
        loop {
            let (requests, shortest, longest) = DOUBLING;
            let trial = self.attempt(rate, (requests / rate).clamp(shortest, longest))?;
            match (trial.held, held) {
                (true, _) => held = Some(rate),
                (false, Some(held)) => return Ok((held, rate)),
                (false, None) => {
                    return Err(FindError::Hopeless {
                        objective: self.objective.to_string(),
                        rate: Rate::per_second(rate).unwrap_or_default(),
                        found: trial.found(),
                    });
                }
            }
            rate *= 2.0;
        }
    }

    /// Spends the time on rates ever closer to the capacity.
    fn narrow(
        &mut self,
        mut low: f64,
        mut high: f64,
        deadline: WallInstant,
    ) -> Result<f64, FindError> {
        let left = || {
            deadline
                .saturating_duration_since(WallInstant::now())
                .as_secs_f64()
        };
        let halving = (left() * HALVING).max(SHORTEST);
        for _ in 0..HALVINGS {
            let middle = (low * high).sqrt();
            if self.attempt(middle, halving)?.held {
                low = middle;
            } else {
                high = middle;
            }
        }
        let mut centre = (low * high).sqrt();
        for (made, factor) in AROUND.into_iter().enumerate() {
            let seconds = left() / (AROUND.len() - made) as f64 / (1.0 + WARM_UP);
            if seconds < SHORTEST {
                break;
            }
            self.attempt(centre * factor, seconds)?;
            centre = capacity(&self.trials, centre)
                .0
                .clamp(low * 0.8, high * 1.2);
        }
        Ok(centre)
    }

    /// Tries a rate; a trial that this machine sent too late is made again, a few times.
    fn attempt(&mut self, rate: f64, seconds: f64) -> Result<Trial, FindError> {
        for _ in 0..ATTEMPTS {
            if let Some(trial) = self.trial(rate, seconds)? {
                (self.told)(&trial);
                self.trials.push(trial.clone());
                return Ok(trial);
            }
        }
        Err(FindError::Generator {
            rate: Rate::per_second(rate).unwrap_or_default(),
        })
    }

    /// One trial; `None` when it failed and was sent too late, or not at all, to say anything.
    fn trial(&mut self, rate: f64, seconds: f64) -> Result<Option<Trial>, FindError> {
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
        plan.warm_up = Span::from_secs_f64(seconds * WARM_UP);
        plan.timeout = plan.timeout.min(self.objective.hopeless_after(HOPELESS));
        self.made += 1;
        plan.seed = plan.seed.child(&format!("trial {}", self.made));
        let run = run(&plan, self.stop, &mut ())?;
        if self.stop.load(Ordering::Relaxed) {
            return Err(FindError::Stopped);
        }
        let report = Report::new(&plan, &run);
        let excess = self.objective.excess(&report).unwrap_or(f64::INFINITY);
        let errors = report.error_share();
        let sheds = errors >= self.objective.tolerance();
        let held = excess < 1.0 && !sheds && report.outcomes[Outcome::Ok] > 0;
        // Without a complete reply there is no time to compare with, and the server is to blame.
        let p99 = report
            .response_time_ms
            .reading(posthaste_stats::Statistic::P99);
        let p99 = p99.known().unwrap_or(f64::INFINITY);
        let late = report.send_lateness_ms.p99 > LATE * p99;
        // What was never sent says as little.
        let unsent = report.outcomes[Outcome::Dropped] + report.outcomes[Outcome::ClientFailed];
        let late = late || unsent as f64 >= UNSENT * report.intended.max(1) as f64;
        Ok((held || !late).then_some(Trial {
            rate,
            seconds,
            excess,
            errors,
            held,
            sheds,
        }))
    }
}

/// What was seen: the highest rate that held, and the lowest beyond it that did not. A server that sheds load is
/// at its limit where it begins to, whatever it may have done later.
fn bracket(trials: &[Trial]) -> [f64; 2] {
    let [held, sheds] = shedding(trials);
    let rates = |held: bool| trials.iter().filter(move |trial| trial.held == held);
    let highest = rates(true).map(|trial| trial.rate).fold(0.0, f64::max);
    if sheds < highest {
        return [held, sheds];
    }
    let beyond = rates(false)
        .map(|trial| trial.rate)
        .filter(|rate| *rate > highest);
    [highest, beyond.fold(f64::INFINITY, f64::min)]
}

/// The highest rate that held below all at which too many requests failed, and the lowest of those.
fn shedding(trials: &[Trial]) -> [f64; 2] {
    let failed = trials.iter().filter(|trial| trial.sheds);
    let failed = failed.map(|trial| trial.rate).fold(f64::INFINITY, f64::min);
    let below = trials
        .iter()
        .filter(|trial| trial.held && trial.rate < failed);
    [below.map(|trial| trial.rate).fold(0.0, f64::max), failed]
}

/// Where the inverse of the excess crosses 1, from the trials near `centre`, with a 95 % interval; without one
/// where the line is only a hint, and `centre` itself where there is no line.
fn capacity(trials: &[Trial], centre: f64) -> (f64, Option<[f64; 2]>) {
    let span = centre / NEAR..centre * NEAR;
    let near: Vec<Weighted> = trials
        .iter()
        .filter(|trial| span.contains(&trial.rate) && trial.excess > 0.0)
        .map(|trial| Weighted {
            x: trial.rate / centre,
            y: 1.0 - 1.0 / trial.excess,
            // The inverse errs in proportion to itself, so small ones weigh more.
            weight: trial.seconds * trial.excess.min(1.0).powi(2),
        })
        .collect();
    let (estimate, interval) = match crossing(&near) {
        Some(found) => {
            let interval = found.interval;
            let interval = interval.map(|ends| ends.map(|x| (centre * x).max(0.0)));
            (centre * found.x, interval)
        }
        None => (centre, None),
    };
    // A server that sheds load fails by errors while its times stay good: it holds up to there.
    let [held, sheds] = shedding(trials);
    match estimate < sheds {
        true => (estimate, interval.map(|[low, high]| [low, high.min(sheds)])),
        false => (held, None),
    }
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
            sheds: false,
        }
    }

    /// The excess of M/M/1 with this capacity of the server and spare capacity at the bound.
    fn mm1(rate: f64) -> f64 {
        25.0 / (125.0 - rate)
    }

    #[test]
    fn the_capacity_of_mm1_is_exact() {
        let trials: Vec<Trial> = [90.0, 95.0, 105.0, 110.0]
            .map(|rate| trial(rate, mm1(rate)))
            .into();
        let (found, interval) = capacity(&trials, 102.0);
        let [low, high] = interval.unwrap();
        assert!((found - 100.0).abs() < 1e-6, "{found}");
        assert!(high - low < 1e-3);
    }

    #[test]
    fn noise_widens_the_interval_and_leaves_the_truth_in_it() {
        let noise = [1.1, 0.93, 1.04, 0.9, 1.08, 0.95];
        let rates = [90.0, 94.0, 97.0, 103.0, 106.0, 110.0];
        let noisy = |(rate, noise): (f64, f64)| trial(rate, mm1(rate) * noise);
        let trials: Vec<Trial> = rates.into_iter().zip(noise).map(noisy).collect();
        let [low, high] = capacity(&trials, 100.0).1.unwrap();
        assert!(low < 100.0 && high > 100.0 && high - low > 0.5 && high - low < 10.0);
    }

    #[test]
    fn a_server_that_sheds_ends_where_it_begins_to() {
        let mut trials: Vec<Trial> = [70.0, 75.0, 80.0, 85.0]
            .map(|rate| trial(rate, mm1(rate)))
            .into();
        (trials[2].sheds, trials[2].held) = (true, false);
        // 80/s was seen to fail, 75/s to hold.
        assert_eq!(capacity(&trials, 80.0), (75.0, None));
        assert_eq!(bracket(&trials), [75.0, 80.0]);
        // Where the line says so, no further than that.
        let rates = [96.0, 97.0, 98.0, 99.0, 100.5, 104.0];
        let noisy =
            rates.map(|rate| trial(rate, mm1(rate) * if rate > 97.5 { 1.05 } else { 0.95 }));
        let mut trials = noisy.to_vec();
        let free = capacity(&trials, 100.0);
        (trials[4].sheds, trials[4].held) = (true, false);
        let [_, high] = free.1.unwrap();
        assert!(free.0 < 100.5 && high > 100.5, "{free:?}");
        assert_eq!(capacity(&trials, 100.0).1.map(|ends| ends[1]), Some(100.5));
    }

    #[test]
    fn a_rate_that_held_once_more_beyond_errors_is_not_told_as_held() {
        let mut trials = [113.0, 120.5, 123.0, 124.6].map(|rate| trial(rate, 0.5));
        (trials[1].sheds, trials[1].held) = (true, false);
        trials[3].held = false;
        assert_eq!(bracket(&trials), [113.0, 120.5]);
        (trials[1].sheds, trials[1].excess) = (false, 1.5);
        assert_eq!(bracket(&trials), [123.0, 124.6]);
        assert_eq!(bracket(&trials[..1]), [113.0, f64::INFINITY]);
    }

    #[test]
    fn too_little_gives_what_was_known() {
        assert_eq!(capacity(&[trial(10.0, 0.5)], 6.0), (6.0, None));
        // Times that do not grow with the rate say nothing of where they would be too long.
        let flat = [95.0, 98.0, 100.0, 102.0, 105.0].map(|rate| trial(rate, 0.5));
        let mut flat = flat.to_vec();
        flat[1].excess = 0.51;
        assert_eq!(capacity(&flat, 100.0).1, None);
    }
}
