//! The checks of a load run.

use super::{Check, CheckState, Checks};
use crate::report::Report;

impl Report {
    /// Returns the assertions, preceded by the check that the run can be trusted. With `allow_late`, a generator that was
    /// the limit is unknown instead of failed.
    pub fn checks(&self, allow_late: bool) -> Checks {
        let limit = self.generator.reason.iter().map(|reason| Check {
            name: "the generator carried out the plan".to_owned(),
            state: match allow_late {
                true => CheckState::Unknown,
                false => CheckState::Failed,
            },
            found: reason.clone(),
            detail: String::new(),
        });
        let asserted = self.assertions.iter().map(|checked| Check {
            name: checked.assertion.clone(),
            state: match checked.holds {
                true => CheckState::Passed,
                false => CheckState::Failed,
            },
            found: checked.found.clone(),
            detail: String::new(),
        });
        Checks {
            title: "posthaste load".to_owned(),
            notes: vec![format!("{}, {}", self.plan.target, self.plan.pace)],
            checks: limit.chain(asserted).collect(),
            allow_unknown: allow_late,
        }
    }
}
