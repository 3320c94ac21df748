//! wsqos/lookups-2026: lookups per second against the number of offers, by design.

use posthaste_draw::{Axis, Chart, Point, Series, Unit};
use posthaste_study::{Check, Figure, NOISE, Plot, Records, least, most};
use posthaste_units::Span;

use super::designs::{DESIGNS, POSTGRES};
use super::lookups::{self, NONE, QUESTIONS, curve};
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/lookups-2026",
    title: "lookups against the number of offers",
    claim: "Beyond the thesis: an index in memory, sorted by price, finds the cheapest adequate offer of a hundred thousand in under a microsecond, for any requirements. A comparison of all offers, or a database query for each request, does not.",
    paper: THESIS,
    budget: Span::from_secs(30),
    study: &lookups::STUDY,
    plot,
    checks,
    differs: include_str!("lookups_2026.md").trim_ascii(),
};

/// Number of offers for which the goals are stated.
const MANY: f64 = 100_000.0;

/// Goals: minimum speed of the index as a multiple of a database's.
const BARS: [(&str, &str, f64); 4] = [
    ("typical", "SQLite", 4.0),
    ("selective", "SQLite", 10.0),
    ("typical", POSTGRES, 10.0),
    ("selective", POSTGRES, 10.0),
];

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
            .filter(|series| !series.points.is_empty())
            .collect();
        if records
            .parameters()
            .get(POSTGRES)
            .is_some_and(|name| name == NONE)
        {
            let note = "PostgreSQL is not measured: POSTHASTE_POSTGRES names none.";
            chart.notes.push(note.to_owned());
        }
        Plot::Chart(chart)
    };
    QUESTIONS.into_iter().map(chart).collect()
}

fn checks(records: &Records) -> Vec<Check> {
    let at = |design: &str, question: &str, column: &str| {
        let curve = curve(records, design, question, column);
        curve
            .iter()
            .find(|point| point.0 == MANY)
            .map_or(f64::NAN, |point| point.1)
    };
    let worst = |column| QUESTIONS.map(|(question, _)| at("index", question, column));
    let (slowest, latest) = (least(worst("rate_per_s")), most(worst("p99_us")));
    let mut checks = vec![Check::goal(
        slowest >= 5e5 && latest <= 20.0,
        format!(
            "Of 100,000 offers ours finds the best {:.0} k times a second with the least favourable bounds, 99 of 100 within {latest:.1} µs (wanted: 500 k/s, 20 µs).",
            slowest / 1e3
        ),
    ).because(NOISE)];
    for (question, design, times) in BARS {
        let [index, database] = ["index", design].map(|design| at(design, question, "rate_per_s"));
        if database.is_nan() {
            continue;
        }
        checks.push(Check::goal(
            index >= times * database,
            format!("With {question} bounds that is {:.0} times what {design} does with a query for each request ({:.1} k/s; wanted: {times:.0} times).", index / database, database / 1e3),
        ));
    }
    let rows = || records.table("answers").rows();
    let sum = |column| rows().map(|row| row.number(column)).sum::<f64>();
    let (lookups, same) = (sum("asked"), sum("as the index"));
    checks.push(Check::instrument(
        same == lookups && lookups > 0.0,
        format!("Each design got each question of each type: {same:.0} of {lookups:.0} answers are of the same price as the index's."),
    ));
    checks
}
