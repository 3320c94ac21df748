//! Shared parts of the pictures and claims about the QoSProxy on a DiffServ network.

use posthaste_draw::{Axis, Chart, Point, Series, Unit};
use posthaste_study::{Check, MEDIANS, NOISE, Plot, Records, estimate, least, most};

use super::qos_proxy::{BACKGROUNDS, MarkingPoint};
use super::selection::RATES;
use crate::testbed::instrument;

/// Differences of every figure of this study.
pub(super) const DIFFERS: &str = include_str!("diffserv_differs.md").trim_ascii();

/// Rate from which AF11's guarantee, 32 replies a second, is not sufficient.
pub(super) const PAST: f64 = 40.0;

/// [`BACKGROUNDS`] in the format of titles.
const NAMES: [&str; BACKGROUNDS.len()] = ["800", "1,024"];

/// Replies a second of the runs with this marking, background and rate.
fn replies(records: &Records, marks: MarkingPoint, background: u64, rate: f64) -> Vec<f64> {
    let rows = records.table("runs").rows();
    rows.filter(|row| {
        row.text("marks") == marks.name()
            && row.number("background") == background as f64
            && row.number("rate") == rate
    })
    .map(|row| row.number("replies_per_s"))
    .collect()
}

/// Median of the replies a second.
pub(super) fn at(records: &Records, marks: MarkingPoint, background: u64, rate: f64) -> f64 {
    estimate(&replies(records, marks, background, rate)).median
}

/// Mean of these medians over the rates above a class's guarantee.
pub(super) fn past(records: &Records, marks: MarkingPoint, background: u64) -> f64 {
    let rates = RATES.into_iter().filter(|rate| *rate >= PAST);
    let medians: Vec<f64> = rates
        .map(|rate| at(records, marks, background, rate))
        .collect();
    medians.iter().sum::<f64>() / medians.len() as f64
}

/// Replies with and without marks, with the background at this index of [`BACKGROUNDS`].
pub(super) fn gain_plot<const PLACE: usize>(records: &Records) -> Vec<Plot> {
    let marks = [MarkingPoint::Nobody, MarkingPoint::Gateway];
    over_rate(records, "Replies with and without marks", &marks, PLACE)
}

/// Checks of the gain from marks.
pub(super) fn gain_checks<const PLACE: usize>(records: &Records) -> Vec<Check> {
    let mut checks = accounted(records);
    checks.push(gains(records, BACKGROUNDS[PLACE]));
    checks
}

/// Replies with marks compared with the ideal and with none.
pub(super) fn ideal_plot<const PLACE: usize>(records: &Records) -> Vec<Plot> {
    let title = "Marks by the gateway and classes by address";
    over_rate(records, title, &MarkingPoint::ALL, PLACE)
}

/// Checks of the difference from the ideal.
pub(super) fn ideal_checks<const PLACE: usize>(records: &Records) -> Vec<Check> {
    let mut checks = accounted(records);
    checks.push(ideal(records, BACKGROUNDS[PLACE]));
    checks
}

/// Replies over requests with one background.
fn over_rate(records: &Records, title: &str, marks: &[MarkingPoint], index: usize) -> Vec<Plot> {
    let background = BACKGROUNDS[index];
    let title = format!("{title}, others sending {} kbyte/s", NAMES[index]);
    let x = Axis::linear("request rate", Unit::PerSecond);
    let y = Axis::linear("replies", Unit::PerSecond);
    let mut chart = Chart::new(title, x, y);
    let series = |marks: &MarkingPoint| {
        let point = |rate: f64| {
            let found = estimate(&replies(records, *marks, background, rate));
            Point::new(rate, found.median).with_interval(found.low, found.high)
        };
        Series::line(marks.name(), RATES.map(point))
    };
    chart.series = marks.iter().map(series).collect();
    let rows = records.table("runs").rows();
    let late = most(rows.map(|row| row.number("witness_ms")));
    chart.notes = vec![
        MEDIANS.to_owned(),
        format!(
            "A witness was woken up to {late:.0} ms late: where that is many, replies waited for processors."
        ),
    ];
    vec![Plot::Chart(chart)]
}

/// Checks that every request has an outcome, that only the router dropped packets, and that marks select their class.
fn accounted(records: &Records) -> Vec<Check> {
    let rows: Vec<_> = records.table("runs").rows().collect();
    let lost: f64 = rows.iter().map(|row| row.number("lost")).sum();
    let mut checks = vec![
        instrument::identity(records),
        Check::instrument(
            lost == 0.0,
            format!("No packet was lost but by the router: {lost:.0} of all runs were."),
        ),
    ];
    for marks in MarkingPoint::ALL {
        let own_rows = rows.iter().filter(|row| row.text("marks") == marks.name());
        let (af, rest) = own_rows.fold((0.0, 0.0), |(af, rest), row| {
            (af + row.number("af_bytes"), rest + row.number("rest_bytes"))
        });
        let share = af / (af + rest);
        let holds = match marks {
            MarkingPoint::Nobody => share == 0.0,
            MarkingPoint::Gateway => share > 0.95,
            MarkingPoint::Address => share == 1.0,
        };
        checks.push(Check::instrument(
            holds,
            format!(
                "{}: {:.1} % of the replies' bytes passed in the class of AF11, by the router's counters.",
                marks.name(),
                100.0 * share
            ),
        ));
    }
    checks
}

/// The gain, compared with the thesis's.
fn gains(records: &Records, background: u64) -> Check {
    let gain = |rate: f64| {
        let value = |marks| at(records, marks, background, rate);
        value(MarkingPoint::Gateway) - value(MarkingPoint::Nobody)
    };
    let gains = RATES.map(gain);
    let (worst, best) = (least(gains), most(gains));
    Check::claim(
        best > 0.0 && worst > -0.5,
        format!(
            "Marked replies are better off almost everywhere: from {worst:+.1} to {best:+.1} replies a second (the thesis: at best +2.8, with 800 kbyte/s at 60/s)."
        ),
    ).because(NOISE)
}

/// Checks that the gateway's marks equal classes by address.
fn ideal(records: &Records, background: u64) -> Check {
    let [ours, ideal] = [MarkingPoint::Gateway, MarkingPoint::Address]
        .map(|marks| past(records, marks, background));
    let apart = ours / ideal - 1.0;
    Check::claim(
        apart.abs() <= 0.02,
        format!(
            "The gateway's marks are worth what classes by address are: {ours:.1} and {ideal:.1} replies a second past the guarantee, {:+.1} % apart (2 % allowed).",
            100.0 * apart
        ),
    ).because("the handshake of a connection is not marked, and on a busy machine the gateway is late.")
}
