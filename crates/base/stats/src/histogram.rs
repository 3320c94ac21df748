//! A histogram of times: any number of values in constant memory.
//!
//! The buckets are those of HdrHistogram (three significant digits), and so is the log format, a standard of many
//! tools. The sum, minimum and maximum are stored separately, so mean and maximum have no rounding error. The order in
//! time belongs to the recorder.

use std::io::Write;

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};
use posthaste_units::Span;

/// Upper limit of values: 2^44 ns, a little under five hours. Longer values count as this.
pub(crate) const LONGEST: u64 = 1 << 44;

/// Values of one quantity, with a relative resolution of 1/1000; at most 290 kB.
///
/// Values above 2^44 ns (4.9 h) are counted as 2^44 ns, so none is lost.
#[derive(Clone, Debug)]
pub struct Histogram {
    pub(crate) bins: hdrhistogram::Histogram<u64>,
    pub(crate) sum: u128,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// A non-empty bin, for percentile curves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HistogramStep {
    /// Largest value of the bin, never above the largest recorded.
    pub value: Span,
    /// Number of values in the bin.
    pub count: u64,
    /// Share of all values in this bin or below, 0 to 1.
    pub share: f64,
}

/// One line of an interval log: a histogram and the interval of the run that it covers.
#[derive(Clone, Copy, Debug)]
pub struct LogInterval<'a> {
    /// Name that distinguishes the line from others of the same interval; without comma, space or line break.
    pub tag: &'a str,
    /// Start of the interval, since the run's start.
    pub start: Span,
    /// Length of the interval.
    pub length: Span,
    /// Values recorded in it.
    pub histogram: &'a Histogram,
}

