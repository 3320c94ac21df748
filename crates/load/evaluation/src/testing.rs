//! Reports of runs that did not take place.

pub(crate) use posthaste_load::testing::{plan, run};

use crate::report::Report;

/// The report of a run with `answered` requests answered after 100 ms and `given_up` given up after 500 ms.
pub(crate) fn report(answered: u64, given_up: u64) -> Report {
    Report::new(&plan(), &run(answered, given_up))
}
