//! The checks of a load run.

use super::{Check, CheckState, Checks};
use crate::report::Report;

impl Report {
    /// Returns the assertions, preceded by the checks that the run can be trusted. With `allow_late`, a generator that was
    /// the limit is unknown instead of failed. A run that is not complete shows nothing: all its assertions are unknown.
    pub fn checks(&self, allow_late: bool) -> Checks {
        let incomplete = self.incomplete_in_words();
        let unknown = |name: &str, found: &Option<String>| {
            found.clone().map(|found| Check {
                name: name.to_owned(),
                state: CheckState::Unknown,
                found,
                detail: String::new(),
            })
        };
        let complete = unknown("the run is complete", &incomplete);
        let answered = unknown("the service answers", &self.silence_in_words());
        let eventful = unknown("replies have events", &self.eventless_in_words());
        let is_sure = incomplete.is_none() && answered.is_none() && eventful.is_none();
        let limit = self.generator.reason.iter().map(|reason| Check {
            name: "the generator carried out the plan".to_owned(),
            state: if allow_late {
                CheckState::Unknown
            } else {
                CheckState::Failed
            },
            found: reason.clone(),
            detail: String::new(),
        });
        let asserted = self.assertions.iter().map(|checked| Check {
            name: checked.assertion.clone(),
            state: match checked.holds {
                _ if incomplete.is_some() => CheckState::Unknown,
                Some(true) => CheckState::Passed,
                Some(false) => CheckState::Failed,
                None => CheckState::Unknown,
            },
            found: checked.found.clone(),
            detail: String::new(),
        });
        Checks {
            title: "posthaste load".to_owned(),
            notes: vec![format!("{}, {}", self.plan.target, self.plan.pace)],
            checks: complete
                .into_iter()
                .chain(answered)
                .chain(eventful)
                .chain(limit)
                .chain(asserted)
                .collect(),
            allow_unknown: allow_late
                && is_sure
                && self
                    .assertions
                    .iter()
                    .all(|checked| checked.holds.is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn content_delayed_by_the_generator_fails_the_run() {
        let mut run = testing::run(100, 0);
        run.streams.windows_exhausted = 1;
        let mut report = Report::new(&testing::plan(), &run);
        report.check(&["p99<1s".parse().unwrap()], &run, true);
        let states = |allow_late| {
            let checks = report.checks(allow_late).checks.into_iter();
            checks.map(|check| check.state).collect::<Vec<_>>()
        };
        assert_eq!(states(false), [CheckState::Failed, CheckState::Passed]);
        assert_eq!(states(true), [CheckState::Unknown, CheckState::Passed]);
        let text = crate::report::text(&report, crate::report::TextTimes::All);
        assert!(text.starts_with("THE GENERATOR WAS THE LIMIT"), "{text}");
    }

    #[test]
    fn a_stopped_or_silent_run_passes_nothing() {
        let run = posthaste_load::Run {
            stopped: true,
            ..testing::run(1_000, 0)
        };
        let mut report = Report::new(&testing::plan(), &run);
        report.check(&["p99<1s".parse().unwrap()], &run, false);
        assert_eq!(report.assertions[0].holds, Some(true));
        let checks = report.checks(true);
        let states: Vec<_> = checks.checks.iter().map(|check| check.state).collect();
        assert_eq!(states, [CheckState::Unknown; 2]);
        assert!(!checks.allow_unknown);
        let silent = Report::new(&testing::plan(), &testing::run(0, 10));
        let checks = silent.checks(true);
        assert_eq!(checks.checks[0].name, "the service answers");
        assert!(!checks.allow_unknown);
    }

    #[test]
    fn assertions_with_too_few_requests_stay_unknown() {
        let run = testing::run(100, 0);
        let mut report = Report::new(&testing::plan(), &run);
        report.check(&["p99<1s".parse().unwrap()], &run, false);
        let checks = report.checks(true);
        assert_eq!(checks.checks[0].state, CheckState::Unknown);
        assert!(!checks.allow_unknown);
    }
}
