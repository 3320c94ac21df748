//! `--find 'p99<200ms'`: the highest rate at which an objective still holds.
//!
//! [`Search`] is pure: it proposes trials and receives their evidence. [`find`] makes the trials with real requests. Tests
//! and studies make them in virtual time, with the model of services.
//!
//! # Method
//!
//! 1. **Recover.** Light load until the median response time no longer falls (at the start), or is low again (after a
//!    trial that failed). Ends after a fifth of the time at the latest.
//! 2. **Climb.** The rate doubles until a trial fails. In the first seconds a failure is repeated: the service may have
//!    been cold. Then a short trial narrows the bracket.
//! 3. **Look.** Longer trials, higher or lower by what the last one showed, until a confirmation in the rest of the time
//!    would show that its rate holds. A failure that only short trials have shown is repeated.
//! 4. **Confirm.** A long trial at that rate. If the rate is not shown to hold, another one at a lower rate.
//!
//! The answer comes from trials alone ([`verdict`]): its lower end is a rate that was shown to hold, its upper end one
//! that was shown to fail. Without such a rate, an end is absent. Bad requests are those beyond the bound and those that
//! failed. They come in bursts, so bursts are counted. Rates and lengths are fixed before a trial. Trials do not count if
//! the generator decided about them, or if later ones show that the service was cold or has changed.
//!
//! Figures of events are searched alike. Their times are those to the first event, the gaps of all replies, or the mean
//! gaps of the streams. Each trial settles for the length of a stream, because fewer streams are open before.

mod answer;
mod evidence;
mod failure;
mod pool;
mod search;
mod trial;
mod verdict;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant as WallInstant;

use posthaste_load::{Arrivals, Pace, Plan, RateStep, Run, RunError, run};
use posthaste_units::Span;
use thiserror::Error;

pub use crate::objective::{BoundedFigure, Effort, Objective};
pub use answer::{Capacity, FindVerdict, LimitedBy};
pub use evidence::Evidence;
pub use search::Search;
pub use trial::{CompletedTrial, Proposal, Purpose, TrialReport};

use crate::assertion::Assertion;

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
    /// The plan has retries.
    #[error(
        "a search has no retries: their number depends on the failures, so a trial would have no single rate; measure single rates with --rate or --steps"
    )]
    Retries,
}

/// Multiple of the bound after which a reply counts as failed and is no longer waited for.
const HOPELESS: f64 = 10.0;

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
    let (mut made, mut stopped) = (0, false);
    while let Some(proposal) = search.propose() {
        made += 1;
        let plan = trial_plan(plan, assertion, &proposal, made);
        // At a low rate it may happen that no request becomes due. That is a trial without evidence.
        let begun = WallInstant::now();
        let run = runner.run(&plan)?;
        if runner.is_stopped() {
            stopped = true;
            break;
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
    let mut capacity = search.answer(assertion.to_string());
    capacity.stopped = stopped;
    capacity.lowest = search.hopeless().map(|made| at_lowest(made, &objective));
    Ok(capacity)
}

/// The result of a trial at the lowest rate, in words.
fn at_lowest(made: &CompletedTrial, objective: &Objective) -> String {
    let (rate, evidence) = (made.proposal.rate(), &made.evidence);
    if evidence.unknown {
        return format!("at {rate}, no reply had enough events");
    }
    if evidence.errors() >= objective.tolerance {
        return format!(
            "at {rate}, {:.2} % of requests failed",
            evidence.errors() * 100.0
        );
    }
    format!("at {rate}, {:.2} times the bound", evidence.excess)
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
