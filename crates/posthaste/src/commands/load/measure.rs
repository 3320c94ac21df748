//! One run of the plan: its report in every requested form, then the exit code.

use posthaste_evaluation::Live;
use posthaste_evaluation::report::{
    self, AssertionResult, Directory, Overwrite, Report, TextTimes,
};
use posthaste_load::Plan;

use super::runner::PlanRunner;
use super::{Args, print_json};
use crate::commands::{Failure, print, stop_on_signal};

impl Args {
    pub(super) fn measure(&self, plan: &Plan, runner: &mut PlanRunner) -> Result<(), Failure> {
        if self.files.on_stdout() + usize::from(self.json) > 1 {
            return Err(Failure::usage(
                "--json, --markdown - and --junit - all print to standard output: choose one, and give a file to the others",
            ));
        }
        self.files.check_writable()?;
        let stop = stop_on_signal()?;
        let mut records = self.records()?;
        let mut live = Live::new(plan.warm_up + plan.length());
        let mut notice = live.notice();
        let observer = &mut (&mut live, records.as_mut());
        let run = runner.run(plan, &stop, observer, &mut notice);
        live.finish();
        let run = run?;
        let mut report = Report::new(plan, &run);
        report.check(&self.assert, &run, self.allow_few);
        // Written independently: one failure does not prevent the others.
        let kept = records.map_or(Ok(()), |records| {
            let page = records.page();
            let finished = records.finish(&report, &run, plan.warm_up);
            finished.map_err(Failure::run)?;
            note!("the report as a page: {}", page.display());
            Ok(())
        });
        let checked = self.files.write(&report.checks(self.allow_late));
        if self.json {
            print_json(&report)?;
        } else if self.files.on_stdout() == 0 {
            print(&report::text(&report, self.times()))?;
        }
        kept.and(checked)?;
        self.judge(&report)
    }

    fn times(&self) -> TextTimes {
        if self.phases {
            TextTimes::All
        } else {
            TextTimes::Differing
        }
    }

    fn records(&self) -> Result<Option<Directory>, Failure> {
        let overwrite = if self.force {
            Overwrite::Force
        } else {
            Overwrite::Never
        };
        let Some(path) = &self.out else {
            return Ok(None);
        };
        Directory::create(path, overwrite)
            .map(Some)
            .map_err(Failure::run)
    }

    /// The exit code, by priority: an untrustworthy or incomplete run, a failed assertion, a run without replies.
    fn judge(&self, report: &Report) -> Result<(), Failure> {
        if report.stopped {
            return Err(Failure::Run(
                "stopped; what was measured until then is above".to_owned(),
            ));
        }
        if let Some(reason) = report.incomplete_in_words() {
            return Err(Failure::Run(reason));
        }
        if let Some(reason) = &report.generator.reason
            && !self.allow_late
        {
            return Err(Failure::Run(format!(
                "the generator was the limit: {reason}; or accept its own delay with --allow-late"
            )));
        }
        judge_assertions(&report.assertions)?;
        let unknown = report.silence_in_words();
        let unknown = unknown.or_else(|| report.eventless_in_words());
        unknown.map_or(Ok(()), |reason| Err(Failure::Run(reason)))
    }
}

/// A failed assertion has status 1, one that is unknown 3.
pub(super) fn judge_assertions(assertions: &[AssertionResult]) -> Result<(), Failure> {
    let of_kind = |holds: Option<bool>| {
        let chosen = assertions
            .iter()
            .filter(move |checked| checked.holds == holds);
        let verdict = if holds.is_none() {
            "is unknown"
        } else {
            "does not hold"
        };
        let reasons =
            chosen.map(|checked| format!("{} {verdict}: {}", checked.assertion, checked.reason()));
        reasons.collect::<Vec<String>>().join("; ")
    };
    let (failed, unknown) = (of_kind(Some(false)), of_kind(None));
    if !failed.is_empty() {
        return Err(Failure::Threshold(failed));
    }
    if !unknown.is_empty() {
        return Err(Failure::Run(unknown));
    }
    Ok(())
}
