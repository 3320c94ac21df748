//! Pictures of a pattern: strips of blocks for a terminal, charts for a page.

use std::path::Path;

use posthaste_draw::{
    Axis as Scale, Block, Cell, Chart, Page, Point, Section, Series, Shape, Table, Unit,
};
use posthaste_link::pattern::{Axis, Pattern};
use posthaste_load::report::thousands;
use posthaste_units::Span;

use super::coverage::{Kind, Row};
use super::show::{Lengths, touched};
use crate::commands::Failure;

/// Maximum width of a strip.
const COLUMNS: u64 = 64;
/// Maximum number of points in a chart.
const POINTS: u64 = 1000;
/// Blocks for nothing, and for shares from low to full.
const BLOCKS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A strip for each row: the covered share of each stretch, or the value there.
pub(super) fn strips(pattern: &Pattern, rows: &[Row], lengths: Lengths) -> String {
    let mut text = String::new();
    let mut before = None;
    for row in rows {
        let places = lengths.along(row.axis);
        if places == 0 {
            continue;
        }
        let column = places.div_ceil(COLUMNS);
        if before != Some((row.direction, row.axis)) {
            before = Some((row.direction, row.axis));
            text += &heading(row, places, column);
        }
        text += &format!(
            "  {:<14} {}\n",
            row.kind.name(),
            strip(pattern, row, places, column)
        );
    }
    text
}

fn heading(row: &Row, places: u64, column: u64) -> String {
    let direction = row.direction;
    match (row.axis, column) {
        (Axis::Packets, 1) => format!("\n{direction}, packets 1 to {places}\n"),
        (Axis::Packets, _) => format!("\n{direction}, packets 1 to {places}, {column} a column\n"),
        (Axis::Millis, _) => format!("\n{direction}, {places} ms, {column} ms a column\n"),
    }
}

fn strip(pattern: &Pattern, row: &Row, places: u64, column: u64) -> String {
    let starts = (0..places).step_by(usize::try_from(column).unwrap_or(usize::MAX));
    if !row.kind.persists() {
        let share = |start: u64| row.share(start, places.min(start + column));
        return starts.map(|start| block(share(start))).collect();
    }
    let values = values(pattern, row, starts);
    let largest = values.iter().flatten().copied();
    let largest = largest.fold(f64::MIN_POSITIVE, f64::max);
    let share = |value: &Option<f64>| value.map_or(0.0, |value| value / largest);
    values.iter().map(|value| block(share(value))).collect()
}

/// A block for a share. Anything above zero is visible.
fn block(share: f64) -> char {
    let level = (share * 8.0).ceil().clamp(0.0, 8.0) as usize;
    BLOCKS[level]
}

/// Values in force at each of the ascending `offsets`: ms of delay, or bit/s. `None` is the link's own value.
fn values(pattern: &Pattern, row: &Row, offsets: impl Iterator<Item = u64>) -> Vec<Option<f64>> {
    let mut cursor = pattern.script(row.direction).cursor();
    let mut value = |offset: u64| {
        let step = match row.axis {
            Axis::Packets => cursor.step(offset + 1, Span::ZERO),
            Axis::Millis => cursor.step(1, Span::from_millis(1) * offset),
        };
        match row.kind {
            Kind::DelayFrom => step.delay.map(Span::as_millis_f64),
            _ => step.bandwidth.map(|rate| rate.as_bits() as f64),
        }
    };
    offsets.map(&mut value).collect()
}

/// Draws the picture as the content of a file: SVG or HTML by the file's name. A note below each chart names the range.
pub(super) fn file(
    path: &Path,
    title: &str,
    pattern: &Pattern,
    rows: &[Row],
    lengths: Lengths,
) -> Result<String, Failure> {
    let mut charts = charts(pattern, rows, lengths);
    for chart in &mut charts {
        chart.notes.push(note(title, lengths));
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => {
            let first = charts.first().ok_or_else(|| {
                Failure::usage("nothing happens in this pattern: there is nothing to draw")
            })?;
            if charts.len() > 1 {
                eprintln!(
                    "{}: the first of {} charts; name it .html to get all",
                    path.display(),
                    charts.len()
                );
            }
            Ok(first.svg())
        }
        Some("html") => Ok(page(title, charts, rows, lengths).html()),
        _ => Err(Failure::usage(format!(
            "{}: name the picture FILE.svg or FILE.html",
            path.display()
        ))),
    }
}

