//! The instrument against theory: bookshops with a known service law, loaded by Poisson arrivals.
//!
//! The law's time includes reading and writing, so theory holds for the client's view. This benchmark is limited by
//! requests per second on the whole machine, not by the duration of a run. So all runs are parallel: hundreds of pairs
//! of a bookshop and a generator, with long service times. This makes the part outside the law small: the path of a
//! request through a busy machine. Both of a pair are on one core, so that a reply wakes its reader on the same core.
//! Other work on the machine delays them unless they have real-time priority.

use posthaste_stats::theory::{Md1, Mm1, Mm1k};
use posthaste_units::Span;

use crate::bench::pinned::number;
use crate::bench::result::Bounds;
use crate::bench::{Bench, Figure, Measure};
use crate::cores::real_time;
use crate::error::{Outcome, TaskError};
use crate::load::{LoadReport, Loading};
use crate::peers::generators::first_isbn;
use crate::site::Server;

/// Relaxation times of the queue that are not counted, because every run begins empty. Fewer with `--quick`.
const WARM_UP: (u64, u64) = (10, 1);
/// Seconds that a load may take beyond its schedule: start-up, warm-up, and hundreds of reports at once.
const PATIENCE: u64 = 300;
/// Runs of a law at a load. They differ only in their seeds.
struct Runs {
    law: &'static str,
    load: f64,
    service: Span,
    /// The limit of `mm1k`, after a colon. Empty for the others.
    room: &'static str,
    count: usize,
    /// Requests of each run, after its warm-up.
    requests: u64,
}

/// Short runs. Their intervals of `statistic` of the response times should contain theory.
struct Short {
    statistic: &'static str,
    laws: [Runs; 4],
}

/// In virtual time the median width is below 10 % of the mean from 4 k requests (M/D/1 at 0.5), 14 k (M/D/1 at 0.7), 17
/// k (M/M/1 at 0.5) and 55 k (M/M/1 at 0.7) on. For p99 it is from 32 k, 112 k, 76 k and 248 k on. The path of a
/// request adds 0.4 to 0.6 ms to every response time. That is small against p99, but two thirds of a standard error of
/// the mean of such long runs: intervals of the mean then contain theory in only 90 %. So the mean is tested in other
/// runs: shorter, with longer services.
const SHORT: [Short; 2] = [
    Short {
        statistic: "mean",
        laws: [
            runs("md1", 0.5, 100, 75, 8_600),
            runs("md1", 0.7, 42, 75, 30_000),
            runs("mm1", 0.5, 48, 75, 20_500),
            runs("mm1", 0.7, 20, 75, 64_000),
        ],
    },
    Short {
        statistic: "p99",
        laws: [
            runs("md1", 0.5, 66, 75, 34_000),
            runs("md1", 0.7, 27, 75, 118_000),
            runs("mm1", 0.5, 31, 75, 74_000),
            runs("mm1", 0.7, 13, 75, 258_000),
        ],
    },
];

/// Long runs near the limit. At 0.9 a service 1 % longer makes the response 9 % longer. Two standard errors of the mean
/// are 3 % of it at 440 k requests (M/D/1) and 1.45 M (M/M/1), of p99 at 2.8 M and 8.8 M. Here they have 2.7 M and 6 M
/// together.
const LONG: [Runs; 2] = [
    runs("md1", 0.9, 20, 120, 22_500),
    runs("mm1", 0.9, 20, 120, 50_000),
];

/// Limit of requests in the system. Requests beyond it get no reply.
const ROOM: u32 = 5;
const FULL: Runs = Runs {
    room: ":5",
    ..runs("mm1k", 0.9, 20, 24, 12_000)
};

const fn runs(law: &'static str, load: f64, service_ms: u64, count: usize, requests: u64) -> Runs {
    Runs {
        law,
        load,
        service: Span::from_millis(service_ms),
        room: "",
        count,
        requests,
    }
}

/// A bookshop and the generator that loads it.
struct Pair {
    _shop: Server,
    url: String,
    core: String,
    seed: String,
}

