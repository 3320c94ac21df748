//! wsqos/lookups-2026: lookups per second against the number of offers, by design.

use posthaste_draw::{Axis, Chart, Point, Series, Unit};
use posthaste_units::Span;

use super::PAPER;
use super::lookups::{self, DESIGNS, QUESTIONS, curve};
use crate::check::Check;
use crate::figure::{Figure, Plot};
use crate::records::Records;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/lookups-2026",
    title: "lookups against the number of offers",
    claim: "Beyond the thesis: an index in memory, sorted by price, finds the cheapest adequate offer of a hundred thousand in under a microsecond, whatever is asked; comparing all of them, or asking a database for each request, does not.",
    paper: PAPER,
    budget: Span::from_secs(30),
    study: &lookups::STUDY,
    plot,
    checks,
    differs: "Lookups in one process on one core, without HTTP: what the designs differ in and nothing else. SQLite has the offers in a file of its own with an index that covers the question, and its answer is a document that has to be read, as it had to be in the thesis. One lookup is timed by itself, so that each of its times contains some 20 ns of the clock.",
};

/// With so many offers the goals are stated.
const MANY: f64 = 100_000.0;

fn plot(records: &Records) -> Vec<Plot> {
    let chart = |(question, _): (&'static str, _)| {
        let x = Axis::log("offers", Unit::Count);
        let y = Axis::log("lookups per second", Unit::PerSecond);
        let mut chart = Chart::new(
            format!("The cheapest adequate offer, bounds: {question}"),
            x,
            y,
        );
        chart.series = DESIGNS
            .iter()
            .map(|design| {
                let points = curve(records, design, question, "rate_per_s");
                Series::line(*design, points.into_iter().map(|(x, y)| Point::new(x, y)))
            })
            .collect();
        Plot::Chart(chart)
    };
    QUESTIONS.into_iter().map(chart).collect()
}

fn checks(records: &Records) -> Vec<Check> {
    let at = |design: &str, question: &str, column: &str| {
        let curve = curve(records, design, question, column);
        curve
            .iter()
            .find(|place| place.0 == MANY)
            .map_or(f64::NAN, |place| place.1)
    };
    let worst = |column| QUESTIONS.map(|(question, _)| at("index", question, column));
    let slowest = worst("rate_per_s")
        .into_iter()
        .fold(f64::INFINITY, f64::min);
    let latest = worst("p99_us").into_iter().fold(0.0, f64::max);
    let mut checks = vec![Check::claim(
        slowest >= 5e5 && latest <= 20.0,
        format!(
            "Of 100,000 offers ours finds the best {:.0} k times a second with the least favourable bounds, 99 of 100 within {latest:.1} µs (wanted: 500 k/s, 20 µs).",
            slowest / 1e3
        ),
    )];
    for (question, times) in [("typical", 4.0), ("selective", 10.0)] {
        let [index, _, sql] = DESIGNS.map(|design| at(design, question, "rate_per_s"));
        checks.push(Check::claim(
            index >= times * sql,
            format!("With {question} bounds that is {:.0} times what SQLite does when it is asked for each request ({:.0} k/s; wanted: {times:.0} times).", index / sql, sql / 1e3),
        ));
    }
    let found = |design: &str, question: &str| {
        at(design, question, "found") / at(design, question, "lookups")
    };
    let differ = QUESTIONS.into_iter().map(|(question, _)| {
        let [index, walk, sql] = DESIGNS.map(|design| found(design, question));
        (index - walk).abs().max((index - sql).abs())
    });
    let differ = differ.fold(0.0, f64::max);
    checks.push(Check::instrument(
        differ <= 0.05,
        format!("The three designs find an offer equally often: their shares differ by {:.1} points at most.", 100.0 * differ),
    ));
    checks
}
