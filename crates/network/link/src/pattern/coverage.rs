//! Coverage of a pattern: entries, first and last position, shares of any stretch.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Axis, Effect, Pattern, PatternEntry, PatternRange};
use crate::Direction;

/// All effects of one kind, in one direction and along one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Direction of the packets.
    pub direction: Direction,
    /// Packets or milliseconds.
    pub axis: Axis,
    /// Kind of the effects.
    pub kind: EffectKind,
    /// Number of entries.
    pub entries: u64,
    /// First position.
    pub first: u64,
    /// Last position.
    pub last: u64,
    /// The pattern repeats after this number of packets or milliseconds.
    pub period: Option<u64>,
    /// Offsets from the first position, end excluded, and the number of covered positions before.
    ranges: Vec<(u64, u64, u64)>,
}

/// An effect without its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectKind {
    /// The packet is lost.
    Drop,
    /// Bits of the packet are flipped.
    Flip,
    /// The packet is delayed.
    Delay,
    /// The packet is held back.
    Hold,
    /// The packet is duplicated.
    Copy,
    /// The delay of the link changes.
    DelayFrom,
    /// The bandwidth of the link changes.
    BandwidthFrom,
    /// The probability of loss changes.
    LossFrom,
    /// The link has delivery opportunities.
    Opportunities,
}

impl Axis {
    /// Unit of the positions.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Millis => "ms",
        }
    }
}

impl EffectKind {
    fn from_effect(effect: &Effect) -> Option<Self> {
        Some(match effect {
            Effect::Drop => Self::Drop,
            Effect::Flip(_) => Self::Flip,
            Effect::Delay(_) => Self::Delay,
            Effect::Hold(_) => Self::Hold,
            Effect::Copy(_) => Self::Copy,
            Effect::DelayFrom(_) => Self::DelayFrom,
            Effect::BandwidthFrom(_) => Self::BandwidthFrom,
            Effect::LossFrom(_) => Self::LossFrom,
            Effect::Opportunities(_) => Self::Opportunities,
            Effect::Repeat => return None,
        })
    }

    /// Name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Flip => "flip",
            Self::Delay => "delay",
            Self::Hold => "hold",
            Self::Copy => "copy",
            Self::DelayFrom => "delay from",
            Self::BandwidthFrom => "bandwidth from",
            Self::LossFrom => "loss from",
            Self::Opportunities => "opportunities",
        }
    }

    /// True if the value holds from a position on, instead of a single effect at it.
    pub const fn persists(self) -> bool {
        matches!(self, Self::DelayFrom | Self::BandwidthFrom | Self::LossFrom)
    }
}

impl Coverage {
    /// Returns the coverage of a pattern, in the order of its text.
    pub fn from_pattern(pattern: &Pattern) -> Vec<Self> {
        let mut rows: Vec<Self> = Vec::new();
        let mut periods = BTreeMap::new();
        for entry in pattern.entries() {
            let PatternRange { axis, first, last } = entry.range;
            let Some(kind) = EffectKind::from_effect(&entry.effect) else {
                periods.insert((entry.direction, axis.base()), first);
                continue;
            };
            let same =
                |row: &Self| (row.direction, row.axis, row.kind) == (entry.direction, axis, kind);
            if !rows.last().is_some_and(same) {
                rows.push(Self {
                    direction: entry.direction,
                    axis,
                    kind,
                    entries: 0,
                    first,
                    last,
                    period: periods.get(&(entry.direction, axis.base())).copied(),
                    ranges: Vec::new(),
                });
            }
            let Some(row) = rows.last_mut() else { continue };
            row.entries += 1;
            row.last = last;
            if !kind.persists() {
                let before = row
                    .ranges
                    .last()
                    .map_or(0, |(first, end, before)| before + end - first);
                let base = axis.base();
                row.ranges.push((first - base, last - base + 1, before));
            }
        }
        rows
    }
    /// Number of covered positions among the first `places` packets or milliseconds.
    pub fn touched(&self, places: u64) -> u64 {
        let Some(period) = self.period else {
            return self.before(places);
        };
        let rounds = (places / period).saturating_mul(self.before(period));
        rounds.saturating_add(self.before(places % period))
    }

    /// Covered share of `from..to`, as offsets from the first position.
    pub fn share(&self, from: u64, to: u64) -> f64 {
        let touched = self.touched(to) - self.touched(from);
        touched as f64 / to.saturating_sub(from).max(1) as f64
    }

    /// The covered part of `extent`, in words.
    pub fn touched_words(&self, extent: Extent) -> String {
        let unit = self.axis.unit();
        let again = self.period.map_or(String::new(), |period| {
            format!(", again every {period} {unit}")
        });
        if self.kind.persists() {
            return format!("from there on{again}");
        }
        let places = extent.along(self.axis);
        let share = self.share(0, places) * 100.0;
        format!(
            "{} of {places} {unit}, {share:.3}%{again}",
            self.touched(places)
        )
    }

    fn before(&self, offset: u64) -> u64 {
        let next = self.ranges.partition_point(|(first, ..)| *first < offset);
        let Some((first, end, before)) = next.checked_sub(1).map(|last| self.ranges[last]) else {
            return 0;
        };
        before + offset.min(end) - first
    }
}

/// Extent of a pattern or of a part of it, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Number of packets.
    pub packets: u64,
    /// Number of milliseconds.
    pub millis: u64,
}

impl Extent {
    /// Packets and milliseconds that a pattern covers.
    pub fn from_pattern(pattern: &Pattern) -> Self {
        let along = |axis: Axis| {
            let entries = pattern.entries().filter(|entry| entry.range.axis == axis);
            let reach = |entry: PatternEntry| match entry.effect {
                Effect::Repeat => entry.range.first,
                _ => entry.range.last - axis.base() + 1,
            };
            entries.map(reach).max().unwrap_or_default()
        };
        Self {
            packets: along(Axis::Packets),
            millis: along(Axis::Millis),
        }
    }

    /// Packets or milliseconds.
    pub const fn along(self, axis: Axis) -> u64 {
        match axis {
            Axis::Packets => self.packets,
            Axis::Millis => self.millis,
        }
    }
}

/// A table of the coverage of `extent`, with one line for each row.
pub fn coverage_table(rows: &[Coverage], extent: Extent) -> String {
    let mut text =
        String::from("direction  what            entries        first         last   touched\n");
    for row in rows {
        let suffix = match row.axis {
            Axis::Packets => "",
            Axis::Millis => "ms",
        };
        let [first, last] = [row.first, row.last].map(|position| format!("{position}{suffix}"));
        let _ = writeln!(
            text,
            "{:<9}  {:<14} {:>8} {first:>12} {last:>12}   {}",
            row.direction.name(),
            row.kind.name(),
            row.entries,
            row.touched_words(extent)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_a_plain_count() {
        let text =
            "posthaste pattern 1\ndown repeat 30\ndown drop 8, 12-14, 20\ndown drop 5ms-9ms\nend\n";
        let pattern = Pattern::parse(text).unwrap();
        let rows = Coverage::from_pattern(&pattern);
        let dropped = |position: u64| matches!((position - 1) % 30 + 1, 8 | 12..=14 | 20);
        for places in 0..100 {
            let count = (1..=places).filter(|position| dropped(*position)).count();
            assert_eq!(rows[0].touched(places), count as u64, "{places}");
            let millis = places.clamp(5, 9) - 5;
            assert_eq!(rows[1].touched(places), millis, "{places}");
        }
        let extent = Extent {
            packets: 30,
            millis: 9,
        };
        assert_eq!(Extent::from_pattern(&pattern), extent);
    }
}
