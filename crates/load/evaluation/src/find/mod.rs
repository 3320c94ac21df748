//! `--find 'p99<200ms'`: the highest rate at which an objective still holds.
//!
//! [`Search`] is pure: it proposes trials and receives their evidence. [`find`] makes the trials with real requests,
//! [`Simulated`] against a simulated queue, for tests and studies.
//!
//! # Method
//!
//! 1. **Recover.** Light load until the median response time no longer falls (at the start), or is back at twice its
//!    lowest (after a trial with unanswered requests). Ends after a fifth of the time at the latest.
//! 2. **Locate.** The rate doubles until the server is saturated, then the bracket is narrowed. These trials are short.
//!    They show only the range to measure in, and the rate at which a saturated server replies.
//! 3. **Measure.** Trials above and below the estimate, each after its transient, as long as the percentile needs.
//! 4. **Confirm.** A long trial at the estimate, as a further measurement.
//!
//! The evidence of a trial is the number of its requests that exceeded the bound. The logarithm of that share is
//! assumed linear in the rate (exact for every quantile of M/M/1; close for M/D/1) and fitted by quasi-likelihood
//! (McCullagh and Nelder, Generalized Linear Models, chapter 9): a trial counts as the number of independent requests
//! that follows from its dispersion. For a mean, its inverse is linear and its law gamma. Firth's penalty (Biometrika
//! 80, 1993) removes the bias of few exceedances. The slope is expected within a factor of about 1.5 of the line to a
//! share of 1 at saturation. The interval is that of the profile likelihood of the crossing, widened if trials differ
//! by more than chance. If errors, not times, make the objective fail, or if the generator is the limit, there is no
//! curve. The bounds are then isotonic ([`posthaste_stats::isotonic`]).
//!
//! Figures of events are searched alike. Their times are those to the first event, the gaps of all replies, or the mean
//! gaps of the streams. Each trial settles for the length of a stream, because fewer streams are open before.

mod answer;
mod estimate;
mod evidence;
pub(crate) mod objective;
mod search;
mod simulated;
mod trial;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant as WallInstant;

use posthaste_units::{Rate, Span};
use thiserror::Error;

pub use answer::{Capacity, LimitedBy};
pub use evidence::Evidence;
pub use objective::{BoundedFigure, Effort, Objective};
pub use search::Search;
pub use simulated::{Simulated, SimulatedLaw};
pub use trial::{CompletedTrial, Proposal, Purpose, TrialReport};

use crate::assertion::Assertion;
use crate::error::RunError;
use crate::pace::{Arrivals, RateStep};
use crate::plan::{Pace, Plan};
use crate::results::Run;
use crate::run::run;

/// The reason why no capacity was found.
#[derive(Debug, Error)]
pub enum FindError {
    /// A trial could not be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The objective does not bound a time from above, or a rate of streams from below.
    #[error(
        "{0}: an objective bounds a response time, a first event or a gap from above, for example p99<200ms, \
         or the rate of streams from below, for example events>20/s"
    )]
    Objective(String),
    /// The objective is about events, and the plan expects none.
    #[error("{0} is about events in replies: give --stream, or a gRPC method that streams replies")]
    NoEvents(String),
    /// The objective fails at the lowest rate tried.
    #[error("{objective} fails already at {rate}: {found}")]
    Hopeless {
        /// The objective.
        objective: String,
        /// The lowest rate tried.
        rate: Rate,
        /// The result of the measurement there.
        found: String,
    },
    /// The plan has retries.
    #[error(
        "a search has no retries: their number depends on the failures, so a trial would have no single rate; measure single rates with --rate or --steps"
    )]
    Retries,
    /// Stopped by the user.
    #[error("stopped before the capacity was found")]
    Stopped,
}

/// Multiple of the bound after which a reply counts as failed and is no longer waited for.
const HOPELESS: f64 = 20.0;

/// Carries out a plan: on this machine, see [`LocalRunner`], or on others.
pub trait Runner {
    /// Carries out the plan of a trial.
    fn run(&mut self, plan: &Plan) -> Result<Run, RunError>;

    /// True if the user has stopped the search.
    fn is_stopped(&self) -> bool;
}

/// Carries out plans on this machine until the flag is set.
pub struct LocalRunner<'s>(pub &'s AtomicBool);

impl Runner for LocalRunner<'_> {
    fn run(&mut self, plan: &Plan) -> Result<Run, RunError> {
        run(plan, self.0, &mut ())
    }

    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Searches the capacity of the requests of `plan` for the objective `assertion`. Calls `report` after every trial.
pub fn find(
    plan: &Plan,
    assertion: &Assertion,
    effort: Effort,
    runner: &mut dyn Runner,
    report: &mut dyn FnMut(&TrialReport),
) -> Result<Capacity, FindError> {
    let objective = assertion
        .objective()
        .ok_or_else(|| FindError::Objective(assertion.to_string()))?;
    if objective.figure.is_of_events() && plan.events.is_none() {
        return Err(FindError::NoEvents(assertion.to_string()));
    }
    if plan.retries.is_some() {
        return Err(FindError::Retries);
    }
    let has_end_mark = (plan.events.as_ref()).is_some_and(|events| events.end_mark.is_some());
    let mut search = Search::new(objective, effort);
    let mut made = 0;
    while let Some(proposal) = search.propose() {
        made += 1;
        let plan = trial_plan(plan, assertion, &proposal, made);
        // At a low rate it may happen that no request becomes due. That is a trial without evidence.
        let begun = WallInstant::now();
        let run = runner.run(&plan)?;
        if runner.is_stopped() {
            return Err(FindError::Stopped);
        }
        let elapsed = Span::from_secs_f64(begun.elapsed().as_secs_f64());
        let evidence = Evidence::from_run(&objective, has_end_mark, &run, elapsed);
        let made = CompletedTrial {
            proposal,
            evidence: evidence.clone(),
        };
        report(&TrialReport::new(objective.figure, &made));
        search.record(proposal, evidence);
    }
    if let Some(made) = search.hopeless() {
        let evidence = &made.evidence;
        return Err(FindError::Hopeless {
            objective: assertion.to_string(),
            rate: made.proposal.rate(),
            found: match evidence.errors() >= objective.tolerance {
                _ if evidence.unknown => "no reply had enough events".to_owned(),
                true => format!("{:.2} % of requests failed", evidence.errors() * 100.0),
                false => format!("{:.2} times the bound", evidence.excess),
            },
        });
    }
    Ok(search.answer(assertion.to_string()))
}

/// Returns the plan of one trial.
fn trial_plan(plan: &Plan, assertion: &Assertion, proposal: &Proposal, number: usize) -> Plan {
    let arrivals = match &plan.pace {
        Pace::Open { arrivals, .. } => arrivals.clone(),
        Pace::Closed { .. } => Arrivals::Constant,
    };
    let mut trial = plan.clone();
    trial.pace = Pace::Open {
        arrivals,
        steps: vec![RateStep::steady(proposal.rate(), proposal.length)],
    };
    trial.warm_up = proposal.settle;
    trial.timeout = plan.timeout.min(assertion.hopeless_after(HOPELESS));
    trial.seed = plan.seed.child(&format!("trial {number}"));
    trial
}

#[cfg(test)]
mod tests;