/// Error of writing a log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The writer failed.
    #[error("cannot write the histogram log: {0}")]
    Io(#[from] std::io::Error),
    /// An invalid tag.
    #[error("histogram tag {0:?} must be without comma, space and line break")]
    Tag(String),
    /// The counts exceed the format's range (above 2^63).
    #[error("cannot encode the histogram of {0:?}: {1}")]
    Encode(String, String),
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        let mut bins =
            hdrhistogram::Histogram::new_with_bounds(1, 2, 3).expect("the bounds are constants");
        bins.auto(true);
        Self {
            bins,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Counts one value in some nanoseconds. Allocates only if a value is longer than any before.
    pub fn record(&mut self, value: Span) {
        self.record_many(value, 1);
    }

    /// Counts a time so many times.
    #[inline]
    pub fn record_many(&mut self, value: Span, count: u64) {
        if count == 0 {
            return;
        }
        let ns = value.as_nanos().min(LONGEST);
        self.bins
            .record_n(ns, count)
            .expect("bins grow as far as LONGEST");
        self.sum += u128::from(ns) * u128::from(count);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        debug_assert!(
            self.sum >= u128::from(self.max),
            "the sum is less than a value"
        );
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count() == 0 {
            return;
        }
        let values = self.count() + other.count();
        self.bins
            .add(&other.bins)
            .expect("bins grow as far as LONGEST");
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        debug_assert_eq!(self.count(), values, "a merge loses or makes up values");
    }

    /// Removes all values and keeps the memory.
    pub fn clear(&mut self) {
        if self.count() > 0 {
            self.bins.reset();
        }
        (self.sum, self.min, self.max) = (0, u64::MAX, 0);
    }

    /// Number of recorded values.
    pub fn count(&self) -> u64 {
        self.bins.len()
    }

    /// The mean, exact to the nanosecond; zero when empty.
    pub fn mean(&self) -> Span {
        Span::from_nanos(self.mean_nanos().round() as u64)
    }

    /// The smallest value, exact; zero when empty.
    pub fn min(&self) -> Span {
        Span::from_nanos(self.min.min(self.max))
    }

    /// The largest value, exact up to 2^44 ns; zero when empty.
    pub fn max(&self) -> Span {
        Span::from_nanos(self.max)
    }

    /// Value that a share `quantile` (0 to 1) of all values do not exceed; zero when empty.
    ///
    /// It is the upper edge of its bin: at most 0.1 % above the true order statistic, never below.
    pub fn quantile(&self, quantile: f64) -> Span {
        let edge = self.bins.value_at_quantile(quantile.clamp(0.0, 1.0));
        Span::from_nanos(edge.clamp(self.min.min(self.max), self.max))
    }

    /// Number of values above `value`, excluding those in its own bin (0.1 % wide).
    pub fn count_above(&self, value: Span) -> u64 {
        self.count_from(self.bins.next_non_equivalent(value.as_nanos()))
    }

    /// The non-empty bins, in ascending order.
    pub fn steps(&self) -> impl Iterator<Item = HistogramStep> + '_ {
        let total = self.count() as f64;
        let mut below = 0;
        self.bins.iter_recorded().map(move |bin| {
            let count = bin.count_at_value();
            below += count;
            HistogramStep {
                value: Span::from_nanos(bin.value_iterated_to().min(self.max)),
                count,
                share: below as f64 / total,
            }
        })
    }

    /// The mean in nanoseconds with fraction.
    pub(crate) fn mean_nanos(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            count => self.sum as f64 / count as f64,
        }
    }

    /// Number of values in bins that begin at or above `ns`.
    pub(crate) fn count_from(&self, ns: u64) -> u64 {
        if ns > self.max {
            return 0;
        }
        self.bins.count_between(ns, self.max)
    }

    /// The first and last nanosecond of the bin of `ns`.
    pub(crate) fn bin(&self, ns: u64) -> (u64, u64) {
        (
            self.bins.lowest_equivalent(ns),
            self.bins.highest_equivalent(ns),
        )
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Histogram {
    /// Compares the recorded values and ignores the capacity of the bins.
    fn eq(&self, other: &Self) -> bool {
        (self.sum, self.min, self.max) == (other.sum, other.min, other.max)
            && self.steps().eq(other.steps())
    }
}

/// Writes an interval log (text, V2 compressed) for HdrHistogram's tools.
///
/// Values are nanoseconds. The readable maximum of each line is in milliseconds. Times are relative to the run's start.
/// A caller that needs the absolute start adds it as a comment, because there is no clock here.
///
/// # Errors
/// An invalid tag, counts beyond the format's range, or a failure of `out`.
pub fn write_log(
    out: &mut impl Write,
    comments: &[&str],
    intervals: &[LogInterval<'_>],
) -> Result<(), LogError> {
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.with_max_value_divisor(1e6);
    for comment in comments {
        builder.add_comment(comment);
    }
    let mut log = builder.begin_log_with(out, &mut serializer)?;
    for line in intervals {
        let tag = Tag::new(line.tag).ok_or_else(|| LogError::Tag(line.tag.to_owned()))?;
        let (start, length) = (line.start.into(), line.length.into());
        log.write_histogram(&line.histogram.bins, start, length, Some(tag))
            .map_err(|error| match error {
                IntervalLogWriterError::IoError(error) => LogError::Io(error),
                IntervalLogWriterError::SerializeError(error) => {
                    LogError::Encode(line.tag.to_owned(), error.to_string())
                }
            })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use proptest::prelude::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for &ns in values {
            histogram.record(Span::from_nanos(ns));
        }
        histogram
    }

    #[test]
    fn empty_is_zero_everywhere() {
        let empty = Histogram::new();
        assert_eq!((empty.count(), empty.mean()), (0, Span::ZERO));
        assert_eq!((empty.min(), empty.max()), (Span::ZERO, Span::ZERO));
        assert_eq!(empty.quantile(0.99), Span::ZERO);
        assert_eq!(empty.count_above(Span::ZERO), 0);
        assert_eq!(empty.steps().count(), 0);
    }

    #[test]
    fn values_too_long_are_counted() {
        let histogram = histogram(&[5, u64::MAX, LONGEST + 1, LONGEST]);
        assert_eq!(histogram.count(), 4);
        assert_eq!(histogram.max().as_nanos(), LONGEST);
        assert_eq!(histogram.count_above(Span::from_secs(3600)), 3);
    }

    #[test]
    fn odd_quantiles_are_no_trap() {
        let histogram = histogram(&[1_000, 2_000]);
        for quantile in [-1.0, 0.0, f64::NAN] {
            assert_eq!(histogram.quantile(quantile).as_nanos(), 1_000);
        }
        assert_eq!(histogram.quantile(7.0).as_nanos(), 2_000);
    }

    #[test]
    fn log_is_read_back_by_its_own_reader() {
        let (first, second) = (histogram(&[10, 20_000, 3_000_000_000]), histogram(&[7]));
        let line = |tag, histogram| LogInterval {
            tag,
            start: Span::from_millis(250),
            length: Span::from_secs(3),
            histogram,
        };
        let mut text = Vec::new();
        let lines = [line("response", &first), line("service", &second)];
        write_log(&mut text, &["posthaste"], &lines).unwrap();
        let read: Vec<_> = IntervalLogIterator::new(&text)
            .filter_map(|entry| match entry.unwrap() {
                LogEntry::Interval(interval) => Some(interval),
                _ => None,
            })
            .collect();
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].tag().unwrap().as_str(), "response");
        assert_eq!(Span::from(read[0].start_timestamp()), lines[0].start);
        let encoded = read[0].encoded_histogram();
        assert!(encoded.starts_with("HISTFAAA"), "compressed V2: {encoded}");
        let bytes = STANDARD.decode(encoded).unwrap();
        let back: hdrhistogram::Histogram<u64> =
            Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
        assert_eq!(back, first.bins);
    }

    #[test]
    fn a_tag_that_breaks_the_line_is_refused() {
        let histogram = histogram(&[1]);
        let line = LogInterval {
            tag: "a,b",
            start: Span::ZERO,
            length: Span::ZERO,
            histogram: &histogram,
        };
        let error = write_log(&mut Vec::new(), &[], &[line]).unwrap_err();
        assert!(error.to_string().contains("\"a,b\""), "{error}");
    }

    proptest! {
        #[test]
        fn quantiles_are_order_statistics_to_a_thousandth(
            mut values in prop::collection::vec(0u64..100_000_000_000, 1..300),
            share in 0.001f64..1.0,
        ) {
            let histogram = histogram(&values);
            values.sort_unstable();
            let rank = (share * values.len() as f64).ceil() as usize;
            let truth = values[rank - 1];
            let found = histogram.quantile(share).as_nanos();
            prop_assert!(found >= truth && found as f64 <= truth as f64 * 1.001 + 1.0);
            let above = histogram.count_above(Span::from_nanos(found)) as usize;
            prop_assert_eq!(above, values.iter().filter(|&&value| value > found).count());
            let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
            prop_assert!((histogram.mean().as_nanos() as f64 - mean).abs() <= 1.0);
            prop_assert_eq!(histogram.min().as_nanos(), values[0]);
            prop_assert_eq!(histogram.steps().map(|step| step.count).sum::<u64>(), histogram.count());
        }

        #[test]
        fn merging_is_recording_both(
            one in prop::collection::vec(any::<u64>(), 0..50),
            other in prop::collection::vec(0u64..1_000_000, 0..50),
        ) {
            let mut merged = histogram(&one);
            merged.merge(&histogram(&other));
            let mut both = one;
            both.extend(other);
            prop_assert_eq!(merged, histogram(&both));
        }
    }
}
