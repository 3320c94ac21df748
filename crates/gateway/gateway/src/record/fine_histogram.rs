//! Histograms of times that are fine enough for percentiles.
//!
//! Buckets are log-linear ([`LogBucket`]): each power of two is divided into 16 of the same width. A percentile is
//! reported as the upper bound of its bucket, so it is never too low, and too high by at most 1/16 (6.25 %) or 1 µs.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use posthaste_units::{LogBucket, Span};

/// Powers of two that are divided: 2^4 µs to 2^28 µs, about 268 s. Shorter times have buckets of 1 µs.
const POWERS: usize = 24;
/// Number of buckets, without the times beyond the last.
const BUCKETS: usize = LogBucket::PARTS * (POWERS + 1);

/// A histogram of times, shared by threads. The last count is that of the times beyond all buckets.
#[derive(Debug)]
pub(crate) struct FineHistogram([AtomicU64; BUCKETS + 1]);

/// Counts of a [`FineHistogram`] at one moment, or their growth since an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimeCounts(Vec<u64>);

/// Growth of a [`FineHistogram`]: the buckets that grew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeGrowth(Vec<(u16, u64)>);

/// A percentile of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Percentile {
    /// Nothing was measured.
    NoData,
    /// Upper bound of the percentile.
    Below(Span),
    /// The percentile lies beyond the last bound.
    Beyond,
    /// The percentile lies among the failed requests, which count as slower than the slowest counted time. That took
    /// at least this long; zero if none was counted.
    Failed { at_least: Span },
}

impl Default for FineHistogram {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; BUCKETS + 1])
    }
}

impl FineHistogram {
    pub(crate) fn add(&self, time: Span) {
        self.0[bucket(time)].fetch_add(1, Relaxed);
    }

    /// The current counts.
    pub(crate) fn counts(&self) -> TimeCounts {
        TimeCounts(self.0.iter().map(|count| count.load(Relaxed)).collect())
    }
}

/// Returns the index of the bucket of a time.
fn bucket(time: Span) -> usize {
    let micros = time.as_nanos() / 1000;
    LogBucket::containing(micros).0.min(BUCKETS)
}

/// Returns the upper bound of a bucket. `None` if it has none.
fn upper_bound(bucket: usize) -> Option<Span> {
    (bucket < BUCKETS).then(|| Span::from_micros(LogBucket(bucket).end()))
}

/// Returns the lower bound of a bucket.
fn lower_bound(bucket: usize) -> Span {
    let before = bucket.checked_sub(1).and_then(upper_bound);
    before.unwrap_or(Span::ZERO)
}

impl TimeCounts {
    /// The growth since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> TimeGrowth {
        let pairs = (0..).zip(self.0.iter().zip(&earlier.0));
        let grown = pairs.map(|(bucket, (now, then))| (bucket, now.saturating_sub(*then)));
        TimeGrowth(grown.filter(|(_, count)| *count > 0).collect())
    }
}

impl TimeGrowth {
    /// Times counted.
    pub(crate) fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// The sum of several.
    pub(crate) fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut counts = [0; BUCKETS + 1];
        for (bucket, count) in all.into_iter().flat_map(|growth| &growth.0) {
            counts[usize::from(*bucket)] += count;
        }
        let counted = (0..).zip(counts).filter(|(_, count)| *count > 0);
        Self(counted.collect())
    }

    /// Returns a percentile by nearest rank, where `failed` further requests took longer than every counted time.
    pub(crate) fn percentile(&self, percent: u64, failed: u64) -> Percentile {
        debug_assert!((1..=100).contains(&percent), "{percent} is no percentile");
        let all = self.total() + failed;
        if all == 0 {
            return Percentile::NoData;
        }
        let mut left = (all * percent).div_ceil(100);
        for (bucket, count) in &self.0 {
            if left <= *count {
                let bound = upper_bound(usize::from(*bucket));
                return bound.map_or(Percentile::Beyond, Percentile::Below);
            }
            left -= count;
        }
        let slowest = self.0.last();
        let at_least = slowest.map_or(Span::ZERO, |(bucket, _)| lower_bound(usize::from(*bucket)));
        Percentile::Failed { at_least }
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt as _, SeedableRng as _};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    fn growth(times: &[u64]) -> TimeGrowth {
        let histogram = FineHistogram::default();
        let before = histogram.counts();
        for nanos in times {
            histogram.add(Span::from_nanos(*nanos));
        }
        histogram.counts().since(&before)
    }

    #[test]
    fn every_bucket_ends_where_the_next_begins() {
        let mut start = 0_u64;
        for index in 0..BUCKETS {
            let end = upper_bound(index).unwrap().as_nanos();
            assert_eq!(bucket(Span::from_nanos(start)), index);
            assert_eq!(bucket(Span::from_nanos(end - 1)), index);
            assert!(
                end - start <= (start / 16).max(1000),
                "{index}: {start} to {end}"
            );
            start = end;
        }
        assert_eq!(bucket(Span::from_nanos(start)), BUCKETS);
        assert_eq!(bucket(Span::MAX), BUCKETS);
        assert_eq!(start, 1000 << 28);
    }

    /// The oracle sorts the times.
    #[test]
    fn percentiles_are_those_of_sorted_times_and_never_too_low() {
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(7);
        for round in 0..200 {
            let count = draws.random_range(1..400_u64);
            let failed = draws.random_range(0..40_u64) * (round % 2);
            let mut times: Vec<u64> = (0..count)
                .map(|_| (draws.random::<f64>() * 24.0).exp2() as u64 * 1000 + 17)
                .collect();
            let growth = growth(&times);
            times.sort_unstable();
            for percent in [1, 50, 90, 99, 100] {
                let rank = ((count + failed) * percent).div_ceil(100);
                let shown = growth.percentile(percent, failed);
                let Some(exact) = times.get(rank as usize - 1) else {
                    let Percentile::Failed { at_least } = shown else {
                        panic!("{shown:?} among failures");
                    };
                    let slowest = times[times.len() - 1];
                    let least = slowest - (slowest / 16).max(1000).min(slowest);
                    assert!((least..=slowest).contains(&at_least.as_nanos()));
                    continue;
                };
                let Percentile::Below(bound) = shown else {
                    panic!("{shown:?} for {exact}");
                };
                let most = exact + (exact / 16).max(1000);
                assert!(
                    (*exact..=most).contains(&bound.as_nanos()),
                    "{bound} for {exact}"
                );
            }
        }
    }

    #[test]
    fn failures_never_make_a_percentile_shorter() {
        let times = growth(&[5_000_000; 98]);
        assert_eq!(times.percentile(50, 0), times.percentile(50, 2));
        let failed = |millis: u64, micros: u64| Percentile::Failed {
            at_least: Span::from_millis(millis) + Span::from_micros(micros),
        };
        assert_eq!(times.percentile(99, 1), failed(4, 864));
        assert_eq!(times.percentile(50, 99), failed(4, 864));
        assert_eq!(growth(&[]).percentile(50, 1), failed(0, 0));
        assert_eq!(growth(&[]).percentile(50, 0), Percentile::NoData);
        // Beyond the last bucket.
        assert_eq!(
            growth(&[300_000_000_000]).percentile(50, 0),
            Percentile::Beyond
        );
    }

    #[test]
    fn the_sum_of_parts_is_the_whole() {
        let (one, other) = (growth(&[10, 20_000, 5_000_000]), growth(&[20_000, 7]));
        let whole = growth(&[10, 20_000, 5_000_000, 20_000, 7]);
        assert_eq!(TimeGrowth::sum([&one, &other]), whole);
        assert_eq!(whole.total(), 5);
    }
}
