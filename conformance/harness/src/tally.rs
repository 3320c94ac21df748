//! Numbers of tests by result, and the last lines of a run.

use std::process::ExitCode;

/// Numbers of tests by result.
#[derive(Default)]
pub struct TestTally {
    /// Tests that passed.
    pub passed: usize,
    /// Tests without a program or privilege that they need.
    pub skipped: usize,
    /// Names of what failed, each with a reason if the name does not say it.
    pub failures: Vec<String>,
}

impl TestTally {
    /// Adds a failure. Only the first line of the reason is kept.
    pub fn fail(&mut self, name: &str, reason: &str) {
        let reason = reason.lines().next().unwrap_or_default();
        self.failures.push(match reason {
            "" => name.to_owned(),
            reason => format!("{name}: {reason}"),
        });
    }

    fn counts(&self) -> String {
        let failed = self.failures.len();
        format!(
            "{} passed, {failed} failed, {} skipped",
            self.passed, self.skipped
        )
    }
}

/// Prints the counts of each part, the names of what failed, one a line, and `N passed, N failed`.
pub fn report(parts: &[(&str, TestTally)]) -> ExitCode {
    println!("{}", text(parts));
    let has_failed = parts.iter().any(|(_, tally)| !tally.failures.is_empty());
    if has_failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn text(parts: &[(&str, TestTally)]) -> String {
    let counts = parts
        .iter()
        .map(|(part, tally)| format!("{part}: {}\n", tally.counts()));
    let failures = parts.iter().flat_map(|(_, tally)| &tally.failures);
    let failures: Vec<String> = failures.map(|name| format!("FAILED {name}\n")).collect();
    let passed: usize = parts.iter().map(|(_, tally)| tally.passed).sum();
    let failed = failures.len();
    let counts: String = counts.collect();
    format!(
        "{counts}{}{passed} passed, {failed} failed",
        failures.concat()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_name_each_failure() {
        let mut own = TestTally {
            passed: 3,
            skipped: 1,
            ..TestTally::default()
        };
        own.fail("posthaste-load wire a::b", "");
        let mut peers = TestTally::default();
        peers.fail("peer zeep", "ended with exit 1; it said:\nno book");
        let expected = "\
own tests: 3 passed, 1 failed, 1 skipped
peers: 0 passed, 1 failed, 0 skipped
FAILED posthaste-load wire a::b
FAILED peer zeep: ended with exit 1; it said:
3 passed, 2 failed";
        assert_eq!(text(&[("own tests", own), ("peers", peers)]), expected);
    }
}
