//! Acknowledged offers that a broker loses, counted over many kills by the broker's own test.

use crate::bench::{Bench, Figure, Measure};
use crate::error::{Outcome, TaskError, check};
use crate::peers::stores::{self, Tests};
use crate::postgres::Postgres;

/// Arguments of the test, which runs for both stores.
const ARGUMENTS: [&str; 2] = ["--nocapture", "--test-threads=2"];

/// One figure for each store. A lost offer fails the test.
pub(crate) fn durability(bench: &Bench) -> Outcome<Vec<Figure>> {
    let kills = bench.or_quick(1_000, 20);
    let mut stores = Vec::new();
    let server = Postgres::start(&bench.site)?;
    let tests = Tests {
        package: "posthaste-broker",
        filter: "durable",
        arguments: &ARGUMENTS,
        kills,
    };
    stores::run(&bench.site, &server, &tests, |line| {
        // The line follows the progress dots of the test binary.
        let line = line.trim_start_matches('.');
        let result = line.split_once(" writes acknowledged in ");
        if let Some((store, writes)) = result.and_then(|(result, _)| result.split_once(": ")) {
            stores.push((store.to_owned(), writes.to_owned()));
        }
    })?;
    check(stores.len() == 2, || {
        format!("of two stores, these were tested: {stores:?}")
    })?;
    let figure = |(store, writes): &(String, String)| {
        let writes = writes.parse().map_err(|_| {
            TaskError::Failed(format!(
                "the test of {store} did not say how many writes: {writes}"
            ))
        })?;
        let name = format!("{store}, {kills} kills: acknowledged writes that were lost");
        Ok(Figure::new(name, Measure::part(0, writes, "writes")).target("none", true))
    };
    stores.iter().map(figure).collect()
}
