//! How evenly requests leave: seen by a server that reads the kernel's receive stamps.

use crate::bench::pinned::server;
use crate::bench::{Bench, Row, median};
use crate::peers::generators::get;
use crate::trouble::{Outcome, Trouble, check};

/// Constant arrivals at 1,000/s: coefficient of variation of the intervals, and send lateness.
///
/// A virtual machine may lose its processor for tens of milliseconds, which one long run would
/// show and nothing else: the median of many short runs is what the generator does.
pub(crate) fn arrivals(bench: &Bench) -> Outcome<Vec<Row>> {
    let runs: Vec<(f64, f64)> = (0..bench.or_quick(15, 3))
        .map(|_| short_run(bench))
        .collect::<Outcome<_>>()?;
    let variations: Vec<f64> = runs.iter().map(|(variation, _)| *variation).collect();
    let latenesses: Vec<f64> = runs.iter().map(|(_, lateness)| *lateness).collect();
    let told = |values: &[f64], digits: usize, unit: &str| {
        let (low, high) = values
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
                (low.min(*value), high.max(*value))
            });
        let middle = median(values);
        let count = values.len();
        format!(
            "median {middle:.digits$}{unit} of {count} runs ({low:.digits$} to {high:.digits$})"
        )
    };
    let (variation, lateness) = (median(&variations), median(&latenesses));
    Ok(vec![
        Row::judged(
            "intervals at 1,000/s, coefficient of variation (kernel receive stamps)",
            told(&variations, 3, ""),
            "at most 0.05",
            variation <= 0.05,
        ),
        Row::judged(
            "send lateness p99",
            told(&latenesses, 1, " µs"),
            "at most 100 µs",
            lateness <= 100.0,
        ),
    ])
}

/// Two seconds at 1,000/s: the variation of the intervals, and p99 of the lateness in µs.
fn short_run(bench: &Bench) -> Outcome<(f64, f64)> {
    let observer = bench
        .site
        .script_on(server(), "arrivals", "peers/arrivals/server.py")?;
    let report = bench.load(
        &observer.url("/"),
        &["--rate", "1000/s", "--duration", "2s"],
        60,
    )?;
    report.expect_all("ok")?;
    let intervals: Vec<f64> = get(&bench.site, &observer, "/intervals")?
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    check(intervals.len() as u64 + 1 == report.intended()?, || {
        format!(
            "the observer saw {} requests of {}",
            intervals.len() + 1,
            report.outcomes()
        )
    })?;
    let variation = coefficient_of_variation(&intervals)
        .ok_or_else(|| Trouble::Failed("too few intervals".into()))?;
    let lateness = report.number("send_lateness_ms/p99")? * 1000.0;
    Ok((variation, lateness))
}

/// Standard deviation over mean; `None` for fewer than two values.
fn coefficient_of_variation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::coefficient_of_variation;

    #[test]
    fn even_intervals_do_not_vary() {
        assert_eq!(coefficient_of_variation(&[2.0, 2.0, 2.0]), Some(0.0));
        let varying = coefficient_of_variation(&[1.0, 3.0]).expect("two values");
        assert!((varying - 2.0_f64.sqrt() / 2.0).abs() < 1e-12);
        assert_eq!(coefficient_of_variation(&[1.0]), None);
    }
}
