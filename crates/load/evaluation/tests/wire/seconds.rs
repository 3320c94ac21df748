//! The seconds of a run: each has its requests, and a row in `seconds.csv`.

use std::fs;
use std::sync::atomic::AtomicBool;

use posthaste_evaluation::report::{Directory, Overwrite, Report};
use posthaste_load::run;
use posthaste_units::Span;

use crate::server::{answering, ok, plan};

/// Runs a plan with this rate and length, and returns the numbers of due requests in the rows of its seconds.
fn due_by_second(per_second: f64, millis: u64, warm_up: Span) -> Vec<u64> {
    let mut plan = plan(answering(ok("a book"), false), per_second, millis);
    plan.warm_up = warm_up;
    let folder = tempfile::tempdir().unwrap();
    let mut records = Directory::create(folder.path(), Overwrite::Never).unwrap();
    let run = run(&plan, &AtomicBool::new(false), &mut records).unwrap();
    let report = Report::new(&plan, &run);
    records.finish(&report, &run, plan.warm_up).unwrap();
    let rows = fs::read_to_string(folder.path().join("seconds.csv")).unwrap();
    let rows = rows.lines().skip(1).map(|row| row.split(','));
    rows.enumerate()
        .map(|(before, mut cells)| {
            let second: usize = cells.next().unwrap().parse().unwrap();
            assert_eq!(second, before + 1, "a second without a row");
            cells.nth(1).unwrap().parse().unwrap()
        })
        .collect()
}

#[test]
fn a_request_due_at_the_end_of_a_second_counts_in_the_next() {
    assert_eq!(due_by_second(1.0, 3_000, Span::ZERO), [1, 1, 1]);
    assert_eq!(due_by_second(100.0, 2_000, Span::ZERO), [100, 100]);
}

#[test]
fn every_second_of_the_run_has_a_row() {
    assert_eq!(due_by_second(0.5, 4_000, Span::ZERO), [1, 0, 1, 0]);
    // The second begun by the warm-up has the measured requests of its other half.
    let warm_up = Span::from_millis(1_500);
    assert_eq!(due_by_second(10.0, 1_000, warm_up), [0, 5, 5]);
}
