//! The NATS server killed during runs of two agents, in turns with undisturbed runs.

use std::path::Path;
use std::time::{Duration, Instant};

use super::surroundings::{LoggingService, NatsServer, rows};
use crate::bench::{Bench, Figure, Measure, median, pair_ratio};
use crate::cores::real_time;
use crate::error::{Outcome, check};

/// Requests per second of both agents.
const RATE: &str = "200/s";
/// Highest permitted ratio of the lateness, or its highest permitted growth in ms.
const BARS: (f64, f64) = (1.5, 0.5);
/// Longest time from the return of the server to the report, in s.
const DELIVERY: f64 = 2.0;

/// A kind of run.
struct Outage {
    name: &'static str,
    /// Seconds of the run at which the server is killed, and comes back.
    away: Option<(u64, u64)>,
}

/// Length of a run in seconds, and the kinds.
struct OutagePlan {
    length: u64,
    rounds: usize,
    kinds: [Outage; 4],
}

/// Measurements of one kind, one for each round.
#[derive(Default)]
struct OutageTimes {
    /// Lateness in ms: p99 and the maximum.
    lateness: [Vec<f64>; 2],
    /// Return of the server, or the end of the run if that is later, to the report, in s.
    delivery: Vec<f64>,
}

impl OutagePlan {
    fn for_bench(bench: &Bench) -> Self {
        let kind = |name, away| Outage { name, away };
        let thorough = [
            kind("undisturbed", None),
            kind("3 s in the middle", Some((13, 16))),
            kind("20 s in the middle", Some((5, 25))),
            kind("3 s at the end", Some((29, 32))),
        ];
        let quick = [
            kind("undisturbed", None),
            kind("1 s in the middle", Some((2, 3))),
            kind("2 s in the middle", Some((2, 4))),
            kind("2 s at the end", Some((5, 7))),
        ];
        let (length, rounds, kinds) = bench.or_quick((30, 5, thorough), (6, 1, quick));
        Self {
            length,
            rounds,
            kinds,
        }
    }
}

/// Lateness with outages and without, and the time until the report.
pub(in crate::bench) fn outages(bench: &Bench) -> Outcome<Vec<Figure>> {
    let plan = OutagePlan::for_bench(bench);
    let site = &bench.site;
    let mut nats = NatsServer::start(site)?;
    let mut service = LoggingService::start(site, "outages")?;
    let rows = rows(site, 200 * plan.length)?;
    let agent = |name| nats.agent(real_time(), "outages", name);
    let _agents = [agent("a")?, agent("b")?];
    let mut measured: [OutageTimes; 4] = std::array::from_fn(|_| OutageTimes::default());
    for _ in 0..plan.rounds {
        for (kind, measured) in plan.kinds.iter().zip(&mut measured) {
            run(&mut nats, &mut service, &rows, plan.length, kind, measured)?;
        }
    }
    let [undisturbed, disturbed @ ..] = &measured;
    let mut figures = Vec::new();
    for (kind, outage) in plan.kinds.iter().skip(1).zip(disturbed) {
        for (index, name) in ["p99", "maximum"].into_iter().enumerate() {
            figures.push(lateness(
                kind,
                name,
                &outage.lateness[index],
                &undisturbed.lateness[index],
            ));
        }
        let latest = outage.delivery.iter().copied().fold(0.0, f64::max);
        figures.push(
            Figure::new(
                format!("server away {}: until the whole report", kind.name),
                Measure::median(&outage.delivery, "s"),
            )
            .target(format!("at most {DELIVERY} s"), latest <= DELIVERY)
            .remark("after the end of the run, or the server's return if that is later"),
        );
    }
    Ok(figures)
}

/// Send lateness with an outage, compared with undisturbed runs.
fn lateness(kind: &Outage, name: &str, with: &[f64], without: &[f64]) -> Figure {
    let ratio = pair_ratio(with, without);
    let (most, more) = BARS;
    let figure = Figure::new(
        format!("server away {}: send lateness, {name}", kind.name),
        Measure::median(with, "ms"),
    )
    .paired("undisturbed", Measure::median(without, "ms"), ratio);
    match name {
        "p99" => figure.target(
            format!("at most {most} times, or {more} ms more"),
            ratio <= most || median(with) - median(without) <= more,
        ),
        _ => figure.detail(),
    }
}

/// One run. All requests have arrived and have been answered, or the benchmark fails.
fn run(
    nats: &mut NatsServer<'_>,
    service: &mut LoggingService,
    rows: &Path,
    length: u64,
    kind: &Outage,
    measured: &mut OutageTimes,
) -> Outcome<()> {
    let duration = format!("{length}s");
    let options = ["--rate", RATE, "--duration", &duration, "--agents", "2"];
    let loading = nats.load(service, rows, "outages", &options)?;
    let loading = service.begun(loading)?;
    let begin = Instant::now();
    let wait = |until: u64| {
        let until = begin + Duration::from_secs(until);
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
    };
    let mut last = begin + Duration::from_secs(length);
    if let Some((away, back)) = kind.away {
        wait(away);
        nats.kill()?;
        wait(back);
        nats.restart()?;
        last = last.max(Instant::now());
    }
    let report = loading.finish(120)?;
    let whole = Instant::now();
    report.expect_all("ok")?;
    let (intended, seen) = (report.intended()?, service.take()?.len() as u64);
    check(intended == 200 * length && seen == intended, || {
        format!("{}: {intended} intended, {seen} seen", kind.name)
    })?;
    for (key, values) in ["p99", "max"].into_iter().zip(&mut measured.lateness) {
        values.push(report.number(&format!("send_lateness_ms/{key}"))?);
    }
    measured
        .delivery
        .push(whole.saturating_duration_since(last).as_secs_f64());
    Ok(())
}
