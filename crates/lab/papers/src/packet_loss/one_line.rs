//! One line, by position of the loss: figures with the cost of each position.

use posthaste_draw::{Along, Axis, Bar, Bars, Chart, Group, Mark, Role, Unit};
use posthaste_study::{Check, MEDIANS, Plot};

use super::cells::Cells;
use super::columns::PARTS;
use super::curves::{curve, positions};
use super::line::{NetworkLine, PlannedDrops};

/// Response times on a line, and the parts of those of the first of `all`.
pub(super) fn plot(all: &[Cells<'_>], line: NetworkLine, paper_ms: Option<f64>) -> Vec<Plot> {
    let mut plots = vec![Plot::Chart(by_position(all, line, paper_ms))];
    plots.extend(all.first().map(|cells| Plot::Bars(parts(cells, line))));
    plots
}

/// True if a number is within three percent of the published one.
pub(super) fn is_published(ours: f64, paper: f64) -> bool {
    (ours / paper - 1.0).abs() < 0.03
}

/// Checks that on the line with the longer delay a late loss costs more in ms and less in percent.
pub(super) fn at_a_longer_delay(cells: &Cells<'_>, [near, far]: [NetworkLine; 2]) -> [Check; 2] {
    let (name, reference, ms) = (cells.name(), cells.reference(), near.ms);
    let penalty = |line| cells.late_ms(line) - cells.ms(line, reference);
    let [costs, before] = [far, near].map(penalty);
    let [share, share_before] = [far, near].map(|line| cells.increase(line));
    [
        Check::claim(
            costs > before,
            format!(
                "{name}: a late loss costs {costs:.0} ms more than one at position {reference}, at {ms} ms it costs {before:.0} ms."
            ),
        ),
        Check::claim(
            share < share_before,
            format!(
                "{name}: in percent it is {share:.0} %, against {share_before:.0} % at {ms} ms."
            ),
        ),
    ]
}

/// Response time by position on one line, the first of `all` on top. Includes the paper's time without loss, if
/// known.
fn by_position(all: &[Cells<'_>], line: NetworkLine, paper_ms: Option<f64>) -> Chart {
    let name = all.first().map_or("", |cells| cells.service.name);
    let title = format!("{name}: {} kbit/s, {} ms", line.kbit, line.ms);
    let time = Axis::linear("response time", Unit::Millis);
    let mut chart = Chart::new(title, positions(), time);
    chart.series = all
        .iter()
        .map(|cells| curve(cells, cells.name(), line))
        .collect();
    chart.marks = paper_ms
        .map(|at| Mark {
            along: Along::Y,
            at,
            label: format!("paper, no loss: {at} ms"),
            role: Role::Paper,
        })
        .into_iter()
        .collect();
    chart.notes.push(MEDIANS.to_owned());
    chart
}

/// The four parts of the same response times.
fn parts(cells: &Cells<'_>, line: NetworkLine) -> Bars {
    let service = cells.service;
    let names = ["connection", "request", "processing", "reply"];
    let group = |position| {
        let row = cells.row(line, PlannedDrops::one(position))?;
        let part = |(name, column): (&str, &str)| (name.to_owned(), row.number(column));
        let bar = Bar {
            label: String::new(),
            parts: names.into_iter().zip(PARTS).map(part).collect(),
            ..Bar::default()
        };
        Some(Group {
            label: position.to_string(),
            bars: vec![bar],
        })
    };
    Bars {
        title: format!("{}: where the time goes, {}", service.name, cells.name()),
        value: Axis::linear("response time", Unit::Millis),
        groups: (0..=service.packets()).filter_map(group).collect(),
        notes: vec!["By position of the loss; each part is the median of its own, so that they need not add up.".to_owned()],
    }
}
