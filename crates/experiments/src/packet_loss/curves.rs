//! What the pictures of this paper share: curves over positions, and their axes.

use posthaste_draw::{Along, Axis, Bar, Bars, Chart, Group, Mark, Point, Role, Series, Unit};

use super::campaign::PARTS;
use super::cells::Cells;
use super::kernel::{self, OF_2005};
use super::line::{Drops, Line};
use super::service::Service;
use crate::estimate::MEDIANS;
use crate::records::Records;

/// The cells of each kernel, the paper's first.
pub(super) fn of_both<'a>(records: &'a Records, service: &'static Service) -> [Cells<'a>; 2] {
    kernel::BOTH.map(|kernel| Cells::of(records, (kernel.key, kernel.name), service))
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

/// Response time by position on one line, both kernels; the paper's time without loss where it is known.
pub(super) fn by_position(
    records: &Records,
    service: &'static Service,
    line: Line,
    paper_ms: Option<f64>,
) -> Chart {
    let title = format!("{}: {} kbit/s, {} ms", service.name, line.kbit, line.ms);
    let time = Axis::linear("response time", Unit::Millis);
    let mut chart = Chart::new(title, positions(), time);
    chart.series = of_both(records, service)
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

/// The four parts of the same response times, with the paper's kernel.
pub(super) fn parts(records: &Records, service: &'static Service, line: Line) -> Bars {
    let cells = Cells::of(records, (OF_2005.key, OF_2005.name), service);
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
