//! `cargo xtask test --fast`: every test of the workspace that waits on no clock.
//!
//! A test that only calculates, or runs in virtual time, ends in milliseconds. Those that wait for a socket, a process
//! or an interval are in [`WAITING`] and belong to the whole run.

use std::process::ExitCode;

use super::binaries::{self, TestChoice};
use super::waiting::WAITING;
use crate::checkout::Checkout;
use crate::error::Outcome;

/// Builds all tests and runs the fast ones. The last line is `N passed, N failed`.
pub(crate) fn run(checkout: &Checkout) -> Outcome<ExitCode> {
    let logs = checkout.peer_folder("logs")?;
    let (mut passed, mut failed) = (0, 0);
    for binary in binaries::build(checkout, &[], &logs)? {
        let Some(choice) = fast(&binary.package, &binary.target) else {
            continue;
        };
        let results = binary.run(&choice, &logs)?;
        println!(
            "{}: {} passed, {} failed, {:.1} s",
            binary.name(),
            results.passed.len(),
            results.failed.len(),
            results.seconds
        );
        if !results.failed.is_empty() {
            println!("{}", results.words);
        }
        passed += results.passed.len();
        failed += results.failed.len();
    }
    println!("{passed} passed, {failed} failed");
    Ok(match (passed, failed) {
        (1.., 0) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// The fast tests of a binary; `None` if all of them wait on a clock. Tests in other modules of the same name are left
/// out, too.
fn fast(package: &str, target: &str) -> Option<TestChoice> {
    let row = WAITING
        .iter()
        .find(|row| row.package == package && row.target == target);
    let slow = row.map_or_else(Vec::new, |row| row.prefixes());
    (row.is_none() || !slow.is_empty()).then_some(TestChoice::Except(slow))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_that_waits_is_left_out_and_its_modules_are_skipped() {
        let skipped = |package, target| match fast(package, target) {
            Some(TestChoice::Except(names)) => Some(names),
            _ => None,
        };
        assert_eq!(skipped("posthaste-gateway", "gateway"), None);
        assert_eq!(skipped("posthaste-link", "unit"), Some(Vec::new()));
        let names = skipped("posthaste-load", "unit").expect("some are fast");
        assert!(names.contains(&"target::".to_owned()));
    }
}
