//! `cargo xtask busy`: repeats tests while other processes keep every core busy.
//!
//! A test that measures this machine for its plan, or that expects an event after a fixed time, passes on a quiet
//! machine and fails on a busy one. This command finds such tests. Each binary runs as in cargo, with its tests in
//! parallel. Rounds run in sequence, so that all tests meet the same machine.

mod neighbours;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use neighbours::Neighbours;

use crate::checkout::Checkout;
use crate::error::{Outcome, TaskError};
use posthaste_harness::binaries::{self, Binary, TestChoice};
use posthaste_harness::output::Results;
use posthaste_harness::waiting::{WAITING, WaitingTests};

/// Tests to run, and the number of repetitions and busy processes.
pub(crate) struct Wanted {
    /// Tests whose names contain this. Without it, those of [`WAITING`].
    pub(crate) filter: Option<String>,
    /// Only tests of this package.
    pub(crate) package: Option<String>,
    pub(crate) times: u32,
    pub(crate) processes: u32,
}

/// Prints the table.
pub(crate) fn list() {
    for WaitingTests {
        package,
        target,
        modules,
    } in WAITING
    {
        println!("{package} {target} {}", modules.join(" "));
    }
}

/// Some tests of one binary.
struct Part {
    binary: Binary,
    choice: TestChoice,
}

/// Runs the selected tests and reports the failures of each. The last line has the counts.
pub(crate) fn run(checkout: &Checkout, wanted: &Wanted) -> Outcome<ExitCode> {
    let logs = checkout.peer_folder("logs")?;
    let parts = parts(checkout, wanted, &logs)?;
    let _busy = Neighbours::start(wanted.processes, &logs)?;
    let mut tally = RepeatTally::default();
    for round in 1..=wanted.times {
        for part in &parts {
            let results = part.binary.run(&part.choice, &logs)?;
            println!(
                "{round}/{} {}: {} passed, {} failed, {:.1} s",
                wanted.times,
                part.binary.name(),
                results.passed.len(),
                results.failed.len(),
                results.seconds
            );
            tally.add(&part.binary.name(), round, results, &logs)?;
        }
    }
    Ok(tally.report(wanted))
}

/// The binaries with tests to run.
fn parts(checkout: &Checkout, wanted: &Wanted, logs: &Path) -> Outcome<Vec<Part>> {
    let is_wanted = |package: &str| wanted.package.as_deref().is_none_or(|only| only == package);
    let waiting: Vec<&WaitingTests> = WAITING
        .iter()
        .filter(|row| is_wanted(row.package))
        .collect();
    let mut packages: Vec<&str> = match (&wanted.package, &wanted.filter) {
        (Some(package), _) => vec![package],
        (None, Some(_)) => Vec::new(),
        (None, None) => waiting.iter().map(|row| row.package).collect(),
    };
    packages.dedup();
    let mut parts = Vec::new();
    for binary in binaries::build(checkout, &packages)? {
        let only = match &wanted.filter {
            Some(filter) => vec![filter.clone()],
            None => {
                let row = waiting
                    .iter()
                    .find(|row| row.package == binary.package && row.target == binary.target);
                let Some(row) = row else { continue };
                row.prefixes()
            }
        };
        let choice = TestChoice::Only(only);
        let part = Part { binary, choice };
        if !part.binary.tests(&part.choice, logs)?.is_empty() {
            parts.push(part);
        }
    }
    if parts.is_empty() {
        let nothing = "no such test; `cargo xtask busy --list` prints those that wait on a clock";
        return Err(TaskError::Failed(nothing.to_owned()));
    }
    Ok(parts)
}

/// Runs and failures by test.
#[derive(Default)]
struct RepeatTally {
    tests: BTreeMap<String, Runs>,
}

#[derive(Default)]
struct Runs {
    runs: u32,
    failed: u32,
    /// The output of the first failure.
    output: Option<PathBuf>,
}

impl RepeatTally {
    fn add(&mut self, binary: &str, round: u32, results: Results, logs: &Path) -> Outcome<()> {
        let path = logs.join(format!("busy-{}-{round}.out", binary.replace(' ', "-")));
        if !results.failed.is_empty() {
            std::fs::write(&path, &results.output).map_err(|error| TaskError::at(&path, error))?;
        }
        let passed = results.passed.into_iter().map(|name| (name, false));
        let failed = results.failed.into_iter().map(|name| (name, true));
        for (name, has_failed) in passed.chain(failed) {
            let test = self.tests.entry(format!("{binary} {name}")).or_default();
            test.runs += 1;
            if has_failed {
                test.failed += 1;
                test.output.get_or_insert_with(|| path.clone());
            }
        }
        Ok(())
    }

    fn report(&self, wanted: &Wanted) -> ExitCode {
        let failing = self.tests.iter().filter(|(_, test)| test.failed > 0);
        for (
            name,
            Runs {
                runs,
                failed,
                output,
            },
        ) in failing.clone()
        {
            let output = output.as_deref().unwrap_or(Path::new("")).display();
            println!("{name}: {failed} of {runs} failed; the first: {output}");
        }
        let (tests, failed) = (self.tests.len(), failing.count());
        println!(
            "{tests} tests, {} runs next to {} busy processes: {failed} tests failed",
            wanted.times, wanted.processes
        );
        match failed {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_by_test_and_the_first_is_kept() {
        let logs = tempfile::tempdir().expect("a folder");
        let mut tally = RepeatTally::default();
        for (round, fails) in [(1, false), (2, true), (3, true)] {
            let (mut passed, mut failed) = (vec!["a".to_owned()], Vec::new());
            (if fails { &mut failed } else { &mut passed }).push("b".to_owned());
            let output = format!("round {round}");
            let results = Results {
                passed,
                failed,
                output,
                ..Results::default()
            };
            tally
                .add("x unit", round, results, logs.path())
                .expect("written");
        }
        let counts = |name: &str| (tally.tests[name].runs, tally.tests[name].failed);
        assert_eq!((counts("x unit a"), counts("x unit b")), ((3, 0), (3, 2)));
        let first = tally.tests["x unit b"].output.as_ref().expect("kept");
        assert_eq!(std::fs::read_to_string(first).expect("there"), "round 2");
    }
}
