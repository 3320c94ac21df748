//! What a broker has acknowledged and then lost: counted over many kills by the broker's own test.

use crate::bench::{Bench, Row};
use crate::peers::stores;
use crate::trouble::{Outcome, check};

/// The test, for both stores one after the other.
const TEST: [&str; 4] = ["durable", "--", "--nocapture", "--test-threads=2"];

/// One row for each store; a lost offer fails the test.
pub(crate) fn durability(bench: &Bench) -> Outcome<Vec<Row>> {
    let kills = bench.or_quick(1_000, 20);
    let mut said = Vec::new();
    stores::tests(&bench.site, &TEST, kills, |line| {
        // Behind the points with which the test binary counts.
        let line = line.trim_start_matches('.');
        if let Some((writes, _)) = line.split_once(" writes acknowledged in ") {
            said.push(writes.to_owned());
        }
    })?;
    check(said.len() == 2, || {
        format!("of two stores, these were tested: {said:?}")
    })?;
    let row = |writes: &String| {
        let what = format!("writes acknowledged in {kills} lives");
        Row::judged(what, format!("{writes}, none lost"), "none lost", true)
    };
    Ok(said.iter().map(row).collect())
}
