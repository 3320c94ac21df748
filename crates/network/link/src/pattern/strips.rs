//! Strips of blocks: a pattern for a terminal.

use posthaste_units::Span;

use super::{Axis, Coverage, EffectKind, Extent, Pattern};

/// Maximum width of a strip.
const COLUMNS: u64 = 64;
/// Blocks for nothing, and for shares from low to full.
const BLOCKS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A strip for each row: the covered share of each stretch, or the value there.
pub fn strips(pattern: &Pattern, rows: &[Coverage], extent: Extent) -> String {
    let mut text = String::new();
    let mut before = None;
    for row in rows {
        let places = extent.along(row.axis);
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

fn heading(row: &Coverage, places: u64, column: u64) -> String {
    let direction = row.direction;
    match (row.axis, column) {
        (Axis::Packets, 1) => format!("\n{direction}, packets 1 to {places}\n"),
        (Axis::Packets, _) => format!("\n{direction}, packets 1 to {places}, {column} a column\n"),
        (Axis::Millis, _) => format!("\n{direction}, {places} ms, {column} ms a column\n"),
    }
}

fn strip(pattern: &Pattern, row: &Coverage, places: u64, column: u64) -> String {
    let starts = (0..places).step_by(usize::try_from(column).unwrap_or(usize::MAX));
    if !row.kind.persists() {
        let share = |start: u64| row.share(start, places.min(start + column));
        return starts.map(|start| block(share(start))).collect();
    }
    let values = row.values(pattern, starts);
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

impl Coverage {
    /// Returns the values in force at each of the ascending `offsets`: ms of delay, bit/s, or share of losses. `None` is the link's own
    /// value.
    pub fn values(
        &self,
        pattern: &Pattern,
        offsets: impl Iterator<Item = u64>,
    ) -> Vec<Option<f64>> {
        let mut cursor = pattern.script(self.direction).cursor();
        let mut value = |offset: u64| {
            let step = match self.axis {
                Axis::Packets => cursor.step(offset + 1, Span::ZERO),
                Axis::Millis => cursor.step(1, Span::from_millis(1) * offset),
            };
            match self.kind {
                EffectKind::DelayFrom => step.delay.map(Span::as_millis_f64),
                EffectKind::LossFrom => step.loss.map(|share| share.get()),
                _ => step.bandwidth.map(|rate| rate.as_bits() as f64),
            }
        };
        offsets.map(&mut value).collect()
    }
}
