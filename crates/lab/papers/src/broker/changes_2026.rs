//! wsqos/changes-2026: delay from a provider's change to its clients.

use posthaste_draw::{Axis, Chart, Point, Series, Unit};
use posthaste_stats::nearest_rank;
use posthaste_study::{Check, Figure, NOISE, Plot, Records};
use posthaste_units::Span;

use super::changes::{self, PLACES, times};
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/changes-2026",
    title: "from a provider's change to what clients see",
    claim: "Beyond the thesis: a change is pushed along a chain of brokers. A client with a broker of its own sees it within milliseconds. Most of this time is needed to store the change.",
    paper: THESIS,
    budget: Span::from_secs(15),
    study: &changes::STUDY,
    plot,
    checks,
    differs: include_str!("changes_2026.md").trim_ascii(),
};

/// Goal for the delay of 99 of 100 changes to another broker, in milliseconds.
const BAR: f64 = 20.0;
/// Points of a curve.
const POINTS: usize = 200;

fn plot(records: &Records) -> Vec<Plot> {
    let x = Axis::log("time since the provider began to publish", Unit::Millis);
    let y = Axis::linear("share of the changes", Unit::Share);
    let mut chart = Chart::new("When a change is seen", x, y);
    let series = |location: &'static str| {
        let times = times(records, location);
        let points = (1..=POINTS).map(|point| {
            let share = point as f64 / POINTS as f64;
            Point::new(quantile(&times, share), share)
        });
        Series::line(location, points)
    };
    chart.series = PLACES.map(series).into();
    vec![Plot::Chart(chart)]
}

fn checks(records: &Records) -> Vec<Check> {
    let all = PLACES.map(|location| times(records, location));
    let [replied, same, near, far] = [0, 1, 2, 3].map(|index| quantile(&all[index], 0.99));
    let counts = all.each_ref().map(Vec::len);
    let made = records.number("changes");
    vec![
        Check::instrument(
            counts[0] > 0 && counts.iter().all(|count| *count as f64 == made),
            format!(
                "Of {made} changes {} were seen in each place, in the order in which they were made.",
                counts.iter().min().unwrap_or(&0)
            ),
        ),
        Check::goal(
            near <= BAR,
            format!(
                "Another broker's clients see 99 of 100 changes within {near:.1} ms ({BAR:.0} wanted), those of one behind it within {far:.1}; the same broker's within {same:.1}, and the provider gets the confirmation of its change within {replied:.1}."
            ),
        ).because(NOISE),
    ]
}

/// Quantile of sorted times, or NaN if there are none.
fn quantile(times: &[f64], share: f64) -> f64 {
    nearest_rank(times, share).unwrap_or(f64::NAN)
}