/// Results of queueing theory, in ms.
struct Theory {
    mean: f64,
    p99: f64,
}

impl Runs {
    fn name(&self) -> String {
        format!("{} at {}", self.law, self.load)
    }

    fn rate(&self) -> f64 {
        self.load / self.service.as_secs_f64()
    }

    fn length(&self, bench: &Bench) -> Span {
        let requests = bench.or_quick(self.requests, self.requests / 100);
        Span::from_secs_f64(number(requests) / self.rate())
    }

    fn warm_up(&self, bench: &Bench) -> Span {
        // Of M/M/1, the law with the largest variation of services.
        let relaxation = self.service.as_secs_f64() / (1.0 - self.load.sqrt()).powi(2);
        Span::from_secs_f64(relaxation) * bench.or_quick(WARM_UP.0, WARM_UP.1)
    }

    fn theory(&self) -> Outcome<Theory> {
        let (mean, p99) = match self.law {
            "mm1" => Mm1::new(self.load, self.service)
                .map(|law| (law.mean_sojourn(), law.sojourn_quantile(0.99))),
            _ => Md1::new(self.load, self.service)
                .map(|law| (law.mean_sojourn(), law.sojourn_quantile(0.99))),
        }
        .ok_or_else(|| TaskError::Failed(format!("no such queue: {}", self.name())))?;
        let ms = |span: Span| span.as_secs_f64() * 1000.0;
        Ok(Theory {
            mean: ms(mean),
            p99: ms(p99),
        })
    }

    /// Starts the bookshops, with seeds that no other runs have.
    fn open(&self, bench: &Bench, first_seed: usize) -> Outcome<Vec<Pair>> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let service = format!(
            "{}:{}us{}",
            self.law,
            self.service.as_nanos() / 1000,
            self.room
        );
        (0..bench.or_quick(self.count, 2))
            .map(|index| {
                let (core, seed) = (
                    (index % cores).to_string(),
                    (first_seed + index).to_string(),
                );
                let options = [
                    "--books",
                    "1",
                    "--cpus",
                    &core,
                    "--service",
                    &service,
                    "--seed",
                    &seed,
                ];
                let shop = bench.site.bookshop_on(real_time(), &options)?;
                let url = shop.url(&format!("/page/{}", first_isbn(&bench.site, &shop)?));
                Ok(Pair {
                    _shop: shop,
                    url,
                    core,
                    seed,
                })
            })
            .collect()
    }

    /// Starts the generators, one for each bookshop.
    fn load(&self, bench: &Bench, pairs: &[Pair]) -> Outcome<Vec<Loading>> {
        let rate = format!("{:.6}/s", self.rate());
        let warm_up = self.warm_up(bench);
        let length = seconds(self.takes(bench));
        let warm_up = seconds(warm_up);
        let connection = if self.room.is_empty() {
            "keep-alive"
        } else {
            "new"
        };
        pairs
            .iter()
            .map(|pair| {
                let options = [
                    pair.url.as_str(),
                    "--rate",
                    &rate,
                    "--arrivals",
                    "poisson",
                    "--warm-up",
                    &warm_up,
                    "--duration",
                    &length,
                    "--connection",
                    connection,
                    "--cpus",
                    &pair.core,
                    "--seed",
                    &pair.seed,
                ];
                bench.site.start_load(real_time(), &options)
            })
            .collect()
    }

    /// Run time of its generators.
    fn takes(&self, bench: &Bench) -> Span {
        self.warm_up(bench) + self.length(bench)
    }
}

