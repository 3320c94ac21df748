//! Times with their moments, as needed for valid intervals.
//!
//! A recorder divides the run into at most 64 batches of equal width. Each has a count, a sum, a sum of squares and a
//! coarse histogram. When time exceeds the last batch, neighbours merge and the width doubles. Memory is therefore
//! constant, and the same initial width serves runs of a second and of a day.
//!
//! Batches start at multiples of a power of two of nanoseconds since the run's start, the same for every thread, and
//! all sums are integers. Merged recorders therefore equal one that recorded everything. `dependence` and `interval`
//! evaluate the batches.

use hdrhistogram::Histogram as Bins;
use posthaste_units::Span;

use crate::histogram::LONGEST;
use crate::{CensoredHistogram, Histogram};

/// Maximum number of batches; a power of two.
pub(crate) const BATCHES: usize = 64;
/// Initial width of batches: 2^20 ns, about a millisecond.
pub(crate) const FIRST_SHIFT: u32 = 20;

/// A [`CensoredHistogram`] that also records the distribution of its values over time; under 1.5 MB.
#[derive(Clone, Debug)]
pub struct Recorder {
    pub(crate) all: CensoredHistogram,
    /// A batch is 2^shift ns wide.
    pub(crate) shift: u32,
    pub(crate) batches: Vec<Bucket>,
    /// Empty buckets of former batches, for the next ones.
    spare: Vec<Bucket>,
}

/// An interval of time and the values in it, for plots over time.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Start of the batch, since the run's start.
    pub start: Span,
    /// Length of the batch.
    pub width: Span,
    bucket: &'a Bucket,
}

/// Data of one batch.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    /// Number of known values.
    pub(crate) count: u64,
    /// Number of values without a known time: above every threshold.
    pub(crate) censored: u64,
    /// Sum in nanoseconds.
    pub(crate) sum: u128,
    /// Sum in square nanoseconds.
    pub(crate) sum_of_squares: u128,
    /// Two significant digits from a microsecond up. A bin counts up to 2^32 values, which one batch reaches at
    /// 200,000/s after two weeks of equal values. `count` continues after that.
    pub(crate) bins: Bins<u32>,
}

impl Recorder {
    /// Shortest interval of time that a recorder tells apart.
    pub const FINEST: Span = Span::from_nanos(1 << FIRST_SHIFT);

