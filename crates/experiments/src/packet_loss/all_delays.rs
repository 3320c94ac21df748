//! All delays at one bandwidth: the figures that show a curve for each, one for every service.

use posthaste_draw::{Axis, Chart, Unit};

use super::cells::Cells;
use super::curves::{curve, positions};
use super::line::{DELAYS, Line};
use crate::check::Check;
use crate::estimate::MEDIANS;
use crate::figure::Plot;

/// The bandwidth that the paper shows.
const KBIT: u32 = 1000;

/// Response time by position, a picture for each of these.
pub(super) fn plot(all: &[Cells<'_>]) -> Vec<Plot> {
    all.iter().map(|cells| Plot::Chart(chart(cells))).collect()
}

fn chart(cells: &Cells<'_>) -> Chart {
    let title = format!("{}: {KBIT} kbit/s, {}", cells.service.name, cells.name());
    let time = Axis::linear("response time", Unit::Millis);
    let mut chart = Chart::new(title, positions(), time);
    let series = |ms: &u32| {
        let line = Line {
            kbit: KBIT,
            ms: *ms,
        };
        curve(cells, format!("{ms} ms"), line)
    };
    chart.series = DELAYS.iter().rev().map(series).collect();
    chart.notes.push(MEDIANS.to_owned());
    chart
}

/// Whether the late positions are the sensitive ones at every delay, with each of these.
pub(super) fn checks(all: &[Cells<'_>]) -> Vec<Check> {
    let mut checks = Vec::new();
    for cells in all {
        let late = cells.late();
        let sensitive = DELAYS.map(|ms| (ms, cells.sensitive(Line { kbit: KBIT, ms })));
        let as_claimed = |found: &&(u32, Vec<u32>)| found.1.iter().copied().eq(late.clone());
        let like = sensitive.iter().filter(as_claimed).count();
        let told: Vec<String> = sensitive
            .iter()
            .map(|(ms, found)| format!("{found:?} at {ms} ms"))
            .collect();
        checks.push(Check::claim(
            like == DELAYS.len(),
            format!(
                "{}: a loss makes the server wait for a timeout at positions {} to {} alone at {like} of {} delays: {}.",
                cells.name(),
                late.start(),
                late.end(),
                DELAYS.len(),
                told.join(", ")
            ),
        ));
    }
    checks
}
