//! A set of sequence numbers as ranges, bounded in memory.

use std::collections::BTreeMap;

use thiserror::Error;

/// Maximum number of ranges.
const MAX_RANGES: usize = 4096;

/// Sequence numbers that were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceSet {
    /// First number of each range, and the number after its last one. Ranges do not touch.
    ranges: BTreeMap<u64, u64>,
}

/// More gaps than any interruption leaves.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("too many sequence numbers are missing")]
pub struct TooScattered;

impl SequenceSet {
    /// Adds a number below the maximum of `u64`. Returns false if it was there.
    pub fn insert(&mut self, number: u64) -> Result<bool, TooScattered> {
        let before = self.ranges.range(..=number).next_back();
        let before = before.map(|(first, end)| (*first, *end));
        if before.is_some_and(|(_, end)| number < end) {
            return Ok(false);
        }
        let after = number.saturating_add(1);
        let next_end = self.ranges.get(&after).copied();
        let touched = before.filter(|(_, end)| *end == number);
        if touched.is_none() && next_end.is_none() && self.ranges.len() == MAX_RANGES {
            return Err(TooScattered);
        }
        if next_end.is_some() {
            self.ranges.remove(&after);
        }
        let first = touched.map_or(number, |(first, _)| first);
        let end = next_end.unwrap_or(after);
        self.ranges.insert(first, end);
        debug_assert!(
            first < end && !self.ranges.contains_key(&end),
            "ranges are not empty and do not touch"
        );
        Ok(true)
    }

    /// True if the number was added.
    pub fn contains(&self, number: u64) -> bool {
        let before = self.ranges.range(..=number).next_back();
        before.is_some_and(|(_, end)| number < *end)
    }

    /// Number of values from 0 on without a gap.
    pub fn contiguous(&self) -> u64 {
        self.ranges.get(&0).copied().unwrap_or(0)
    }

    /// The number after the highest one.
    pub fn end(&self) -> u64 {
        self.ranges.values().next_back().copied().unwrap_or(0)
    }

    /// True if a number below the highest one is missing.
    pub fn has_gap(&self) -> bool {
        self.end() != self.contiguous()
    }
}
