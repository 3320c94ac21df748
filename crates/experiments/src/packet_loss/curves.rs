//! What the pictures of this paper share: curves over positions, and their axes.

use posthaste_draw::{Along, Axis, Bar, Bars, Chart, Group, Mark, Point, Role, Series, Unit};

use super::account::PARTS;
use super::cells::Cells;
use super::kernel;
use super::line::{Drops, Line};
use super::service::Service;
use super::stack::{LINUX, OF_FREEBSD};
use crate::estimate::MEDIANS;
use crate::records::Records;

/// The cells of each kernel, the paper's first.
pub(super) fn of_both<'a>(records: &'a Records, service: &'static Service) -> [Cells<'a>; 2] {
    kernel::BOTH.map(|kernel| Cells::of(records, (kernel.key, kernel.name), service))
}

/// What the figures of Linux show: the paper's, simulated, and this machine's kernels.
pub(super) fn of_linux<'a>(records: &'a Records, service: &'static Service) -> Vec<Cells<'a>> {
    let mut all = of_both(records, service).to_vec();
    all.push(LINUX.cells(records, service));
    all
}

/// What the figures of FreeBSD show, the paper's first.
pub(super) fn of_freebsd<'a>(records: &'a Records, service: &'static Service) -> Vec<Cells<'a>> {
    OF_FREEBSD
        .iter()
        .map(|stack| stack.cells(records, service))
        .collect()
}

/// The curve over positions on a line.
pub(super) fn curve(cells: &Cells<'_>, name: impl Into<String>, line: Line) -> Series {
    let points = (0..=cells.service.packets()).filter_map(|position| {
        let row = cells.row(line, Drops::one(position))?;
        let mut point = Point::new(f64::from(position), row.number("median_ms"))
            .with_interval(row.number("low_ms"), row.number("high_ms"));
        point.hint = format!(
            "{}, {} transactions, {} with a timeout",
            cells.service.packet(position),
            row.number("transactions"),
            row.number("timed_out")
        );
        Some(point)
    });
    Series::line(name, points)
}

/// Response time by position on one line, the first of these in front; the paper's time without loss
/// where it is known.
pub(super) fn by_position(all: &[Cells<'_>], line: Line, paper_ms: Option<f64>) -> Chart {
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
pub(super) fn parts(cells: &Cells<'_>, line: Line) -> Bars {
    let service = cells.service;
    let names = ["connection", "request", "processing", "reply"];
    let group = |position| {
        let row = cells.row(line, Drops::one(position))?;
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

/// The axis of positions.
pub(super) fn positions() -> Axis {
    Axis::linear(
        "position of the lost packet from the server; 0 is no loss",
        Unit::Count,
    )
}
