//! The output of a test harness: names of tests with their results, and counts.

use std::process::Command;
use std::time::Duration;

use crate::error::{Outcome, TaskError};
use crate::process;

/// Results of one run of a binary.
#[derive(Debug, Default, PartialEq)]
pub struct Results {
    /// Names of the tests that passed.
    pub passed: Vec<String>,
    /// Names of the tests that failed.
    pub failed: Vec<String>,
    /// Tests without a program or privilege that they need.
    pub ignored: usize,
    /// Seconds from start to end.
    pub seconds: f64,
    /// All output, for the report of a failure.
    pub output: String,
}

/// Reads lines such as `test laws::a_constant_service ... ok`.
pub fn read(output: &str) -> Results {
    let mut results = Results::default();
    for line in output.lines() {
        if let Some(counts) = line.strip_prefix("test result: ") {
            results.ignored += count(counts, "ignored");
        }
        let Some((name, end)) = line
            .strip_prefix("test ")
            .and_then(|line| line.split_once(" ... "))
        else {
            continue;
        };
        // Output that a test writes past the harness can precede the result.
        let name = name.trim().to_owned();
        if end.ends_with("FAILED") {
            results.failed.push(name);
        } else if end.ends_with("ok") {
            results.passed.push(name);
        }
    }
    results
}

/// Tests that the harness reported as slow, and that have no result.
pub fn without_end(output: &str, results: &Results) -> Vec<String> {
    let slow = output.lines().filter_map(|line| {
        line.strip_prefix("test ")?
            .split_once(" has been running for over ")
    });
    let names = slow.map(|(name, _)| name.to_owned());
    names
        .filter(|name| !results.passed.contains(name) && !results.failed.contains(name))
        .collect()
}

/// The name in `test a::b ... FAILED`, or in `a::b --- FAILED` as with `--quiet`.
pub fn failed_test(line: &str) -> Option<&str> {
    let name = line.strip_suffix("FAILED")?.trim_end();
    let name = name
        .strip_suffix("...")
        .or_else(|| name.strip_suffix("---"))?;
    Some(name.strip_prefix("test ").unwrap_or(name).trim())
}

/// The number before `word` in `ok. 12 passed; 0 failed; ...`.
pub fn count(counts: &str, word: &str) -> usize {
    counts
        .split(['.', ';'])
        .find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok())
        .unwrap_or(0)
}

/// Runs a test binary with its output on ours, and calls `hear` with each line. The error names the tests that failed.
pub fn run(command: &mut Command, limit: Duration, mut hear: impl FnMut(&str)) -> Outcome<()> {
    let mut failed = Vec::new();
    let ended = process::pass_through("the tests", command, limit, |line| {
        failed.extend(failed_test(line).map(str::to_owned));
        hear(line);
    });
    ended.map_err(|error| {
        if failed.is_empty() {
            return error;
        }
        TaskError::Failed(format!("{error}: {}", failed.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_named() {
        assert_eq!(failed_test("test a::b ... FAILED"), Some("a::b"));
        assert_eq!(failed_test("a::b --- FAILED"), Some("a::b"));
        assert_eq!(failed_test("test a::c ... ok"), None);
        assert_eq!(failed_test("test result: FAILED. 1 passed; 1 failed"), None);
    }

    #[test]
    fn results_are_read_by_name() {
        let output = "running 3 tests\ntest a::b ... ok\ntest a::c ... heard something, FAILED\ntest a::d ... ignored\n\
                     test a::e has been running for over 60 seconds\ntest result: FAILED. 1 passed; 1 failed; 1 ignored";
        let results = read(output);
        assert_eq!(results.passed, ["a::b"]);
        assert_eq!(results.failed, ["a::c"]);
        assert_eq!(results.ignored, 1);
        assert_eq!(without_end(output, &results), ["a::e"]);
    }

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
