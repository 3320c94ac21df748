//! Shared parts of the pictures and claims about sclient: axes, curves, and the checks of the instrument.

use posthaste_draw::{Axis, Chart, Point, Series, TopAxis, Unit};
use posthaste_study::{COMPLETE_REPLIES, Check, MEDIANS, Records, estimate, most};

use super::paper;
use super::sclient::{Mix, OVERLOADED, places};
use crate::testbed::curves::{capacity, plateau, reservations, series};

/// Differences of every figure of this study.
pub(super) const DIFFERS: &str = include_str!("sclient_differs.md").trim_ascii();

/// A chart over the request rate as a multiple of the capacity without compression, with the paper's axis above.
pub(super) fn over_rate(
    records: &Records,
    title: &str,
    y: Axis,
    mixes: &[Mix],
    quantity: &str,
) -> Chart {
    let x = Axis::linear("request rate / capacity without compression", Unit::Count);
    let mut chart = Chart::new(title, x, y);
    chart.top = Some(TopAxis {
        label: "the paper's request rate".to_owned(),
        unit: Unit::PerSecond,
        factor: paper::NONE_CAPACITY,
        offset: 0.0,
    });
    let none = capacity(records, Mix::None.name());
    let series = |mix: &Mix| series(records, mix.name(), quantity, none);
    chart.series = mixes.iter().map(series).collect();
    let has_capacity = |mix: &&Mix| **mix != Mix::Dynamic;
    chart.notes = mixes
        .iter()
        .filter(has_capacity)
        .map(|mix| in_words(records, *mix))
        .collect();
    chart.notes.push(MEDIANS.to_owned());
    chart.notes.push(COMPLETE_REPLIES.to_owned());
    chart.notes.push(lateness(records));
    chart.notes.extend(reservations(records));
    chart
}

/// The paper's curve through these points: (request rate, value).
pub(super) fn of_paper(mix: Mix, places: &[(f64, f64)]) -> Series {
    let points = places
        .iter()
        .map(|(rate, value)| Point::new(rate / paper::NONE_CAPACITY, *value));
    Series::line(mix.name(), points).of_paper()
}

fn in_words(records: &Records, mix: Mix) -> String {
    let number = |end: &str| records.number(&format!("capacity {}{end}", mix.name()));
    let (low, high) = (number(" low"), number(" high"));
    format!(
        "{}: capacity here {:.0}/s ({low:.0} to {high:.0}).",
        mix.name(),
        number("")
    )
}

/// Lateness of the generator on the core that it shares with the origin.
fn lateness(records: &Records) -> String {
    let rows = records.table("runs").rows();
    let p99: Vec<f64> = rows.map(|row| row.number("lateness_p99_ms")).collect();
    let found = estimate(&p99);
    let worst = most(p99.iter().copied());
    format!(
        "The generator sent within {:.2} ms of the due time, 99 of 100, in the median run ({worst:.1} ms in the worst); response times count from when requests were due.",
        found.median
    )
}

/// Median over the overloaded points.
pub(super) fn overloaded(records: &Records, mix: Mix, column: &str) -> f64 {
    plateau(&places(records, mix, column), OVERLOADED - 0.02)
}

/// Checks that clients that ask for compression get it at any load.
pub(super) fn no_asker_denied(records: &Records) -> Check {
    let rows = || {
        records
            .table("runs")
            .rows()
            .filter(|row| row.text("who") == Mix::All.name())
    };
    let denied: f64 = rows().map(|row| row.number("denied")).sum();
    let served: f64 = rows().map(|row| row.number("ok")).sum();
    Check::claim(
        denied == 0.0 && served > 0.0,
        format!(
            "Every client that asks is served compressed, whatever the load: {served:.0} replies, {denied:.0} of them plain."
        ),
    )
}
