//! `cargo xtask test`: the workspace's own tests, then the peers, then the names of what failed and one final line.

mod fast;
pub(crate) mod features;
mod peers;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use posthaste_harness::binaries::{self, Binary, TestChoice};
use posthaste_harness::output::{self, Results};
use posthaste_harness::tally::{self, TestTally};

use crate::checkout::{Checkout, cargo};
use crate::error::Outcome;
use crate::process;
use crate::tools;

pub(crate) use fast::run as run_fast;

/// Time limit for building and running the tests of the documentation.
const DOC_TESTS: Duration = Duration::from_secs(1200);

/// Test binaries that run at the same time. Most of them wait, and tests hold beside four busy processes.
const BESIDE: usize = 3;

/// Programs that the workspace's tests use besides Rust, and their Debian packages.
const PROGRAMS: [(&str, &str); 2] = [("tshark", "tshark"), ("curl", "curl")];

/// Prints the peer tests.
pub(crate) fn list(checkout: &Checkout) -> Outcome<()> {
    print!("{}", peers::list(checkout)?);
    Ok(())
}

/// Runs all tests. The last lines are the names of what failed, and `N passed, N failed`.
pub(crate) fn run(checkout: &Checkout) -> Outcome<ExitCode> {
    for (program, package) in PROGRAMS {
        if let Err(error) = tools::debian(checkout, program, package) {
            eprintln!("{error}");
        }
    }
    let mut own = own_tests(checkout, |_| Some(TestChoice::Except(Vec::new())))?;
    doc_tests(checkout, &mut own);
    features::run(checkout, &mut own);
    let peers = peers::run(checkout).unwrap_or_else(|error| {
        let mut none = TestTally::default();
        none.fail("peers", &error.to_string());
        none
    });
    Ok(tally::report(&[("own tests", own), ("peers", peers)]))
}

/// Builds all tests and runs the chosen ones, with a line for each binary on standard output.
fn own_tests(
    checkout: &Checkout,
    choose: impl Fn(&Binary) -> Option<TestChoice>,
) -> Outcome<TestTally> {
    let logs = checkout.peer_folder("logs")?;
    let mut tally = TestTally::default();
    let binaries = binaries::try_build(checkout, &[]).unwrap_or_else(|broken| {
        for binary in broken {
            tally.fail("build", &binary);
        }
        Vec::new()
    });
    let chosen = binaries
        .into_iter()
        .filter_map(|binary| choose(&binary).map(|choice| (binary, choice)));
    side_by_side(chosen.collect(), &logs, |binary, results| {
        let results = match results {
            Ok(results) => results,
            Err(error) => return tally.fail(&binary.name(), &error.to_string()),
        };
        let (passed, failed) = (results.passed.len(), results.failed.len());
        println!(
            "{}: {passed} passed, {failed} failed, {} ignored, {:.1} s",
            binary.name(),
            results.ignored,
            results.seconds
        );
        if failed > 0 {
            println!("{}", results.output);
        }
        tally.passed += passed;
        tally.skipped += results.ignored;
        for test in results.failed {
            tally.fail(&format!("{} {test}", binary.name()), "");
        }
    });
    if tally.passed == 0 && tally.failures.is_empty() {
        tally.fail("own tests", "none ran");
    }
    Ok(tally)
}

/// Runs binaries, [`BESIDE`] at a time, those that wait on a clock first. Calls `hear` with the results of each.
fn side_by_side(
    mut chosen: Vec<(Binary, TestChoice)>,
    logs: &Path,
    mut hear: impl FnMut(&Binary, Outcome<Results>),
) {
    chosen.sort_by_key(|(binary, _)| binary.waits());
    let (queue, (sender, ended)) = (Mutex::new(chosen), channel());
    std::thread::scope(|scope| {
        for sender in std::iter::repeat_n(sender, BESIDE) {
            let queue = &queue;
            scope.spawn(move || {
                let next = || queue.lock().expect("no thread panics with it").pop();
                while let Some((binary, choice)) = next() {
                    let results = binary.run(&choice, logs);
                    sender.send((binary, results)).expect("it is read");
                }
            });
        }
        for (binary, results) in ended {
            hear(&binary, results);
        }
    });
}

/// Runs the tests of the documentation.
fn doc_tests(checkout: &Checkout, tally: &mut TestTally) {
    let mut command = cargo(checkout);
    command.args([
        "test",
        "--doc",
        "--workspace",
        "--all-features",
        "--no-fail-fast",
    ]);
    let before = tally.failures.len();
    let ended = process::pass_through("cargo test --doc", &mut command, DOC_TESTS, |line| {
        if let Some(counts) = line.strip_prefix("test result: ") {
            tally.passed += output::count(counts, "passed");
            tally.skipped += output::count(counts, "ignored");
        }
        if let Some(test) = output::failed_test(line) {
            tally.fail(test, "");
        }
    });
    if let Err(error) = ended
        && tally.failures.len() == before
    {
        tally.fail("documentation", &error.to_string());
    }
}
