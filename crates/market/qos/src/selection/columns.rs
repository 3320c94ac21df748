//! Values of a table in columns of 32 bits, for a scan of many offers per step.
//!
//! The scan skips offers that are certainly inadequate. Times are rounded down and bounds up, to microseconds, so it
//! skips no adequate one; the caller compares the exact values of what it finds.

use std::ops::Range;

use super::terms::Percentile;

/// Rows per step: one cache line of each column.
const STEP: usize = 16;

/// Times, reliabilities and shares of success of a step.
type StepOf<'c> = (&'c [u32; STEP], &'c [u32; STEP], &'c [u32; STEP]);

/// Columns in the order of the rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    /// The longer of the promised time and of the measured median.
    p50: Vec<u32>,
    /// The longer of the promised time and of the measured 99th percentile.
    p99: Vec<u32>,
    reliability: Vec<u32>,
    success: Vec<u32>,
}

/// Bounds on the values of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnBounds {
    pub(super) percentile: Percentile,
    /// Nanoseconds.
    pub(super) time: u64,
    pub(super) reliability: u32,
    pub(super) success: u32,
}

impl Columns {
    /// Appends a row. Times are in nanoseconds.
    pub(super) fn push(&mut self, time: u64, p50: u64, p99: u64, reliability: u32, success: u32) {
        let micros = |nanos: u64| u32::try_from(nanos / 1000).unwrap_or(u32::MAX);
        self.p50.push(micros(time.max(p50)));
        self.p99.push(micros(time.max(p99)));
        self.reliability.push(reliability);
        self.success.push(success);
    }

    /// Position of the first row in `positions` that may be within the bounds.
    pub(super) fn first(&self, positions: Range<usize>, bounds: &ColumnBounds) -> Option<usize> {
        let times = match bounds.percentile {
            Percentile::P50 => &self.p50,
            Percentile::P99 => &self.p99,
        };
        let time = u32::try_from(bounds.time.div_ceil(1000)).unwrap_or(u32::MAX);
        let is_within = |time_of: u32, reliability: u32, success: u32| {
            (time_of <= time) & (reliability >= bounds.reliability) & (success >= bounds.success)
        };
        let mut position = positions.start;
        while position < positions.end {
            let end = positions.end.min(position + STEP);
            let may_be = match self.step(times, position) {
                // Without an early end, so that the compiler uses vectors.
                Some((times, reliability, success)) => (0..STEP).fold(false, |any, row| {
                    any | is_within(times[row], reliability[row], success[row])
                }),
                None => true,
            };
            if may_be {
                let is_within = |row: &usize| {
                    is_within(times[*row], self.reliability[*row], self.success[*row])
                };
                if let Some(found) = (position..end).find(is_within) {
                    return Some(found);
                }
            }
            position = end;
        }
        None
    }

    /// The values of a whole step from a position on. `None` if there are fewer rows.
    fn step<'c>(&'c self, times: &'c [u32], position: usize) -> Option<StepOf<'c>> {
        let times = times[position..].first_chunk()?;
        let reliability = self.reliability[position..].first_chunk()?;
        let success = self.success[position..].first_chunk()?;
        Some((times, reliability, success))
    }
}
