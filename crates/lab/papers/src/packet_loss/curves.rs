//! Shared parts of this paper's pictures: the selection of cells, curves over positions, and their axis.

use posthaste_draw::{Axis, Point, Series, Unit};
use posthaste_study::Records;

use super::cells::Cells;
use super::kernel;
use super::line::{NetworkLine, PlannedDrops};
use super::service::PaperService;
use super::stack::{LINUX, OF_FREEBSD};

/// Cells of each kernel, the paper's first.
pub(super) fn of_both<'a>(records: &'a Records, service: &'static PaperService) -> [Cells<'a>; 2] {
    kernel::BOTH.map(|kernel| Cells::new(records, (kernel.key, kernel.name), service))
}

/// Cells in the figures of Linux: this machine's kernels, and the paper's in simulation.
pub(super) fn of_linux<'a>(records: &'a Records, service: &'static PaperService) -> Vec<Cells<'a>> {
    let mut all = of_both(records, service).to_vec();
    all.push(LINUX.cells(records, service));
    all
}

/// Cells in the figures of FreeBSD, the paper's first.
pub(super) fn of_freebsd<'a>(
    records: &'a Records,
    service: &'static PaperService,
) -> Vec<Cells<'a>> {
    OF_FREEBSD
        .iter()
        .map(|stack| stack.cells(records, service))
        .collect()
}

/// Curve over positions on a line.
pub(super) fn curve(cells: &Cells<'_>, name: impl Into<String>, line: NetworkLine) -> Series {
    let points = (0..=cells.service.packets()).filter_map(|position| {
        let row = cells.row(line, PlannedDrops::one(position))?;
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

/// Axis of positions.
pub(super) fn positions() -> Axis {
    Axis::linear(
        "position of the lost packet from the server; 0 is no loss",
        Unit::Count,
    )
}
