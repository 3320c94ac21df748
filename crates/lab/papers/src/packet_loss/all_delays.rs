//! All delays at one bandwidth: figures with a curve for each delay, one figure per service.

use posthaste_draw::{Axis, Chart, Unit};
use posthaste_study::{Check, MEDIANS, Plot};

use super::cells::Cells;
use super::curves::{curve, positions};
use super::line::{DELAYS, NetworkLine};
use super::positions;

/// Bandwidth in the paper's figures, in kbit/s.
const KBIT: u32 = 1000;

/// Response time by position, one picture for each of `all`.
pub(super) fn plot(all: &[Cells<'_>]) -> Vec<Plot> {
    all.iter().map(|cells| Plot::Chart(chart(cells))).collect()
}

fn chart(cells: &Cells<'_>) -> Chart {
    let title = format!("{}: {KBIT} kbit/s, {}", cells.service.name, cells.name());
    let time = Axis::linear("response time", Unit::Millis);
    let mut chart = Chart::new(title, positions(), time);
    let series = |ms: &u32| {
        let line = NetworkLine {
            kbit: KBIT,
            ms: *ms,
        };
        curve(cells, format!("{ms} ms"), line)
    };
    chart.series = DELAYS.iter().map(series).collect();
    chart.ordered = true;
    chart.notes.push(MEDIANS.to_owned());
    chart
}

/// Checks for each of `all` that the late positions are the sensitive ones at every delay.
pub(super) fn checks(all: &[Cells<'_>]) -> Vec<Check> {
    let mut checks = Vec::new();
    for cells in all {
        let late = cells.late();
        let sensitive = DELAYS.map(|ms| (ms, cells.sensitive(NetworkLine { kbit: KBIT, ms })));
        let as_claimed = |found: &&(u32, Vec<u32>)| found.1.iter().copied().eq(late.clone());
        let like = sensitive.iter().filter(as_claimed).count();
        let sentences: Vec<String> = sensitive
            .chunk_by(|before, after| before.1 == after.1)
            .map(|same| {
                let delays: Vec<u32> = same.iter().map(|(ms, _)| *ms).collect();
                format!(
                    "{} at {} ms",
                    positions::listed(&same[0].1),
                    positions::listed(&delays)
                )
            })
            .collect();
        let measured = DELAYS.iter().all(|ms| {
            cells.is_measured(NetworkLine {
                kbit: KBIT,
                ms: *ms,
            })
        });
        let repaired = measured && sensitive.iter().all(|(_, found)| found.is_empty());
        let reason = if repaired {
            "this stack repairs each of these losses without a timeout."
        } else {
            "a window of three gives two duplicate ACKs for the loss of the first data packet; at long delays the third comes later than the timeout."
        };
        checks.push(Check::claim(
            like == DELAYS.len(),
            format!(
                "{}: a loss makes the server wait for a timeout at positions {} to {} alone at {like} of {} delays: {}.",
                cells.name(),
                late.start(),
                late.end(),
                DELAYS.len(),
                sentences.join("; ")
            ),
        ).because(reason).better_if(repaired));
    }
    checks
}