    /// An empty recorder.
    pub fn new() -> Self {
        Self {
            all: CensoredHistogram::new(),
            shift: FIRST_SHIFT,
            batches: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Removes all values and keeps the memory. Batches have their initial width again.
    pub fn clear(&mut self) {
        self.all.clear();
        self.shift = FIRST_SHIFT;
        self.keep(0);
    }

    /// Counts `value` at the moment `at` since the run's start.
    ///
    /// Moments may come in any order. One far in the future widens the batches permanently.
    pub fn record(&mut self, at: Span, value: Span) {
        self.batch_of(at).record(value);
        self.all.record(value);
    }

    /// Counts a request without a time, as in [`CensoredHistogram::record_censored`].
    pub fn record_censored(&mut self, at: Span, waited: Option<Span>) {
        self.record_many_censored(at, waited, 1);
    }

    /// Counts several requests without a time. They are recorded at one moment, so all of them have to be within
    /// [`Self::FINEST`], counted from the run's start.
    pub fn record_many_censored(&mut self, at: Span, waited: Option<Span>, count: u64) {
        self.batch_of(at).censored += count;
        self.all.record_many_censored(waited, count);
    }

    /// Adds all values of `other`. Its run must have the same start.
    pub fn merge(&mut self, other: &Self) {
        let values = self.all.count() + other.all.count();
        while self.shift < other.shift {
            self.widen();
        }
        let apart = other.shift.abs_diff(self.shift);
        for (index, bucket) in other.batches.iter().enumerate() {
            let target = index >> apart;
            self.extend(target);
            self.batches[target].merge(bucket);
        }
        self.all.merge(&other.all);
        debug_assert_eq!(self.all.count(), values, "a merge loses or makes up values");
        self.assert_conserved();
    }

    /// Panics unless the batches hold each value once. Checked in debug builds.
    fn assert_conserved(&self) {
        if cfg!(debug_assertions) {
            assert!(self.batches.len() <= BATCHES, "too many batches");
            let count = self.batches.iter().map(Bucket::total).sum::<u64>();
            assert_eq!(count, self.all.count(), "batches and distribution differ");
        }
    }

    /// All values, from all moments.
    pub fn distribution(&self) -> &CensoredHistogram {
        &self.all
    }

    /// The known values alone.
    pub fn histogram(&self) -> &Histogram {
        self.all.known()
    }

    /// The run so far in at most 64 intervals of equal width, from the start on.
    ///
    /// Later values may fall into any of them. The last is usually incomplete.
    pub fn batches(&self) -> impl Iterator<Item = Batch<'_>> {
        let width = Span::from_nanos(1 << self.shift);
        self.batches
            .iter()
            .enumerate()
            .map(move |(index, bucket)| Batch {
                start: width * index as u64,
                width,
                bucket,
            })
    }

    pub(crate) fn buckets(&self) -> &[Bucket] {
        &self.batches
    }

    /// The batch of the moment `at`.
    fn batch_of(&mut self, at: Span) -> &mut Bucket {
        if at.as_nanos() >> self.shift >= self.batches.len() as u64 {
            self.reach(at);
        }
        &mut self.batches[(at.as_nanos() >> self.shift) as usize]
    }

    /// Creates the batches up to `at`.
    #[cold]
    fn reach(&mut self, at: Span) {
        while at.as_nanos() >> self.shift >= BATCHES as u64 {
            self.widen();
        }
        self.extend((at.as_nanos() >> self.shift) as usize);
    }

    /// Creates the batches up to this index.
    pub(crate) fn extend(&mut self, index: usize) {
        while self.batches.len() <= index {
            let bucket = self.spare.pop().unwrap_or_else(Bucket::new);
            self.batches.push(bucket);
        }
    }

    /// Merges each batch with its neighbour.
    fn widen(&mut self) {
        self.shift += 1;
        let pairs = self.batches.len().div_ceil(2);
        for pair in 0..pairs {
            self.batches.swap(pair, 2 * pair);
            let (left, right) = self.batches.split_at_mut(2 * pair + 1);
            if let Some(neighbour) = right.first() {
                left[pair].merge(neighbour);
            }
        }
        self.keep(pairs);
        self.assert_conserved();
    }

    /// Empties all but the first `count` batches and keeps their memory.
    fn keep(&mut self, count: usize) {
        for mut bucket in self.batches.drain(count..) {
            bucket.clear();
            self.spare.push(bucket);
        }
        debug_assert!(
            self.batches.len() + self.spare.len() <= BATCHES,
            "more buckets than batches"
        );
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Recorder {
    /// Compares the recorded values and their times, within the resolution.
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all && self.shift == other.shift && self.batches == other.batches
    }
}

impl Batch<'_> {
    /// Number of values in the batch, known and censored.
    pub fn count(&self) -> u64 {
        self.bucket.total()
    }

    /// Number of values without a known time.
    pub fn censored(&self) -> u64 {
        self.bucket.censored
    }

    /// Mean of the values; `None` without values or if some have no known time.
    pub fn mean(&self) -> Option<Span> {
        (self.bucket.count > 0 && self.bucket.censored == 0).then(|| {
            let mean = self.bucket.sum / u128::from(self.bucket.count);
            Span::from_nanos(mean as u64)
        })
    }

    /// Value that a share `quantile` of the values do not exceed, with two significant digits and no finer than half a
    /// microsecond. `None` without values or if it has no known time.
    pub fn quantile(&self, quantile: f64) -> Option<Span> {
        let Bucket { bins, count, .. } = self.bucket;
        let rank = quantile.clamp(0.0, 1.0) * self.count() as f64;
        let known = (*count > 0).then(|| rank / *count as f64)?;
        (known <= 1.0).then(|| Span::from_nanos(bins.value_at_quantile(known)))
    }
}

impl Bucket {
    pub(crate) fn new() -> Self {
        let mut bins = Bins::new_with_bounds(1_000, 2_000, 2).expect("the bounds are constants");
        bins.auto(true);
        Self {
            count: 0,
            censored: 0,
            sum: 0,
            sum_of_squares: 0,
            bins,
        }
    }

    fn record(&mut self, value: Span) {
        let ns = value.as_nanos().min(LONGEST);
        self.count += 1;
        self.sum += u128::from(ns);
        self.sum_of_squares += u128::from(ns) * u128::from(ns);
        self.bins.record(ns).expect("bins grow as far as LONGEST");
    }

    /// Number of values, known and censored.
    pub(crate) fn total(&self) -> u64 {
        self.count + self.censored
    }

    fn clear(&mut self) {
        if self.total() > 0 {
            self.bins.reset();
        }
        (self.count, self.censored) = (0, 0);
        (self.sum, self.sum_of_squares) = (0, 0);
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.censored += other.censored;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        if other.count > 0 {
            self.bins
                .add(&other.bins)
                .expect("bins grow as far as LONGEST");
        }
    }

    /// The first and last nanosecond of the coarse bin of `ns`: the same in every bucket.
    pub(crate) fn bin(&self, ns: u64) -> (u64, u64) {
        (
            self.bins.lowest_equivalent(ns),
            self.bins.highest_equivalent(ns),
        )
    }