fn note(title: &str, lengths: Lengths) -> String {
    let packets = thousands(lengths.along(Axis::Packets));
    let millis = thousands(lengths.along(Axis::Millis));
    let version = env!("CARGO_PKG_VERSION");
    format!("{title}: {packets} packets and {millis} ms in each direction, posthaste {version}.")
}

fn page(title: &str, charts: Vec<Chart>, rows: &[Row], lengths: Lengths) -> Page {
    let mut table = Table::new(["direction", "what", "entries", "first", "last", "touched"]);
    for row in rows {
        table.rows.push(vec![
            Cell::text(row.direction.name()),
            Cell::text(row.kind.name()),
            Cell::number(row.entries.to_string()),
            Cell::number(row.first.to_string()),
            Cell::number(row.last.to_string()),
            Cell::text(touched(row, lengths)),
        ]);
    }
    let mut section = Section::new("What happens");
    section.blocks.push(Block::Table(table));
    let charts = charts
        .into_iter()
        .map(|chart| Block::Chart(Box::new(chart)));
    section.blocks.extend(charts);
    Page {
        title: title.to_owned(),
        lead: "Packets count from 1 in each direction, milliseconds from the link's first packet in it.".to_owned(),
        sections: vec![section],
        footer: "Made by posthaste pattern show.".to_owned(),
        ..Page::default()
    }
}

/// Charts of the cumulative coverage and of the values in force, for each axis with effects.
fn charts(pattern: &Pattern, rows: &[Row], lengths: Lengths) -> Vec<Chart> {
    let mut charts = Vec::new();
    for axis in [Axis::Packets, Axis::Millis] {
        let places = lengths.along(axis);
        let (x, what) = match axis {
            Axis::Packets => (Scale::linear("packet", Unit::Count), "packets"),
            Axis::Millis => (Scale::linear("time", Unit::Millis), "milliseconds"),
        };
        for (title, y, shown) in [
            (
                format!("How many {what} are touched so far"),
                Scale::linear(what, Unit::Count),
                (|kind: Kind| !kind.persists()) as fn(Kind) -> bool,
            ),
            (
                "Delay in force".to_owned(),
                Scale::linear("delay", Unit::Millis),
                |kind| kind == Kind::DelayFrom,
            ),
            (
                "Bandwidth in force".to_owned(),
                Scale::linear("bandwidth in bits", Unit::PerSecond),
                |kind| kind == Kind::BandwidthFrom,
            ),
        ] {
            let rows = rows
                .iter()
                .filter(|row| row.axis == axis && shown(row.kind));
            let series: Vec<Series> = rows.map(|row| series(pattern, row, places)).collect();
            if places > 0 && !series.is_empty() {
                let mut chart = Chart::new(title, x.clone(), y);
                chart.series = series;
                charts.push(chart);
            }
        }
    }
    charts
}

fn series(pattern: &Pattern, row: &Row, places: u64) -> Series {
    let step = usize::try_from(places.div_ceil(POINTS)).unwrap_or(usize::MAX);
    let offsets = || (0..places).step_by(step.max(1));
    let ys: Vec<Option<f64>> = if row.kind.persists() {
        values(pattern, row, offsets())
    } else {
        let touched = |offset: u64| Some(row.touched(offset + 1) as f64);
        offsets().map(touched).collect()
    };
    // The line has a gap where the link's own value holds.
    let points = offsets()
        .zip(ys)
        .map(|(offset, y)| Point::new((offset + row.axis.base()) as f64, y.unwrap_or(f64::NAN)));
    let name = format!("{} {}", row.direction, row.kind.name());
    Series::line(name, points).shape(Shape::Steps)
}