/// The reports of all runs of these laws, made at the same time. Each run has a seed of its own.
fn side_by_side(bench: &Bench, laws: &[Runs]) -> Outcome<Vec<Vec<LoadReport>>> {
    // All shops first, because starting them would delay a running generator.
    let (mut seed, mut shops) = (0, Vec::new());
    for runs in laws {
        shops.push(runs.open(bench, seed)?);
        seed += runs.count;
    }
    let loading = laws
        .iter()
        .zip(&shops)
        .map(|(runs, pairs)| runs.load(bench, pairs))
        .collect::<Outcome<Vec<_>>>()?;
    let longest = laws.iter().map(|runs| runs.takes(bench)).max();
    let limit = longest.unwrap_or_default().as_nanos() / 1_000_000_000 + PATIENCE;
    // Waits for all before a failed one ends the others.
    let finished: Vec<Vec<_>> = loading
        .into_iter()
        .map(|runs| runs.into_iter().map(|run| run.finish(limit)).collect())
        .collect();
    finished
        .into_iter()
        .map(|runs| runs.into_iter().collect())
        .collect()
}

/// Coverage of theory by the intervals of many short runs, and the share of rejected requests.
pub(crate) fn coverage(bench: &Bench) -> Outcome<Vec<Figure>> {
    let mut figures = Vec::new();
    for Short { statistic, laws } in &SHORT {
        let reports = side_by_side(bench, laws)?;
        figures.extend(instrument(&reports)?);
        figures.extend(covered(statistic, laws, &reports)?);
    }
    for reports in side_by_side(bench, &[FULL])? {
        figures.push(turned_away(&reports)?);
    }
    Ok(figures)
}

/// Deviation of long runs near the limit from theory.
pub(crate) fn limit(bench: &Bench) -> Outcome<Vec<Figure>> {
    let mut figures = Vec::new();
    for runs in &LONG {
        let reports = side_by_side(bench, std::slice::from_ref(runs))?;
        figures.extend(instrument(&reports)?);
        for reports in &reports {
            figures.extend(near_the_limit(runs, reports)?);
        }
    }
    Ok(figures)
}

/// Outcomes of the requests, and the lateness of sending.
fn instrument(reports: &[Vec<LoadReport>]) -> Outcome<[Figure; 2]> {
    let all: Vec<&LoadReport> = reports.iter().flatten().collect();
    let (mut sent, mut ok, mut late) = (0, 0, 0.0);
    for report in &all {
        sent += report.intended()?;
        ok += report.outcome("ok");
        late += report.number("send_lateness_ms/mean")?;
    }
    let (count, late) = (all.len(), 1000.0 * late / all.len() as f64);
    let priority = ["ordinary", "real-time"][usize::from(!real_time().is_empty())];
    Ok([
        Figure::new(
            format!("all {count} runs: requests that were ok"),
            Measure::part(ok, sent, "requests"),
        )
        .detail(),
        Figure::new(
            format!("all {count} runs: mean lateness of sending"),
            Measure::new(late, "µs"),
        )
        .remark(format!("{priority} priority"))
        .detail(),
    ])
}

/// Share of runs with theory inside the interval, and the width of the interval. The target applies to the share over
/// all laws, because that of one law scatters by 2.5 %.
fn covered(statistic: &str, laws: &[Runs], reports: &[Vec<LoadReport>]) -> Outcome<Vec<Figure>> {
    let mut figures = Vec::new();
    let (mut all_hits, mut all_runs) = (0.0, 0);
    for (runs, reports) in laws.iter().zip(reports) {
        let (hits, own) = covered_by(runs, reports, statistic)?;
        all_hits += hits;
        all_runs += reports.len() as u64;
        figures.extend(own);
    }
    let share = 100.0 * all_hits / number(all_runs);
    figures.push(
        Figure::new(
            format!("all laws, {statistic}: intervals that hold theory"),
            Measure::new(share, "%").n(all_runs),
        )
        .target("93 to 97 %", (93.0..=97.0).contains(&share)),
    );
    Ok(figures)
}

