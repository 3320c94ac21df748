//! `load --find`: the search for the highest rate at which an objective holds.

use posthaste_load::{Assertion, Effort, FindError, Plan, TrialReport};
use posthaste_units::Span;

use super::runner::PlanRunner;
use super::{Args, from_run, print_json};
use crate::commands::{Failure, print, stop_on_signal};

/// Time of a search unless --duration says otherwise.
const BUDGET: Span = Span::from_secs(50);

impl Args {
    pub(super) fn search(
        &self,
        plan: &Plan,
        objective: &Assertion,
        runner: &mut PlanRunner,
    ) -> Result<(), Failure> {
        let stop = stop_on_signal()?;
        let effort = Effort {
            budget: self.duration.unwrap_or(BUDGET),
            precision: self.precision.get(),
            ..Effort::default()
        };
        let mut told = |trial: &TrialReport| eprintln!("{trial}");
        let found = posthaste_load::find(
            plan,
            objective,
            effort,
            &mut *runner.trials(&stop),
            &mut told,
        );
        let capacity = found.map_err(|error| match error {
            FindError::Objective(_) | FindError::NoEvents(_) | FindError::Retries => {
                Failure::usage(error)
            }
            FindError::Hopeless { .. } => Failure::Threshold(error.to_string()),
            FindError::Run(error) => from_run(error),
            FindError::Stopped => Failure::run(error),
        })?;
        if self.json {
            return print_json(&capacity);
        }
        print(&format!("{capacity}\n"))
    }
}
