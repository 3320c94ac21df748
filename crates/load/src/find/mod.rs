//! `--find 'p99<200ms'`: the highest rate at which an objective still holds.
//!
//! [`Search`] is pure: it proposes trials and takes their evidence. [`find`] makes them with real requests, and
//! [`Simulated`] against a simulated queue, for tests and studies.
//!
//! # Method
//!
//! 1. **Recover.** Light load until the median response time no longer falls (at the start), or is back at twice its
//!    lowest (after a trial with unanswered requests). Ends after a fifth of the time at the latest.
//! 2. **Locate.** The rate doubles until the server is saturated, then the bracket is narrowed. These trials are short:
//!    they say where to measure and nothing else, except for the rate at which a saturated server replies.
//! 3. **Measure.** Trials above and below the estimate, each after its transient, as long as the percentile needs.
//! 4. **Confirm.** A long trial at the estimate; it joins the others.
//!
//! The evidence of a trial is how many of its requests exceeded the bound. The logarithm of that share is taken as
//! linear in the rate (exact for every quantile of M/M/1; close for M/D/1) and fitted by quasi-likelihood (McCullagh and
//! Nelder, Generalized Linear Models, chapter 9): each trial counts as so many independent requests as its dispersion
//! says. For a mean, its inverse is linear and its law gamma. Firth's penalty (Biometrika 80, 1993) removes the bias of
//! few exceedances. The slope is expected within a factor of about 1.5 of the line to a share of 1 at saturation. The
//! interval is that of the profile likelihood of the crossing, widened where trials differ by more than chance. Where
//! errors, not times, are what fails, or where the generator is the limit, there is no curve; then the bounds are
//! isotonic ([`posthaste_stats::isotonic`]).

mod answer;
mod estimate;
mod evidence;
mod goal;
mod search;
mod simulated;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant as WallInstant;

use posthaste_units::{Rate, Span};
use thiserror::Error;

pub use answer::{Capacity, LimitedBy, Trial};
pub use evidence::Evidence;
pub use goal::Goal;
pub use search::{Effort, Made, Proposal, Purpose, Search};
pub use simulated::{Service, Simulated};

use crate::assertion::Assertion;
use crate::pace::{Arrivals, Step};
use crate::plan::{Pace, Plan};
use crate::run::{RunError, run};

/// The reason why no capacity was found.
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
    /// Stopped by the user.
    #[error("stopped before the capacity was found")]
    Stopped,
}

/// A reply later than this many times the bound has failed: no need to wait for it.
const HOPELESS: f64 = 20.0;

/// Searches the capacity of what `plan` requests, for `objective`. `told` hears of every trial.
pub fn find(
    plan: &Plan,
    objective: &Assertion,
    effort: Effort,
    stop: &AtomicBool,
    told: &mut dyn FnMut(&Trial),
) -> Result<Capacity, FindError> {
    let goal = objective
        .goal()
        .ok_or_else(|| FindError::Objective(objective.to_string()))?;
    let mut search = Search::new(goal, effort);
    let mut made = 0;
    while let Some(proposal) = search.propose() {
        made += 1;
        let plan = trial_plan(plan, objective, &proposal, made);
        // A few requests may not become due at all at a low rate: that is a trial without evidence.
        let begun = WallInstant::now();
        let run = run(&plan, stop, &mut ())?;
        if stop.load(Ordering::Relaxed) {
            return Err(FindError::Stopped);
        }
        let elapsed = Span::from_secs_f64(begun.elapsed().as_secs_f64());
        let evidence = Evidence::of_run(&goal, &run, elapsed);
        told(&Trial::new(&Made {
            proposal,
            evidence: evidence.clone(),
        }));
        search.take(proposal, evidence);
    }
    if let Some(made) = search.hopeless() {
        let evidence = &made.evidence;
        return Err(FindError::Hopeless {
            objective: objective.to_string(),
            rate: Rate::per_second(made.proposal.rate).unwrap_or_default(),
            found: match evidence.errors() >= goal.tolerance {
                true => format!("{:.2} % of requests failed", evidence.errors() * 100.0),
                false => format!("{:.2} times the bound", evidence.excess),
            },
        });
    }
    Ok(search.answer(objective.to_string()))
}

/// The plan of one trial.
fn trial_plan(plan: &Plan, objective: &Assertion, proposal: &Proposal, number: usize) -> Plan {
    let arrivals = match &plan.pace {
        Pace::Open { arrivals, .. } => arrivals.clone(),
        Pace::Closed { .. } => Arrivals::Constant,
    };
    let rate = Rate::per_second(proposal.rate).unwrap_or_default();
    let mut trial = plan.clone();
    trial.pace = Pace::Open {
        arrivals,
        steps: vec![Step::steady(rate, proposal.length)],
    };
    trial.warm_up = proposal.settle;
    trial.timeout = plan.timeout.min(objective.hopeless_after(HOPELESS));
    trial.seed = plan.seed.child(&format!("trial {number}"));
    trial
}

#[cfg(test)]
mod tests;