/// The same for one law and `statistic`: the number of hits, and the figures.
fn covered_by(runs: &Runs, reports: &[LoadReport], statistic: &str) -> Outcome<(f64, [Figure; 3])> {
    let theory = runs.theory()?;
    let theory = if statistic == "mean" {
        theory.mean
    } else {
        theory.p99
    };
    let (mut hits, mut below) = (0.0, 0);
    let (mut values, mut widths, mut sent) = (Vec::new(), Vec::new(), 0);
    for report in reports {
        let value = report.number(&format!("response_time_ms/{statistic}"))?;
        values.push(value);
        sent += report.intended()?;
        // A run too short for an interval covers nothing.
        let Some((low, high)) = report.interval(&format!("response_time_ms/{statistic}_interval"))
        else {
            widths.push(f64::INFINITY);
            continue;
        };
        hits += f64::from(u8::from((low..=high).contains(&theory)));
        below += u32::from(high < theory);
        widths.push(100.0 * (high - low) / value);
    }
    let (name, count) = (runs.name(), reports.len() as u64);
    let share = Measure::new(100.0 * hits / number(count), "%").n(count);
    let width = Measure::median(&widths, "%");
    let narrow = width.value < 10.0;
    let requests = sent / count;
    Ok((
        hits,
        [
            Figure::new(
                format!("{name}, {statistic}: intervals that hold theory"),
                share,
            )
            .remark(format!("{below} of the others lie below"))
            .detail(),
            Figure::new(
                format!("{name}, {statistic}: mean of the runs"),
                Measure::new(mean(&values), "ms").n(count),
            )
            .peer("theory", Measure::new(theory, "ms"))
            .detail(),
            Figure::new(
                format!("{name}, {statistic}: width of the intervals"),
                width,
            )
            .target("under 10 %", narrow)
            .remark(format!("{requests} requests a run")),
        ],
    ))
}

/// Means of mean and p99 over long runs.
fn near_the_limit(runs: &Runs, reports: &[LoadReport]) -> Outcome<Vec<Figure>> {
    let theory = runs.theory()?;
    let sent = reports
        .iter()
        .map(LoadReport::intended)
        .sum::<Outcome<u64>>()?;
    let mut figures = Vec::new();
    for (statistic, theory) in [("mean", theory.mean), ("p99", theory.p99)] {
        let values = reports
            .iter()
            .map(|report| report.number(&format!("response_time_ms/{statistic}")))
            .collect::<Outcome<Vec<_>>>()?;
        let measured = mean(&values);
        let off = 100.0 * (measured / theory - 1.0);
        let squares: f64 = values.iter().map(|value| (value - measured).powi(2)).sum();
        let count = values.len() as f64;
        let error = 1.96 * (squares / (count - 1.0) / count).sqrt();
        figures.push(
            Figure::new(
                format!("{}, {statistic} of long runs", runs.name()),
                Measure::new(measured, "ms")
                    .between(measured - error, measured + error, Bounds::Interval95)
                    .n(values.len() as u64),
            )
            .peer("theory", Measure::new(theory, "ms"))
            .target("within 3 %", off.abs() <= 3.0)
            .remark(format!("{sent} requests")),
        );
    }
    Ok(figures)
}

/// The share of requests that find the system full.
///
/// The limit is the kernel's accept queue. Each request therefore needs a connection of its own, and a rejected request
/// is not answered.
fn turned_away(reports: &[LoadReport]) -> Outcome<Figure> {
    let theory = Mm1k::new(FULL.load, FULL.service, ROOM)
        .ok_or_else(|| TaskError::Failed("no such queue".into()))?
        .blocking();
    let lost: u64 = reports
        .iter()
        .map(|report| report.outcome("connect-aborted") + report.outcome("unanswered"))
        .sum();
    let sent = reports
        .iter()
        .map(LoadReport::intended)
        .sum::<Outcome<u64>>()?;
    let share = number(lost) / number(sent);
    let off = 100.0 * (share / theory - 1.0);
    Ok(Figure::new(
        format!("M/M/1/{ROOM} at {}: share rejected", FULL.load),
        Measure::new(share, "").n(sent),
    )
    .peer("theory", Measure::new(theory, ""))
    .target("within 5 %", off.abs() <= 5.0))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A span as the value of an option.
fn seconds(span: Span) -> String {
    format!("{:.3}s", span.as_secs_f64())
}
