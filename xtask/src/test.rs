//! `cargo xtask test`: the workspace's own tests, then the peers, then one final line.

pub(crate) mod binaries;
mod fast;
pub(crate) mod waiting;

use std::process::ExitCode;
use std::time::Duration;

use crate::checkout::{Build, Checkout, cargo};
use crate::error::{Outcome, TaskError};
use crate::peers::{self, PEERS, Peer};
use crate::process;
use crate::site::Site;
use crate::tools;

pub(crate) use fast::run as run_fast;

/// Time limit for building and running the workspace's own tests, while other programs use the CPU.
const OWN_TESTS: Duration = Duration::from_secs(3000);

/// Prints the peer tests.
pub(crate) fn list() {
    for Peer { name, about, .. } in PEERS {
        println!("{name:10} {about}");
    }
}

/// Runs all tests, or one peer test. The last line is `N passed, N failed`.
pub(crate) fn run(checkout: Checkout, only: Option<&str>) -> Outcome<ExitCode> {
    let chosen: Vec<&Peer> = PEERS
        .iter()
        .filter(|peer| only.is_none_or(|only| only == peer.name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
        return Err(TaskError::Failed(format!(
            "no such peer test; there are {}",
            names.join(", ")
        )));
    }
    let own = if only.is_none() {
        own_tests(&checkout)
    } else {
        Own::default()
    };
    let build = match only {
        None => Build::Tested,
        Some(_) => Build::Dev,
    };
    let peers = peers::run(&Site::new(checkout, build)?, &chosen);
    // Whoever reads only the end of the output learns what failed.
    for failure in own.failures.iter().chain(&peers.failures) {
        println!("FAILED {failure}");
    }
    let (passed, failed) = (own.passed + peers.passed, own.failed + peers.failures.len());
    if own.ignored > 0 {
        println!("own tests: {} ignored", own.ignored);
    }
    println!(
        "peers: {} passed, {} failed, {} skipped",
        peers.passed,
        peers.failures.len(),
        peers.skipped
    );
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Counts from cargo's test binaries.
#[derive(Default)]
struct Own {
    passed: usize,
    failed: usize,
    /// Why runs of cargo failed.
    failures: Vec<String>,
    /// Tests without a program or privilege that they need.
    ignored: usize,
}

/// Programs that the workspace's tests use besides Rust, and their Debian packages.
const PROGRAMS: [(&str, &str); 2] = [("tshark", "tshark"), ("curl", "curl")];

fn own_tests(checkout: &Checkout) -> Own {
    let mut own = Own::default();
    for (program, package) in PROGRAMS {
        if let Err(error) = tools::debian(checkout, program, package) {
            eprintln!("{error}");
        }
    }
    let mut command = cargo(checkout);
    command.args(["test", "--workspace", "--no-fail-fast"]);
    let ended = process::cargo_test(&mut command, OWN_TESTS, |line| {
        if let Some(counts) = line.strip_prefix("test result: ") {
            own.passed += count(counts, "passed");
            own.failed += count(counts, "failed");
            own.ignored += count(counts, "ignored");
        }
    });
    if let Err(error) = ended {
        // A failed build or a dying test binary reports no failed test.
        own.failed = own.failed.max(1);
        own.failures.push(error.to_string());
    }
    own
}

/// The number before `word` in `ok. 12 passed; 0 failed; ...`.
fn count(counts: &str, word: &str) -> usize {
    counts
        .split(['.', ';'])
        .find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn counts_are_read_from_cargos_line() {
        let line = "FAILED. 14 passed; 3 failed; 1 ignored; 0 measured; finished in 0.10s";
        assert_eq!(
            (
                count(line, "passed"),
                count(line, "failed"),
                count(line, "ignored"),
                count(line, "absent")
            ),
            (14, 3, 1, 0)
        );
    }
}
