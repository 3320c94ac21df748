//! Charts of a pattern.

use std::path::Path;

use posthaste_draw::{
    Axis as Scale, Block, Cell, Chart, Page, Point, Section, Series, Shape, Table, Unit,
};
use posthaste_link::pattern::{Axis, Coverage, EffectKind, Extent, Pattern};
use posthaste_units::thousands;

use crate::commands::Failure;

/// Maximum number of points in a chart.
const POINTS: u64 = 1000;

/// Draws the picture as the content of a file: SVG or HTML by the file's name. A note below each chart names the range.
pub(super) fn file(
    path: &Path,
    title: &str,
    pattern: &Pattern,
    rows: &[Coverage],
    extent: Extent,
) -> Result<String, Failure> {
    let mut charts = charts(pattern, rows, extent);
    for chart in &mut charts {
        chart.notes.push(note(title, extent));
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => {
            let first = charts.first().ok_or_else(|| {
                Failure::usage("nothing happens in this pattern: there is nothing to draw")
            })?;
            if charts.len() > 1 {
                note!(
                    "{}: the first of {} charts; name it .html to get all",
                    path.display(),
                    charts.len()
                );
            }
            Ok(first.svg())
        }
        Some("html") => Ok(page(title, charts, rows, extent).html()),
        _ => Err(Failure::usage(format!(
            "{}: name the picture FILE.svg or FILE.html",
            path.display()
        ))),
    }
}

fn note(title: &str, extent: Extent) -> String {
    let packets = thousands(extent.along(Axis::Packets));
    let millis = thousands(extent.along(Axis::Millis));
    let version = env!("CARGO_PKG_VERSION");
    format!("{title}: {packets} packets and {millis} ms in each direction, posthaste {version}.")
}

fn page(title: &str, charts: Vec<Chart>, rows: &[Coverage], extent: Extent) -> Page {
    let mut table = Table::new(["direction", "what", "entries", "first", "last", "touched"]);
    for row in rows {
        table.rows.push(vec![
            Cell::text(row.direction.name()),
            Cell::text(row.kind.name()),
            Cell::number(row.entries.to_string()),
            Cell::number(row.first.to_string()),
            Cell::number(row.last.to_string()),
            Cell::text(row.touched_words(extent)),
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
fn charts(pattern: &Pattern, rows: &[Coverage], extent: Extent) -> Vec<Chart> {
    let mut charts = Vec::new();
    for axis in [Axis::Packets, Axis::Millis] {
        let places = extent.along(axis);
        let (x, unit) = match axis {
            Axis::Packets => (Scale::linear("packet", Unit::Count), "packets"),
            Axis::Millis => (Scale::linear("time", Unit::Millis), "milliseconds"),
        };
        for (title, y, shown) in [
            (
                format!("How many {unit} are touched so far"),
                Scale::linear(unit, Unit::Count),
                (|kind: EffectKind| !kind.persists()) as fn(EffectKind) -> bool,
            ),
            (
                "Delay in force".to_owned(),
                Scale::linear("delay", Unit::Millis),
                |kind| kind == EffectKind::DelayFrom,
            ),
            (
                "Bandwidth in force".to_owned(),
                Scale::linear("bandwidth in bits", Unit::PerSecond),
                |kind| kind == EffectKind::BandwidthFrom,
            ),
            (
                "Probability of loss in force".to_owned(),
                Scale::linear("share of packets", Unit::Count),
                |kind| kind == EffectKind::LossFrom,
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

fn series(pattern: &Pattern, row: &Coverage, places: u64) -> Series {
    let step = usize::try_from(places.div_ceil(POINTS)).unwrap_or(usize::MAX);
    let offsets = || (0..places).step_by(step.max(1));
    let ys: Vec<Option<f64>> = if row.kind.persists() {
        row.values(pattern, offsets())
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
