//! The instrument against theory: a bookshop with a known service law, loaded by Poisson arrivals.
//!
//! The law's time includes reading and writing, so that theory holds for what a client sees.

use posthaste_stats::theory::{Md1, Mm1, Mm1k};
use posthaste_units::Span;

use crate::bench::pinned::number;
use crate::bench::{Bench, Row, median};
use crate::load::{Loading, Report};
use crate::peers::generators::first_isbn;
use crate::site::Server;
use crate::trouble::{Outcome, Trouble};

/// The mean service time: long against a loopback round trip, short enough for many requests.
const SERVICE: Span = Span::from_millis(1);

/// A server's law, and what theory says of it at a load.
struct Law {
    name: &'static str,
    load: f64,
    mean_ms: f64,
    p99_ms: f64,
}

impl Law {
    fn mm1(load: f64) -> Option<Self> {
        let law = Mm1::new(load, SERVICE)?;
        Some(Self {
            name: "mm1",
            load,
            mean_ms: ms(law.mean_sojourn()),
            p99_ms: ms(law.sojourn_quantile(0.99)),
        })
    }

    fn md1(load: f64) -> Option<Self> {
        let law = Md1::new(load, SERVICE)?;
        Some(Self {
            name: "md1",
            load,
            mean_ms: ms(law.mean_sojourn()),
            p99_ms: ms(law.sojourn_quantile(0.99)),
        })
    }
}

/// How the intervals of many short runs lie to theory, one long run at 0.9, and who is turned away.
pub(crate) fn coverage(bench: &Bench) -> Outcome<Vec<Row>> {
    let laws = [Law::md1(0.5), Law::md1(0.7), Law::mm1(0.5), Law::mm1(0.7)];
    let mut rows = Vec::new();
    for law in laws.into_iter().flatten() {
        let runs = short_runs(bench, &law)?;
        for (what, theory) in [("mean", law.mean_ms), ("p99", law.p99_ms)] {
            rows.extend(covered(&law, what, theory, &runs)?);
        }
    }
    rows.extend(long_run(bench)?);
    rows.push(blocking(bench)?);
    Ok(rows)
}

/// Reports of runs of a known law, two at a time, each pair with seeds of its own.
fn short_runs(bench: &Bench, law: &Law) -> Outcome<Vec<Report>> {
    let pairs = bench.or_quick(100, 2);
    let length = bench.or_quick("20s", "3s");
    let mut reports = Vec::new();
    for pair in 0..pairs {
        let (one, other) = (pair * 2, pair * 2 + 1);
        let shops = [
            start(bench, law.name, "", one)?,
            start(bench, law.name, "", other)?,
        ];
        let mut loading: Vec<Loading> = Vec::new();
        for (number, (_, url)) in shops.iter().enumerate() {
            loading.push(load(bench, url, law.load, length, pair * 2 + number)?);
        }
        for loading in loading {
            reports.push(loading.finish(60)?);
        }
    }
    Ok(reports)
}

/// In how many runs the interval holds the truth, and how wide it is.
fn covered(law: &Law, what: &str, theory: f64, runs: &[Report]) -> Outcome<Vec<Row>> {
    let mut hits = 0;
    let mut widths = Vec::new();
    let mut values = Vec::new();
    for report in runs {
        let value = report.number(&format!("response_time_ms/{what}"))?;
        values.push(value);
        // A run too short for an interval has not covered anything.
        if let Some((low, high)) = report.interval(&format!("response_time_ms/{what}_interval")) {
            hits += u32::from((low..=high).contains(&theory));
            widths.push((high - low) / value);
        }
    }
    let share = 100.0 * f64::from(hits) / runs.len() as f64;
    let width = 100.0 * median(&widths);
    let name = format!("{} at {}, {what}", law.name, law.load);
    Ok(vec![
        Row::judged(
            format!("{name}: intervals of {} runs that hold theory", runs.len()),
            format!(
                "{share:.1} %; median {:.3} ms, theory {theory:.3} ms",
                median(&values)
            ),
            "93 to 97 %",
            (93.0..=97.0).contains(&share),
        ),
        Row::judged(
            format!("{name}: median width"),
            format!("{width:.1} %"),
            "under 10 %",
            width < 10.0,
        ),
    ])
}

