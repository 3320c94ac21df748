//! Coverage of a pattern: entries, first and last, shares of any stretch.

use std::collections::BTreeMap;

use posthaste_link::Direction;
use posthaste_link::pattern::{Axis, Effect, Pattern, PatternRange};

/// All effects of one kind, in one direction and along one axis.
pub(super) struct Row {
    pub(super) direction: Direction,
    pub(super) axis: Axis,
    pub(super) kind: Kind,
    pub(super) entries: u64,
    pub(super) first: u64,
    pub(super) last: u64,
    /// The pattern repeats after this number of packets or milliseconds.
    pub(super) period: Option<u64>,
    /// Offsets from the first position, end excluded, and the number of covered positions before.
    ranges: Vec<(u64, u64, u64)>,
}

/// An effect without its value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Drop,
    Flip,
    Delay,
    Hold,
    Copy,
    DelayFrom,
    BandwidthFrom,
}

impl Kind {
    fn of(effect: &Effect) -> Option<Self> {
        Some(match effect {
            Effect::Drop => Self::Drop,
            Effect::Flip(_) => Self::Flip,
            Effect::Delay(_) => Self::Delay,
            Effect::Hold(_) => Self::Hold,
            Effect::Copy(_) => Self::Copy,
            Effect::DelayFrom(_) => Self::DelayFrom,
            Effect::BandwidthFrom(_) => Self::BandwidthFrom,
            Effect::Repeat => return None,
        })
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Flip => "flip",
            Self::Delay => "delay",
            Self::Hold => "hold",
            Self::Copy => "copy",
            Self::DelayFrom => "delay from",
            Self::BandwidthFrom => "bandwidth from",
        }
    }

    /// True if the value holds from a position on, instead of a single effect at it.
    pub(super) const fn persists(self) -> bool {
        matches!(self, Self::DelayFrom | Self::BandwidthFrom)
    }
}

impl Row {
    /// Number of covered positions among the first `places` packets or milliseconds.
    pub(super) fn touched(&self, places: u64) -> u64 {
        let Some(period) = self.period else {
            return self.before(places);
        };
        let rounds = (places / period).saturating_mul(self.before(period));
        rounds.saturating_add(self.before(places % period))
    }

    /// Covered share of `from..to`, as offsets from the first position.
    pub(super) fn share(&self, from: u64, to: u64) -> f64 {
        let touched = self.touched(to) - self.touched(from);
        touched as f64 / to.saturating_sub(from).max(1) as f64
    }

    fn before(&self, offset: u64) -> u64 {
        let next = self.ranges.partition_point(|(first, ..)| *first < offset);
        let Some((first, end, before)) = next.checked_sub(1).map(|last| self.ranges[last]) else {
            return 0;
        };
        before + offset.min(end) - first
    }
}

/// The rows of a pattern, in the order of its text.
pub(super) fn rows(pattern: &Pattern) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut periods = BTreeMap::new();
    for entry in pattern.entries() {
        let PatternRange { axis, first, last } = entry.place;
        let Some(kind) = Kind::of(&entry.effect) else {
            periods.insert((entry.direction, axis.base()), first);
            continue;
        };
        let same = |row: &Row| (row.direction, row.axis, row.kind) == (entry.direction, axis, kind);
        if !rows.last().is_some_and(same) {
            rows.push(Row {
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

/// Number of packets or milliseconds that the pattern covers, the same in both directions.
pub(super) fn length(pattern: &Pattern, axis: Axis) -> u64 {
    let places = pattern.entries().filter(|entry| entry.place.axis == axis);
    let reach = |entry: posthaste_link::pattern::PatternEntry| match entry.effect {
        Effect::Repeat => entry.place.first,
        _ => entry.place.last - axis.base() + 1,
    };
    places.map(reach).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_a_plain_count() {
        let text =
            "posthaste pattern 1\ndown repeat 30\ndown drop 8, 12-14, 20\ndown drop 5ms-9ms\nend\n";
        let pattern = Pattern::parse(text).unwrap();
        let rows = rows(&pattern);
        let dropped = |position: u64| matches!((position - 1) % 30 + 1, 8 | 12..=14 | 20);
        for places in 0..100 {
            let count = (1..=places).filter(|position| dropped(*position)).count();
            assert_eq!(rows[0].touched(places), count as u64, "{places}");
            let millis = places.clamp(5, 9) - 5;
            assert_eq!(rows[1].touched(places), millis, "{places}");
        }
        assert_eq!(length(&pattern, Axis::Packets), 30);
        assert_eq!(length(&pattern, Axis::Millis), 9);
    }
}
