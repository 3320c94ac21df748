//! Shared parts of the pictures and claims about the thesis's brokers.

use posthaste_draw::{Axis, Chart, TopAxis, Unit};
use posthaste_study::{COMPLETE_REPLIES, Check, MEDIANS, NOISE, Records, least, most};

use super::brokers::{OURS, OVERLOADED};
use crate::testbed::curves::{capacity, plateau, reservations, series};
use crate::testbed::sweep;

/// Differences of every figure of this study.
pub(super) const DIFFERS: &str = include_str!("broker_differs.md").trim_ascii();

/// The thesis's capacity of a design, in requests a second.
pub(super) struct Theirs {
    pub(super) who: &'static str,
    pub(super) full: f64,
}

/// Offers in memory.
pub(super) const MEMORY: Theirs = Theirs {
    who: super::brokers::MEMORY,
    full: 25.0,
};
/// Offers in a database.
pub(super) const DATABASE: Theirs = Theirs {
    who: super::brokers::DATABASE,
    full: 65.0,
};

/// Share of the capacity up to which throughput should be linear.
const LINEAR: f64 = 0.8;

/// A chart over the request rate as a multiple of the design's capacity, with the thesis's axis above. Includes our
/// index for comparison.
pub(super) fn over_rate(
    records: &Records,
    title: &str,
    y: Axis,
    theirs: &Theirs,
    quantity: &str,
) -> Chart {
    let x = Axis::linear(
        format!("request rate / capacity, {}", theirs.who),
        Unit::Count,
    );
    let mut chart = Chart::new(title, x, y);
    chart.top = Some(TopAxis {
        label: "the thesis's request rate".to_owned(),
        unit: Unit::PerSecond,
        factor: theirs.full,
        offset: 0.0,
    });
    let own = capacity(records, theirs.who);
    let series = |who: &str| series(records, who, quantity, own);
    chart.series = vec![series(theirs.who), series(OURS)];
    chart.notes = [theirs.who, OURS]
        .map(|who| format!("{who}: capacity here {:.0}/s.", capacity(records, who)))
        .to_vec();
    chart.notes.push(MEDIANS.to_owned());
    chart.notes.push(COMPLETE_REPLIES.to_owned());
    chart.notes.extend(reservations(records));
    chart
}

/// Median of a quantity over the overloaded points of a design.
pub(super) fn overloaded(records: &Records, who: &str, column: &str) -> f64 {
    let ratio = capacity(records, OURS) / capacity(records, who);
    let places = sweep::places(records, who, column);
    let own: Vec<(f64, f64)> = places.into_iter().map(|(x, y)| (x * ratio, y)).collect();
    plateau(&own, OVERLOADED - 0.05)
}

/// A quantity of a design at the lowest rate.
pub(super) fn lowest(records: &Records, who: &str, column: &str) -> f64 {
    sweep::places(records, who, column)
        .first()
        .map_or(f64::NAN, |point| point.1)
}

/// Checks that throughput past the limit stays near the maximum over all rates.
pub(super) fn stays(records: &Records, theirs: &Theirs) -> Check {
    let places = sweep::places(records, theirs.who, "throughput_per_s");
    let peak = most(places.into_iter().map(|point| point.1));
    let past = overloaded(records, theirs.who, "throughput_per_s");
    Check::claim(
        past >= 0.9 * peak,
        format!(
            "Past its limit the broker answers {past:.0}/s, and {peak:.0}/s at the best of all rates (required: 90 % of that; the thesis's: {:.0}/s).",
            theirs.full
        ),
    ).because(NOISE)
}

/// Checks that throughput is linear below the limit: the offered requests are answered.
pub(super) fn linear(records: &Records, theirs: &Theirs) -> Check {
    let [own, ours] = [theirs.who, OURS].map(|who| capacity(records, who));
    let places = sweep::places(records, theirs.who, "throughput_per_s");
    let answered: Vec<f64> = places
        .into_iter()
        .map(|(ratio, throughput)| (ratio * ours, throughput))
        .filter(|(rate, _)| *rate <= LINEAR * own)
        .map(|(rate, throughput)| throughput / rate)
        .collect();
    let (low, high) = (least(answered.iter().copied()), most(answered));
    Check::claim(
        low >= 0.95 && high <= 1.05,
        format!(
            "Up to {LINEAR} of the capacity {:.1} to {:.1} % of what is offered is answered (required: 95 to 105 %; the thesis's throughput is linear up to {:.0}/s).",
            100.0 * low,
            100.0 * high,
            theirs.full
        ),
    ).because(NOISE)
}

/// Checks that the response time rises steeply past the capacity. Reports the factor.
pub(super) fn rises(records: &Records, theirs: &Theirs, reason: &str) -> Check {
    let [low, high] = [lowest, overloaded].map(|at| at(records, theirs.who, "response_ms"));
    Check::claim(
        high >= 5.0 * low,
        format!(
            "The response time is {low:.2} ms at the lowest rate and {high:.1} past the limit, {:.0} times as long ({reason}).",
            high / low
        ),
    ).because(NOISE)
}
