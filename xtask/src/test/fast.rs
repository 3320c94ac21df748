//! `cargo xtask test --fast`: every test of the workspace that waits on no clock.
//!
//! A test that only calculates, or runs in virtual time, ends in milliseconds. Those that wait for a socket, a process
//! or an interval are in [`WAITING`] and belong to the whole run.

use std::process::ExitCode;

use posthaste_harness::binaries::TestChoice;
use posthaste_harness::tally::report;
use posthaste_harness::waiting::WAITING;

use crate::checkout::Checkout;
use crate::error::Outcome;

/// Lists what is left out, builds all tests and runs the fast ones. The last lines are the names of what failed, and
/// `N passed, N failed`.
pub(crate) fn run(checkout: &Checkout) -> Outcome<ExitCode> {
    println!(
        "omitted: peers, tests of the documentation, features alone, and tests that wait on a clock:"
    );
    for row in WAITING {
        let modules = if row.modules.is_empty() {
            "all".to_owned()
        } else {
            row.modules.join(", ")
        };
        println!("  {} {}: {modules}", row.package, row.target);
    }
    let tests = super::own_tests(checkout, |binary| fast(&binary.package, &binary.target))?;
    Ok(report(&[("fast tests", tests)]))
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
