//! Regularity of sending, from the kernel's receive timestamps at a server.
//!
//! A pause of the machine of 2 ms makes the variation of a thousand intervals 0.08. The generator is therefore judged
//! by the runs without a pause of its core, as reported by a witness. The values of all runs are shown too. The
//! generator's own lateness is no excuse.

use posthaste_stats::goodness::{coefficient_of_variation, exponential_gaps};
use posthaste_units::Span;

use crate::bench::pinned::number;
use crate::bench::{Bench, Figure, Measure};
use crate::cores::{generator, server};
use crate::error::{Outcome, TaskError, check};
use crate::load::LoadReport;
use crate::peers::generators::get;
use crate::site::Server;

/// Number of gaps for the test of Poisson arrivals.
const POISSON_GAPS: usize = 100_000;

/// A second at 1,000/s.
struct ScheduledRun {
    /// Variation of the intervals between arrivals.
    variation: f64,
    /// p99, in µs.
    lateness: f64,
    /// Arrival times of the first and the last request.
    arrived: (u64, u64),
}

/// Constant arrivals at 1,000/s, their variation and lateness; Poisson arrivals against theory.
pub(crate) fn arrivals(bench: &Bench) -> Outcome<Vec<Figure>> {
    let witness = bench.watch(&[0], 200)?;
    let seconds: Vec<Outcome<ScheduledRun>> =
        (0..bench.or_quick(60, 5)).map(|_| second(bench)).collect();
    let (runs, failed): (Vec<_>, Vec<_>) = seconds.into_iter().partition(Result::is_ok);
    let runs: Vec<ScheduledRun> = runs.into_iter().flatten().collect();
    let pauses = witness.end();
    let quiet: Vec<&ScheduledRun> = runs
        .iter()
        .filter(|run| {
            let (first, last) = run.arrived;
            !pauses.hit(first, last)
        })
        .collect();
    let all: Vec<&ScheduledRun> = runs.iter().collect();
    let variation = |runs: &[&ScheduledRun]| {
        Measure::median(
            &runs.iter().map(|run| run.variation).collect::<Vec<_>>(),
            "",
        )
    };
    let lateness = |runs: &[&ScheduledRun]| {
        Measure::median(
            &runs.iter().map(|run| run.lateness).collect::<Vec<_>>(),
            "µs",
        )
    };
    let (even, late) = (variation(&quiet), lateness(&quiet));
    let (is_even, is_late) = (even.value <= 0.05, late.value > 100.0);
    let (intervals, lag) = (
        "1,000/s: coefficient of variation of intervals",
        "1,000/s: send lateness p99",
    );
    let mut figures = vec![
        pauses.figure(),
        Figure::new(
            "runs without a pause of the generator's core",
            Measure::part(quiet.len() as u64, runs.len() as u64, "runs"),
        )
        .remark(format!(
            "{} more ended with requests that failed{}",
            failed.len(),
            first_trouble(&failed)
        ))
        .detail(),
        Figure::new(format!("{intervals}, runs without a pause"), even)
            .target("at most 0.05", is_even),
        Figure::new(format!("{intervals}, all runs"), variation(&all)),
        Figure::new(format!("{lag}, runs without a pause"), late)
            .target("at most 100 µs", !is_late),
        Figure::new(format!("{lag}, all runs"), lateness(&all)),
    ];
    // The results so far are reported, even if the Poisson test fails.
    match poisson(bench) {
        Ok(test) => figures.extend(test),
        Err(error) => figures.push(
            Figure::sentence("Poisson arrivals are measured")
                .target("yes", false)
                .remark(error.to_string()),
        ),
    }
    Ok(figures)
}

/// The reason of the first failed run, in brackets.
fn first_trouble(failed: &[Outcome<ScheduledRun>]) -> String {
    let error = failed.iter().find_map(|run| run.as_ref().err());
    error.map_or_else(String::new, |error| format!(" (the first: {error})"))
}

