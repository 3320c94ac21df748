//! CPU cost of a unary gRPC call for the client: `posthaste load --grpc` compared with ghz.
//!
//! Fifty calls at a time on ten connections, against the same bookshop with one thread on the other core. The clients
//! take turns. The time is user and system time of the client's process from its start to its end, so it includes the
//! schema and the report.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::bench::grpc::GHZ;
use crate::bench::pinned::{micros, number};
use crate::bench::{Bench, Figure, Measure, in_turns, pair_ratio};
use crate::cores::generator;
use crate::error::{Outcome, TaskError, check};
use crate::peers::toolkits::Book;
use crate::site::Server;
use crate::tools;

/// Highest permitted ratio to ghz's CPU time.
const BAR: f64 = 0.25;

/// Calls at a time, and connections.
const CONCURRENCY: &str = "50";
const CONNECTIONS: &str = "10";

/// CPU time per unary call, beside ghz.
pub(crate) fn grpc_load(bench: &Bench) -> Outcome<Vec<Figure>> {
    let shop = bench.bookshop(&[])?;
    let book = Book::first(&bench.site, &shop)?;
    let message = format!("{{\"isbn\":\"{}\",\"size\":\"SIZE_HELLO\"}}", book.isbn);
    let ghz = tools::go(&bench.site.checkout, "ghz", GHZ)?;
    let turns = bench.or_quick(7, 2);
    let [ours, theirs] = in_turns(
        turns,
        [&mut || of_posthaste(bench, &shop, &message), &mut || {
            of_ghz(bench, &ghz, &shop, &message)
        }],
    )?;
    let ratio = pair_ratio(&ours, &theirs);
    Ok(vec![
        Figure::new(
            "CPU of the client per unary gRPC call".to_owned(),
            Measure::median(&ours, "µs"),
        )
        .paired("ghz", Measure::median(&theirs, "µs"), ratio)
        .target(format!("at most {BAR:.2} of ghz's"), ratio <= BAR),
    ])
}

/// Microseconds of `posthaste load` per call.
fn of_posthaste(bench: &Bench, shop: &Server, message: &str) -> Outcome<f64> {
    let duration = bench.or_quick("5s", "1s");
    let options = [
        "--grpc",
        "bookshop.v1.Bookshop/GetBook",
        "--message",
        message,
        "--clients",
        CONCURRENCY,
        "--connections",
        CONNECTIONS,
        "--duration",
        duration,
    ];
    let report = bench.load(&shop.url(""), &options, 60)?;
    report.expect_all("ok")?;
    Ok(micros(report.finished.cpu) / number(report.intended()?))
}

/// Microseconds of ghz per call.
fn of_ghz(bench: &Bench, ghz: &Path, shop: &Server, message: &str) -> Outcome<f64> {
    let count = bench.or_quick("50000", "3000");
    let [wrapper, core, cpu] = generator() else {
        return Err(TaskError::Failed("no way to pin a client".into()));
    };
    let proto = bench
        .site
        .checkout
        .path("crates/lab/bookshop/proto/bookshop/v1/bookshop.proto");
    let mut command = Command::new(wrapper);
    command
        .args([core, cpu])
        .arg(ghz)
        .args(["--insecure", "--call", "bookshop.v1.Bookshop.GetBook"])
        .arg("--proto")
        .arg(proto)
        .args(["--data", message, "--format", "json", "--total", count])
        .args(["--connections", CONNECTIONS, "--concurrency", CONCURRENCY])
        .arg(shop.address.to_string());
    let done = bench.site.run("ghz", &mut command, 120)?;
    let calls = ok_calls(&done.stdout)?;
    check(calls.to_string() == count, || {
        format!("ghz: {calls} of {count} calls are OK")
    })?;
    Ok(micros(done.cpu) / number(calls))
}

/// Calls with the status OK in a report of ghz. Any other status is an error.
fn ok_calls(report: &str) -> Outcome<u64> {
    let report: Value = serde_json::from_str(report)
        .map_err(|error| TaskError::Failed(format!("ghz: {error} in:\n{report}")))?;
    let statuses = report["statusCodeDistribution"].as_object();
    let ok = statuses.and_then(|statuses| statuses.get("OK")?.as_u64());
    match (ok, statuses.map_or(0, serde_json::Map::len)) {
        (Some(ok), 1) => Ok(ok),
        _ => Err(TaskError::Failed(format!(
            "ghz: {} {}",
            report["statusCodeDistribution"], report["errorDistribution"]
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_ghz_are_read() {
        let report = |statuses: &str| {
            format!(
                "{{\"count\": 200, \"total\": 1000000, \"average\": 500, \"fastest\": 1, \"slowest\": 9, \"rps\": 1.5, \
                 \"errorDistribution\": {{}}, \"statusCodeDistribution\": {{{statuses}}}, \"latencyDistribution\": null}}"
            )
        };
        assert_eq!(ok_calls(&report("\"OK\": 200")).unwrap(), 200);
        for statuses in [
            "",
            "\"OK\": 199, \"Unavailable\": 1",
            "\"Unavailable\": 200",
        ] {
            assert!(ok_calls(&report(statuses)).is_err(), "{statuses}");
        }
        assert!(ok_calls("no JSON").is_err());
    }
}
