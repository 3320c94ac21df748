//! `load --find`: the search for the highest rate that meets an objective.

use posthaste_evaluation::{Assertion, Capacity, Effort, FindError, FindVerdict, TrialReport};
use posthaste_load::Plan;
use posthaste_units::{Ratio, Span};

use super::measure::judge_assertions;
use super::runner::PlanRunner;
use super::{Args, from_run, print_json};
use crate::commands::{Failure, print, stop_on_signal};

/// Time of a search without --duration.
const BUDGET: Span = Span::from_secs(50);

impl Args {
    /// Rejects assertions on figures that a search does not have, and on the capacity without a search.
    pub(super) fn check_search_assertions(&self) -> Result<(), Failure> {
        let is_wrong = |assertion: &&Assertion| assertion.is_of_search() != self.find.is_some();
        match self.assert.iter().find(is_wrong) {
            None => Ok(()),
            Some(assertion) if self.find.is_some() => Err(Failure::Usage(format!(
                "{assertion}: a search has one figure, its capacity: assert 'capacity>150/s'"
            ))),
            Some(assertion) => Err(Failure::Usage(format!(
                "{assertion}: only a search has a capacity: give --find 'p99<200ms'"
            ))),
        }
    }

    pub(super) fn search(
        &self,
        plan: &Plan,
        objective: &Assertion,
        runner: &mut PlanRunner,
    ) -> Result<(), Failure> {
        let stop = stop_on_signal()?;
        let effort = Effort {
            budget: self.duration.unwrap_or(BUDGET),
            precision: self.precision.map_or(super::PRECISION, Ratio::get),
            ..Effort::default()
        };
        let mut report = |trial: &TrialReport| note!("{trial}");
        let found = posthaste_evaluation::find(
            plan,
            objective,
            effort,
            &mut *runner.trials(&stop),
            &mut report,
        );
        let mut capacity = found.map_err(|error| match error {
            FindError::Objective(_) | FindError::NoEvents(_) | FindError::Retries => {
                Failure::usage(error)
            }
            FindError::Run(error) => from_run(error),
        })?;
        capacity.check(&self.assert);
        let text = capacity.to_string();
        if self.json {
            print_json(&capacity)?;
        } else {
            print(&format!("{text}\n"))?;
        }
        judge(&capacity)
    }
}

/// The exit code: without a lower end nothing is known, unless the lowest rate is shown to fail.
fn judge(capacity: &Capacity) -> Result<(), Failure> {
    if capacity.stopped {
        return Err(Failure::run("stopped; what is known until then is above"));
    }
    match capacity.verdict() {
        FindVerdict::Fails => Err(Failure::Threshold(
            "the objective fails at the lowest rate".to_owned(),
        )),
        FindVerdict::Unknown => Err(Failure::run("no rate is shown to hold")),
        FindVerdict::Holds => judge_assertions(&capacity.assertions),
    }
}
