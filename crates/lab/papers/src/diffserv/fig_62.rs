//! wsqos/fig-62: cost of the proxy.

use posthaste_draw::{Axis, Chart, Point, Series, TopAxis, Unit};
use posthaste_study::{Check, Figure, MEDIANS, NOISE, Plot, Records};
use posthaste_units::Span;

use super::marking_cost::{self, MARKING, PLAIN, WHOS};
use crate::planned::THESIS;
use crate::testbed::curves::reservations;
use crate::testbed::{instrument, sweep};

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-62",
    title: "cost of the proxy",
    claim: "Up to 50 requests a second the proxy costs nothing. Above that rate it is overloaded.",
    paper: THESIS,
    budget: Span::from_secs(40),
    study: &marking_cost::STUDY,
    plot,
    checks,
    differs: include_str!("fig_62.md").trim_ascii(),
};

/// Highest rate without a cost of the thesis's proxy, requests a second.
const THEIRS: f64 = 50.0;

fn plot(records: &Records) -> Vec<Plot> {
    let x = Axis::linear("request rate / capacity of the gateway", Unit::Count);
    let y = Axis::linear("throughput", Unit::PerSecond);
    let mut chart = Chart::new(
        "Throughput without a gateway, with it, and with marks",
        x,
        y,
    );
    chart.top = Some(TopAxis {
        label: "the thesis's request rate".to_owned(),
        unit: Unit::PerSecond,
        factor: THEIRS,
        offset: 0.0,
    });
    let series = |who: &str| {
        let rows = records.table("points").rows();
        let points = rows.filter(|row| row.text("who") == who).map(|row| {
            let [middle, low, high] =
                ["", " low", " high"].map(|end| row.number(&format!("throughput_per_s{end}")));
            Point::new(row.number("rate_ratio"), middle).with_interval(low, high)
        });
        Series::line(who, points)
    };
    chart.series = WHOS.map(series).into();
    let capacity = records.number("capacity");
    chart.notes = vec![
        format!("The gateway without marks: {capacity:.0}/s."),
        MEDIANS.to_owned(),
    ];
    chart.notes.extend(reservations(records));
    vec![Plot::Chart(chart)]
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::accounting(records);
    let [cost, low, high] = ["", " low", " high"]
        .map(|end| 100.0 * records.number(&format!("cost with marks over without{end}")));
    // On a core of its own, 97 % of the throughput means this ratio of CPU times.
    checks.push(Check::claim(
        cost <= 100.0 / 0.97,
        format!(
            "Marking costs next to nothing: a reply takes {cost:.1} % of the processor time that it takes without marks, both measured side by side ({low:.1} to {high:.1}; 103.1 allowed, 97 % of the throughput)."
        ),
    ).because(NOISE));
    let followed = |who: &str| {
        let places = sweep::places(records, who, "throughput_per_s");
        let capacity = records.number("capacity");
        let follows = |(load, answered): &&(f64, f64)| *answered >= 0.97 * load * capacity;
        let last = places.iter().filter(follows).map(|(load, _)| *load);
        last.fold(f64::NAN, f64::max)
    };
    let [plain, marking] = [PLAIN, MARKING].map(followed);
    checks.push(Check::claim(
        marking >= plain,
        format!(
            "There is no knee before the plain gateway's: it answers all up to {plain:.2} of its capacity, and with marks up to {marking:.2} (the thesis's proxy was overloaded above 50/s)."
        ),
    ).because(NOISE));
    checks
}