/// A second at 1,000/s.
fn second(bench: &Bench) -> Outcome<ScheduledRun> {
    let observer = observe(bench)?;
    let options = ["--rate", "1000/s", "--duration", "1s"];
    let report = bench.load(&observer.url("/"), &options, 60)?;
    let stamps = stamps(bench, &observer, &report)?;
    let variation = coefficient_of_variation(&gaps(&stamps))
        .ok_or_else(|| TaskError::Failed("too few intervals".into()))?;
    Ok(ScheduledRun {
        variation,
        lateness: report.number("send_lateness_ms/p99")? * 1000.0,
        arrived: (stamps[0], stamps[stamps.len() - 1]),
    })
}

/// Poisson arrivals from several generators, each with its own observer. Tests if all gaps together are exponential.
///
/// Two requests cannot leave at once. At 1,000/s one gap in a hundred is shorter than the sending of a request, which
/// the test would detect at this size. At 200/s it does not.
fn poisson(bench: &Bench) -> Outcome<[Figure; 2]> {
    let (generators, rate) = (5, 200);
    let wanted = bench.or_quick(POISSON_GAPS, POISSON_GAPS / 50) / generators;
    // Four standard deviations more than wanted.
    let due = wanted as f64 + 4.0 * (wanted as f64).sqrt();
    let (pace, length) = (format!("{rate}/s"), format!("{:.3}s", due / number(rate)));
    let mut under_way = Vec::new();
    for seed in 0..generators {
        let observer = observe(bench)?;
        let (url, seed) = (observer.url("/"), seed.to_string());
        let options = [
            url.as_str(),
            "--arrivals",
            "poisson",
            "--rate",
            &pace,
            "--duration",
            &length,
            "--seed",
            &seed,
        ];
        under_way.push((observer, bench.site.start_load(generator(), &options)?));
    }
    let mut all = Vec::new();
    for (observer, loading) in under_way {
        let report = loading.finish(1200)?;
        let stamps = stamps(bench, &observer, &report)?;
        all.extend(gaps(&stamps).into_iter().take(wanted));
    }
    let mean = Span::from_nanos(1_000_000_000 / rate);
    let test = exponential_gaps(&all, mean)
        .ok_or_else(|| TaskError::Failed("no gap between arrivals".into()))?;
    let figure = |name: &str, value| {
        let name =
            format!("Poisson at {rate}/s, {generators} generators: Anderson-Darling, {name}");
        Figure::new(name, Measure::new(value, "").n(all.len() as u64))
    };
    Ok([
        figure("p", test.p_value).target("above 0.05", test.p_value > 0.05),
        figure("A²", test.statistic).detail(),
    ])
}

fn observe(bench: &Bench) -> Outcome<Server> {
    bench.site.script_on(
        server(),
        "arrivals",
        "conformance/programs/arrivals/server.py",
    )
}

/// Arrival times of the requests, in ns, sorted.
fn stamps(bench: &Bench, observer: &Server, report: &LoadReport) -> Outcome<Vec<u64>> {
    report.expect_all("ok")?;
    let stamps: Vec<u64> = get(&bench.site, observer, "/stamps")?
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    let (seen, outcomes) = (stamps.len(), report.outcomes());
    check(seen as u64 == report.intended()?, || {
        format!("the observer saw {seen} requests of {outcomes}")
    })?;
    Ok(stamps)
}

fn gaps(stamps: &[u64]) -> Vec<Span> {
    stamps
        .windows(2)
        .map(|pair| Span::from_nanos(pair[1] - pair[0]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::gaps;
    use posthaste_units::Span;

    #[test]
    fn gaps_lie_between_stamps() {
        let spans = [2, 0, 5].map(Span::from_nanos);
        assert_eq!(gaps(&[1, 3, 3, 8]), spans);
        assert_eq!(gaps(&[1]), []);
    }
}