/// One long run near the limit.
fn long_run(bench: &Bench) -> Outcome<Vec<Row>> {
    let length = bench.or_quick("600s", "10s");
    let mut rows = Vec::new();
    for law in [Law::md1(0.9), Law::mm1(0.9)].into_iter().flatten() {
        let (_shop, url) = start(bench, law.name, "", 0)?;
        let report = load(bench, &url, law.load, length, 0)?.finish(700)?;
        for (what, theory) in [("mean", law.mean_ms), ("p99", law.p99_ms)] {
            let measured = report.number(&format!("response_time_ms/{what}"))?;
            let off = 100.0 * (measured / theory - 1.0);
            rows.push(Row::judged(
                format!("{} at 0.9, {length}, {what}", law.name),
                format!("{measured:.3} ms; theory {theory:.3} ms; off by {off:+.1} %"),
                "within 3 %",
                off.abs() <= 3.0,
            ));
        }
    }
    Ok(rows)
}

/// With room for five, at load 0.9, those who find no room wait in vain: how many?
///
/// The room is the kernel's accept queue, so that a connection each is needed, and who is turned
/// away is not answered.
fn blocking(bench: &Bench) -> Outcome<Row> {
    let room = 5;
    let theory = Mm1k::new(0.9, SERVICE, room)
        .ok_or_else(|| Trouble::Failed("no such law".into()))?
        .blocking();
    let (_shop, url) = start(bench, "mm1k", &format!(":{room}"), 0)?;
    let rate = rate(0.9);
    let length = bench.or_quick("60s", "5s");
    let report = bench.load(
        &url,
        &[
            "--rate",
            &rate,
            "--arrivals",
            "poisson",
            "--duration",
            length,
            "--connection",
            "new",
        ],
        120,
    )?;
    let lost = report.outcome("connect-aborted") + report.outcome("unanswered");
    let share = number(lost) / number(report.intended()?);
    let off = 100.0 * (share / theory - 1.0);
    Ok(Row::judged(
        format!("M/M/1/{room} at 0.9: share turned away"),
        format!("{share:.4}; theory {theory:.4}; off by {off:+.1} %"),
        "within 5 %",
        off.abs() <= 5.0,
    ))
}

/// The capacity that `--find` reports of an M/M/1 server, whose p99 is ln 100 / (1/s - rate).
pub(crate) fn find(bench: &Bench) -> Outcome<Vec<Row>> {
    let limit_ms = 20.0;
    let truth = 1.0 / SERVICE.as_secs_f64() - 100.0_f64.ln() / (limit_ms / 1000.0);
    let mut rows = Vec::new();
    for seed in 0..bench.or_quick(5, 1) {
        let (_shop, url) = start(bench, "mm1", "", seed)?;
        let search = ["--find", "p99<20ms", "--arrivals", "poisson"];
        let report = bench.search(&url, &search, 120)?;
        let capacity = report.number("capacity_per_s")?;
        let off = 100.0 * (capacity / truth - 1.0);
        let took = report.finished.wall.as_secs_f64();
        rows.push(Row::judged(
            format!("capacity at p99<20ms, seed {seed}"),
            format!("{capacity:.0}/s; theory {truth:.0}/s; off by {off:+.1} %; took {took:.0} s"),
            "within 3 % in at most 60 s",
            off.abs() <= 3.0 && took <= 60.0,
        ));
    }
    Ok(rows)
}

/// A bookshop with this law, whose times are drawn from `seed`, and the URL of a page.
fn start(bench: &Bench, law: &str, room: &str, seed: usize) -> Outcome<(Server, String)> {
    let service = format!("{law}:{}us{room}", SERVICE.as_nanos() / 1000);
    let seed = format!("{seed}");
    let shop = bench
        .site
        .bookshop(&["--service", &service, "--seed", &seed])?;
    let isbn = first_isbn(&bench.site, &shop)?;
    let url = shop.url(&format!("/page/{isbn}"));
    Ok((shop, url))
}

/// The rate that makes this load, as an option's value.
fn rate(load: f64) -> String {
    format!("{:.3}/s", load / SERVICE.as_secs_f64())
}

/// Poisson arrivals at this load, after a second to reach the steady state.
fn load(bench: &Bench, url: &str, load: f64, length: &str, seed: usize) -> Outcome<Loading> {
    let (rate, seed) = (rate(load), seed.to_string());
    let pace = [
        "--rate",
        &rate,
        "--arrivals",
        "poisson",
        "--duration",
        length,
        "--seed",
        &seed,
    ];
    bench
        .site
        .start_load(&[], &[[url, "--warm-up", "1s"].as_slice(), &pace].concat())
}

fn ms(span: Span) -> f64 {
    span.as_secs_f64() * 1000.0
}
