//! A bounded set of ranges of offsets: data received out of order, with the order of the last changes.

use crate::Offset;

/// Maximum number of ranges. A receiver with more holes refuses data that would make another one, like stacks with a
/// limited reassembly queue. A window of 64 kB holds at most 45 segments.
const MOST: usize = 256;

/// Disjoint ranges that do not touch, in order, each with the number of its last change.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    ranges: Vec<Range>,
    changes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    start: Offset,
    end: Offset,
    changed: u64,
}

impl Ranges {
    /// Adds `start..end`. Returns false, and adds nothing, if there would be one range too many.
    pub fn add(&mut self, start: Offset, end: Offset) -> bool {
        if start >= end {
            return true;
        }
        let first = self.ranges.partition_point(|range| range.end < start);
        let after = self.ranges.partition_point(|range| range.start <= end);
        if first == after && self.ranges.len() >= MOST {
            return false;
        }
        self.changes += 1;
        let joined = &self.ranges[first..after];
        let range = Range {
            start: joined.first().map_or(start, |range| range.start.min(start)),
            end: joined.last().map_or(end, |range| range.end.max(end)),
            changed: self.changes,
        };
        if first == after {
            self.ranges.insert(first, range);
        } else {
            self.ranges[first] = range;
            self.ranges.drain(first + 1..after);
        }
        self.assert_invariants();
        true
    }

    /// Panics if ranges touch, overlap or are out of order. Checked in debug builds.
    fn assert_invariants(&self) {
        if cfg!(debug_assertions) {
            assert!(self.ranges.len() <= MOST, "a set holds too many ranges");
            let apart = |pair: &[Range]| pair[0].end < pair[1].start;
            assert!(
                self.ranges.windows(2).all(apart),
                "ranges touch or are out of order"
            );
            let sound = |range: &Range| range.start < range.end && range.changed <= self.changes;
            assert!(
                self.ranges.iter().all(sound),
                "a range is empty or from the future"
            );
        }
    }

    /// Returns the end of the contiguous data from `from` on, and removes every range up to it.
    pub fn advance(&mut self, from: Offset) -> Offset {
        let reached = self
            .ranges
            .iter()
            .take_while(|range| range.start <= from)
            .map(|range| range.end)
            .last()
            .map_or(from, |end| end.max(from));
        self.ranges.retain(|range| range.end > reached);
        debug_assert!(reached >= from, "the data in order shrinks");
        debug_assert!(
            self.ranges
                .first()
                .is_none_or(|range| range.start > reached),
            "the contiguous data ends within a range"
        );
        reached
    }

    /// Returns true if the set holds all of `start..end`.
    pub fn covers(&self, start: Offset, end: Offset) -> bool {
        let next = self.ranges.partition_point(|range| range.end < end);
        self.ranges
            .get(next)
            .is_some_and(|range| range.start <= start && end <= range.end)
    }

    /// Returns the range that holds `offset`.
    pub fn around(&self, offset: Offset) -> Option<(Offset, Offset)> {
        self.ranges
            .iter()
            .find(|range| range.start <= offset && offset < range.end)
            .map(|range| (range.start, range.end))
    }

    /// Iterates over the ranges, the last changed first.
    pub fn newest_first(&self) -> impl Iterator<Item = (Offset, Offset)> + '_ {
        let mut before = u64::MAX;
        std::iter::from_fn(move || {
            let next = self
                .ranges
                .iter()
                .filter(|range| range.changed < before)
                .max_by_key(|range| range.changed)?;
            before = next.changed;
            Some((next.start, next.end))
        })
    }

    /// Iterates over the ranges in order.
    pub fn iter(&self) -> impl Iterator<Item = (Offset, Offset)> + '_ {
        self.ranges.iter().map(|range| (range.start, range.end))
    }

    /// End of the last range.
    pub fn end(&self) -> Option<Offset> {
        self.ranges.last().map(|range| range.end)
    }

    /// Returns true if there is no range.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Removes all ranges and keeps the memory.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.changes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_agrees_with_a_list_of_places(
            parts in proptest::collection::vec((0u64..60, 1u64..12), 1..30),
            from in 0u64..60,
        ) {
            let mut ranges = Ranges::default();
            let mut places = [false; 80];
            let mut newest = None;
            for (start, length) in parts {
                prop_assert!(ranges.add(start, start + length));
                places[start as usize..(start + length) as usize].fill(true);
                newest = ranges.around(start);
            }
            prop_assert_eq!(ranges.newest_first().next(), newest);
            prop_assert_eq!(ranges.newest_first().count(), ranges.iter().count());
            for (start, end) in ranges.iter() {
                prop_assert!(ranges.covers(start, end) && !ranges.covers(start, end + 1));
                prop_assert!(places[start as usize..end as usize].iter().all(|come| *come));
                prop_assert!(!places[end as usize] && (start == 0 || !places[start as usize - 1]));
            }
            let expected = (from..).find(|offset| !places[*offset as usize]).unwrap();
            prop_assert_eq!(ranges.advance(from), expected);
            prop_assert!(ranges.iter().all(|(start, _)| start > expected));
        }
    }

    #[test]
    fn it_is_bounded() {
        let mut ranges = Ranges::default();
        for hole in 0..MOST as u64 {
            assert!(ranges.add(3 * hole, 3 * hole + 1));
        }
        assert!(!ranges.add(10_000, 10_001));
        assert!(ranges.add(1, 3), "closes a hole");
        assert!(ranges.add(10_000, 10_001));
    }
}
