//! The capacity from `load --find`, compared with queueing theory: on the wire and in virtual time.
//!
//! Virtual time tests the method, with a thousand searches per law. The wire tests the real generator and server.

use std::process::Command;

use posthaste_stats::theory::{Md1, Mm1};
use posthaste_units::Span;
use serde_json::Value;

use crate::bench::result::Bounds;
use crate::bench::{Bench, Figure, Measure};
use crate::error::{Outcome, TaskError};
use crate::load::LoadReport;
use crate::peers::generators::first_isbn;
use crate::process::Running;

/// Laws on the wire, with service times in ms. Virtual time has the others: 50 s with services of 5 ms, or of M/M/1, do
/// not determine the capacity to 5 %.
const WIRE: [(&str, u64); 1] = [("md1", 1)];
/// Number of seeds for each.
const SEEDS: u64 = 12;
/// The bound on p99, in services.
const BOUND: u64 = 10;
/// Maximum deviation from theory of a figure that counts as near, as a share.
const NEAR: f64 = 0.05;
/// Targets in virtual time.
const BIAS: f64 = 0.01;
const COVERAGE: std::ops::RangeInclusive<f64> = 0.93..=0.97;
/// Time limit for 4,000 simulated searches, in seconds.
const PATIENCE: u64 = 3600;

/// Searches against bookshops with a known law.
pub(crate) fn wire(bench: &Bench) -> Outcome<Vec<Figure>> {
    let (mut figures, mut ended, mut near, mut excluded) = (Vec::new(), 0, 0, 0);
    let mut searches: u64 = 0;
    for seed in 0..bench.or_quick(SEEDS, 1) {
        for (law, millis) in WIRE {
            searches += 1;
            let found = search(bench, law, millis, seed)?;
            let took = found.report.finished.wall.as_secs_f64();
            let off = found
                .report
                .number("capacity_per_s")
                .ok()
                .map(|rate| rate / found.truth - 1.0);
            let interval = found.report.interval("capacity_interval");
            let excludes =
                interval.is_some_and(|(low, high)| found.truth < low || found.truth > high);
            ended += u64::from(took <= 60.0);
            near += u64::from(off.is_some_and(|off| off.abs() <= NEAR));
            excluded += u64::from(excludes);
            figures.push(found.figure(format!("{law}:{millis}ms, seed {seed}")));
        }
    }
    let all = searches;
    let part = |what: &str, count: u64| Figure::new(what, Measure::part(count, all, "searches"));
    let enough = all * 10 / 12;
    figures.extend([
        part("searches that end within 60 s", ended).target("all", ended == all),
        part("capacities within 5 % of theory", near)
            .target(format!("at least {enough} of {all}"), near >= enough),
        part("intervals that exclude theory", excluded).target("at most 1", excluded <= 1),
    ]);
    Ok(figures)
}

struct Found {
    report: LoadReport,
    truth: f64,
}

impl Found {
    /// The capacity of one search, compared with theory.
    fn figure(&self, what: String) -> Figure {
        let rate = |value| Measure::new(value, "requests/s");
        let Ok(found) = self.report.number("capacity_per_s") else {
            return Figure::sentence(what).remark("no capacity found").detail();
        };
        let (low, high) = self
            .report
            .interval("capacity_interval")
            .unwrap_or((f64::NAN, f64::NAN));
        let took = self.report.finished.wall.as_secs_f64();
        Figure::new(what, rate(found).between(low, high, Bounds::Interval95))
            .peer("theory", rate(self.truth))
            .remark(format!("took {took:.0} s"))
            .detail()
    }
}

fn search(bench: &Bench, law: &str, millis: u64, seed: u64) -> Outcome<Found> {
    let service = format!("{law}:{millis}ms");
    let seed = seed.to_string();
    let shop = bench.undisturbed_bookshop(&["--service", &service, "--seed", &seed])?;
    let url = shop.url(&format!("/page/{}", first_isbn(&bench.site, &shop)?));
    let objective = format!("p99<{}ms", BOUND * millis);
    let options = [
        "--find",
        &objective,
        "--arrivals",
        "poisson",
        "--seed",
        &seed,
    ];
    Ok(Found {
        report: bench.search(&url, &options, 120)?,
        truth: truth(law, Span::from_millis(millis)),
    })
}

/// The rate at which p99 is at its bound, by bisection.
fn truth(law: &str, service: Span) -> f64 {
    let p99 = |load: f64| match law {
        "md1" => Some(Md1::new(load, service)?.sojourn_quantile(0.99)),
        _ => Some(Mm1::new(load, service)?.sojourn_quantile(0.99)),
    };
    let (mut low, mut high) = (0.0, 0.99);
    while high - low > 1e-6 {
        let middle = f64::midpoint(low, high);
        match p99(middle) {
            Some(time) if time < service * BOUND => low = middle,
            _ => high = middle,
        }
    }
    low / service.as_secs_f64()
}

/// The study of the load crate, at its full size of 1,000 searches per law.
pub(crate) fn in_virtual_time(bench: &Bench) -> Outcome<Vec<Figure>> {
    let mut command = Command::new("cargo");
    let count = bench.or_quick("1000", "100");
    command
        .args([
            "run",
            "--quiet",
            "--release",
            "-p",
            "posthaste-load",
            "--example",
            "find_study",
            "--",
        ])
        .args(["--seeds", "1", count]);
    let running = Running::start("find-virtual", &mut command, &bench.site.logs)?;
    let finished = running.finish(std::time::Duration::from_secs(PATIENCE))?;
    let finished = finished.succeeded("the study of --find")?;
    let mut figures = Vec::new();
    let mut widths = Vec::new();
    for line in finished.stdout.lines() {
        let case: Value = serde_json::from_str(line).map_err(|error| {
            TaskError::Failed(format!("the study of --find: {error} in {line}"))
        })?;
        let number = |name: &str| case[name].as_f64().unwrap_or(f64::NAN);
        let (bias, coverage) = (number("bias"), number("coverage"));
        widths.push(100.0 * number("median_width"));
        let name = case["case"].as_str().unwrap_or_default();
        let searches = case["searches"].as_u64().unwrap_or(0);
        let figure = |what: &str, share: f64| {
            let measure = Measure::new(100.0 * share, "%").n(searches);
            Figure::new(format!("{name}: {what}"), measure)
        };
        figures.extend([
            figure("bias of the capacity", bias).target("at most 1 %", bias.abs() <= BIAS),
            figure("intervals that hold the capacity", coverage)
                .target("93 to 97 %", COVERAGE.contains(&coverage)),
            figure("median width of the intervals", number("median_width")).detail(),
            figure(
                "searches with a capacity",
                number("figures") / searches as f64,
            )
            .detail(),
        ]);
    }
    let widths = Measure::median(&widths, "%");
    figures.push(Figure::new(
        "median width of the intervals over the cases",
        widths,
    ));
    Ok(figures)
}
