//! All delays at one bandwidth: the figures that show a curve for each, one for every service.

use posthaste_draw::{Axis, Chart, Unit};

use super::cells::Cells;
use super::curves::{curve, of_both, positions};
use super::instrument;
use super::line::{DELAYS, Line};
use super::service::{SEGMENT, Service};
use crate::check::Check;
use crate::estimate::MEDIANS;
use crate::figure::Plot;
use crate::records::Records;

/// The bandwidth that the paper shows.
const KBIT: u32 = 1000;

/// Response time by position, with each kernel.
pub(super) fn plot(records: &Records, service: &'static Service) -> Vec<Plot> {
    of_both(records, service)
        .map(|cells| Plot::Chart(chart(&cells)))
        .into()
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

/// Whether the late positions are the sensitive ones at every delay, with each kernel.
pub(super) fn checks(records: &Records, service: &'static Service) -> Vec<Check> {
    let mut checks = instrument::checks(records);
    let late = service.late(SEGMENT);
    for cells in of_both(records, service) {
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