    /// Number of values in the coarse bin of `ns`, and in the bins above it. Censored values are above.
    pub(crate) fn count_in_and_above(&self, ns: u64) -> (u64, u64) {
        let next = self.bins.next_non_equivalent(ns);
        let above = if next > self.bins.max() {
            0
        } else {
            self.bins.count_between(next, self.bins.max())
        };
        // Beyond the last bin, the library returns the count of the last bin.
        let within = if self.bins.lowest_equivalent(ns) > self.bins.max() {
            0
        } else {
            u64::from(self.bins.count_at(ns))
        };
        (within, above + self.censored)
    }
}

impl PartialEq for Bucket {
    fn eq(&self, other: &Self) -> bool {
        let bins = |bucket: &Self| -> Vec<(u64, u32)> {
            let recorded = bucket.bins.iter_recorded();
            recorded
                .map(|bin| (bin.value_iterated_to(), bin.count_at_value()))
                .collect()
        };
        let sums = |bucket: &Self| {
            (
                bucket.count,
                bucket.censored,
                bucket.sum,
                bucket.sum_of_squares,
            )
        };
        sums(self) == sums(other) && bins(self) == bins(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recorder_from<'a>(values: impl IntoIterator<Item = &'a (u64, u64)>) -> Recorder {
        let mut recorder = Recorder::new();
        for &(at, value) in values {
            recorder.record(Span::from_nanos(at), Span::from_nanos(value));
        }
        recorder
    }

    #[test]
    fn batches_double_in_width_and_keep_everything() {
        let mut recorder = Recorder::new();
        for ms in 0..10_000 {
            recorder.record(Span::from_millis(ms), Span::from_micros(ms));
        }
        let batches: Vec<_> = recorder.batches().collect();
        assert!((BATCHES / 2..=BATCHES).contains(&batches.len()));
        assert_eq!(batches.iter().map(Batch::count).sum::<u64>(), 10_000);
        assert_eq!(batches[0].width, Span::from_nanos(1 << 28));
        let (first, last) = (batches[0].mean().unwrap(), batches[30].mean().unwrap());
        assert!(last > first * 10, "means follow time: {first} {last}");
        let median = batches[30].quantile(0.5).unwrap().as_millis_f64();
        assert!((median / batches[30].mean().unwrap().as_millis_f64() - 1.0).abs() < 0.02);
    }

    #[test]
    fn the_end_of_time_is_no_trap() {
        let recorder = recorder_from(&[(0, 1), (u64::MAX, u64::MAX), (5, 7)]);
        assert_eq!(recorder.histogram().count(), 3);
        assert_eq!(
            recorder.batches().map(|batch| batch.count()).sum::<u64>(),
            3
        );
        assert!(recorder.batches().count() <= BATCHES);
    }

    #[test]
    fn memory_stays_below_its_bound() {
        let mut recorder = Recorder::new();
        for at in 0..BATCHES as u64 {
            recorder.record(Span::from_millis(at), Span::MAX);
        }
        let coarse: usize = recorder
            .buckets()
            .iter()
            .map(|b| b.bins.distinct_values() * 4)
            .sum();
        // The fine histogram adds at most 290 kB.
        assert!(coarse < 1_200_000, "{coarse} bytes of coarse bins");
    }

    #[test]
    fn a_cleared_recorder_uses_its_buckets_again() {
        let mut recorder = Recorder::new();
        for at in 0..BATCHES as u64 {
            recorder.record(Span::from_millis(at), Span::from_secs(1));
        }
        let count = recorder.batches.len();
        recorder.clear();
        assert_eq!((recorder.batches.len(), recorder.spare.len()), (0, count));
        assert!(recorder == Recorder::new());
        // An hour after the start: the earlier batches are empty.
        recorder.record(Span::from_secs(3_600), Span::from_secs(1));
        assert_eq!(recorder.batches.len() + recorder.spare.len(), count);
        assert_eq!(recorder.batches.iter().filter(|b| b.total() > 0).count(), 1);
        recorder.record(Span::from_secs(7_200), Span::from_secs(2));
        assert_eq!(recorder.batches.len() + recorder.spare.len(), count);
        assert_eq!(recorder.histogram().count(), 2);
    }

    proptest! {
        #[test]
        fn merged_threads_equal_one_recorder(
            values in prop::collection::vec((0u64..1 << 33, 0u64..1 << 36, 0usize..3), 0..200),
            stretch in 0u32..20,
        ) {
            let values: Vec<_> = values.into_iter().map(|(at, v, thread)| (at >> stretch, v, thread)).collect();
            let part = |thread| recorder_from(&values.iter().filter(|v| v.2 == thread).map(|v| (v.0, v.1)).collect::<Vec<_>>());
            let mut merged = part(0);
            merged.merge(&part(1));
            merged.merge(&part(2));
            let whole: Vec<_> = values.iter().map(|v| (v.0, v.1)).collect();
            prop_assert!(merged == recorder_from(&whole));
            let backwards = recorder_from(whole.iter().rev());
            prop_assert!(merged == backwards, "the order of arrival must not matter");
        }
    }
}
