//! 95 % intervals of means and quantiles from one run.
//!
//! Assumptions and their consequences:
//! - The run is stationary: no warm-up, no growing queue, no drift. If batches follow a trend, there is no interval.
//! - How many requests share a queue is not known, and a short run that was calm cannot tell. Whether there is an
//!   interval therefore depends on the number of requests, which is planned, and not on the times. Its width is the
//!   largest over batches of several lengths (`dependence`).
//! - The last batch, and a first one that begins after the run's start, are incomplete: estimates use their values,
//!   variances do not.
//! - Times are positive and skewed, so the mean's interval is symmetrical in its logarithm.
//! - A quantile's interval is between order statistics, for any distribution. The ranks are those of a binomial over
//!   the effective number of values. Where no value of the run is far enough from the quantile, the interval is open.
//!
//! An integration test checks this against theory over M/D/1 and M/M/1 at loads 0.5, 0.7 and 0.85 and 1,500 to 10,000
//! requests, 2,000 runs each: 92 to 99 % of the intervals cover, means and quantiles, the fewest at load 0.85.

use posthaste_units::Span;
use statrs::function::beta::beta_reg;

use crate::dependence::{BatchPart, Uncertainty, penalty, ratio_uncertainty};
use crate::recorder::Bucket;
use crate::{Recorder, Time};

/// Minimum number of values for an interval. Over M/M/1 at load 0.85, intervals of the mean cover 81 % after 350 values
/// and 92.0 % after 1,000.
pub const FEWEST_FOR_INTERVAL: u64 = 1_500;
/// Minimum number of values on each side of a quantile for an interval of it.
const FEWEST_BESIDE_QUANTILE: f64 = 15.0;
/// The slowest fortieth of the values decides how uncertain a mean is.
const RARE_FOR_MEAN: f64 = 0.025;
/// Probability beyond either end of an interval.
const TAIL: f64 = 0.025;

/// A statistic of a run with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntervalEstimate {
    /// The statistic; zero without values.
    pub value: Time,
    /// Interval that contains the true value in at least 95 of 100 long runs; `None` with too little data. The upper end
    /// of a quantile may be unknown: above the longest time of the run.
    pub interval: Option<(Time, Time)>,
    /// Equivalent number of independent values, at most the count; `None` as above.
    pub effective_count: Option<f64>,
}

/// Evidence of a share of the values.
#[derive(Clone, Copy, Debug)]
struct ShareEvidence {
    /// Equivalent number of independent values.
    effective: f64,
    /// The same, reduced because it is estimated from few batches.
    independent: f64,
}

impl Recorder {
    /// The mean of all values. Without an interval if some have no known time.
    pub fn mean(&self) -> IntervalEstimate {
        let value = self.distribution().mean();
        let enough = self.distribution().count() >= FEWEST_FOR_INTERVAL;
        let found = value
            .known()
            .filter(|_| enough)
            .and_then(|_| self.mean_uncertainty());
        let Some(found) = found.filter(|found| !found.has_trend) else {
            return IntervalEstimate::bare(value);
        };
        let mean = self.histogram().mean_nanos();
        let half_width = relative_half_width(&found, mean);
        let (low, high) = (mean * (-half_width).exp(), mean * half_width.exp());
        let known = self.histogram();
        IntervalEstimate {
            value,
            interval: Some((
                Time::Known(Span::from_nanos(low.floor() as u64)),
                Time::Known(Span::from_nanos(high.ceil() as u64)),
            )),
            effective_count: Some(effective(
                self.spread(),
                found.variance,
                known.count() as f64,
            )),
        }
    }

    /// Half-width of the mean's 95 % interval in its logarithm, whatever the number of values, and also if they follow a
    /// trend. `None` for runs shorter than 16 batches, and if some values have no known time.
    pub fn mean_half_width(&self) -> Option<f64> {
        self.distribution().mean().known()?;
        let mean = self.histogram().mean_nanos();
        Some(relative_half_width(&self.mean_uncertainty()?, mean))
    }

    /// The value that a share `quantile` (0 to 1, exclusive) of all values do not exceed.
    pub fn quantile(&self, quantile: f64) -> IntervalEstimate {
        let value = self.distribution().quantile(quantile);
        let count = self.distribution().count();
        let beside = count as f64 * quantile.min(1.0 - quantile);
        if count < FEWEST_FOR_INTERVAL || beside < FEWEST_BESIDE_QUANTILE || self.follows_trend() {
            return IntervalEstimate::bare(value);
        }
        let evidence = match value.known() {
            Some(value) => self.known_evidence(value, beside),
            None => self.censored_evidence(beside),
        };
        let Some(evidence) = evidence else {
            return IntervalEstimate::bare(value);
        };
        IntervalEstimate {
            value,
            interval: Some(self.ends(quantile, value, evidence.independent)),
            effective_count: Some(evidence.effective),
        }
    }

    /// Ends of the interval of a quantile by a number of independent values.
    fn ends(&self, quantile: f64, value: Time, independent: f64) -> (Time, Time) {
        let all = self.distribution();
        let (low, high) = ranks(quantile, independent);
        let low = match (low.map(|rank| all.quantile(rank)), value.known()) {
            (None, _) => Time::Known(Span::ZERO),
            (Some(Time::Known(low)), value) => {
                let low = Span::from_nanos(all.known().bin(low.as_nanos()).0);
                Time::Known(low.max(all.known().min()).min(value.unwrap_or(low)))
            }
            (Some(unknown), _) => unknown,
        };
        let high = match (high.map(|rank| all.quantile(rank)), value) {
            (None, _) => all.max().known().map_or(Time::Never, Time::Above),
            (Some(Time::Known(high)), Time::Known(value)) => Time::Known(high.max(value)),
            (Some(high), _) => high,
        };
        (low, high)
    }

    /// Uncertainty of the mean of all known values.
    fn mean_uncertainty(&self) -> Option<Uncertainty> {
        let parts = self.parts(|bucket| (bucket.sum as f64, bucket.count));
        let total = self.histogram().count() as f64;
        let found = ratio_uncertainty(&parts, RARE_FOR_MEAN * total)?;
        let count: f64 = parts.iter().map(|part| part.count).sum();
        Some(Uncertainty {
            variance: found.variance * count / total,
            ..found
        })
    }

    /// Variance of the known values in the complete batches, in square nanoseconds.
    fn spread(&self) -> f64 {
        let kept = self.complete();
        let count: f64 = kept.iter().map(|bucket| bucket.count as f64).sum();
        let mean = kept.iter().map(|bucket| bucket.sum as f64).sum::<f64>() / count;
        let squares: f64 = kept.iter().map(|bucket| bucket.sum_of_squares as f64).sum();
        (squares / count - mean * mean).max(0.0)
    }

    /// True if the known times or the share of unknown ones may grow or fall throughout the run.
    fn follows_trend(&self) -> bool {
        let unknown = self.parts(|bucket| (bucket.censored as f64, bucket.total()));
        let times = self.mean_uncertainty();
        let unknown = ratio_uncertainty(&unknown, f64::INFINITY);
        [times, unknown]
            .into_iter()
            .flatten()
            .any(|found| found.has_trend)
    }

    /// Complete batches as parts of a ratio.
    fn parts(&self, part: impl Fn(&Bucket) -> (f64, u64)) -> Vec<BatchPart> {
        let parts = self.complete().into_iter().map(|bucket| {
            let (sum, count) = part(bucket);
            BatchPart {
                sum,
                count: count as f64,
            }
        });
        parts.collect()
    }

    /// Evidence of the share of values above a known time.
    ///
    /// The batches' coarse bins are split in the proportion of the fine histogram, so that all batches together count
    /// exactly the values above the threshold. Many requests may share the value of a quantile. Dependence is therefore
    /// estimated on both sides of its bin, and the stronger counts.
    fn known_evidence(&self, at: Span, rare: f64) -> Option<ShareEvidence> {
        let known = self.histogram();
        let at = at.as_nanos();
        let (first, last) = self.buckets().first()?.bin(at);
        let (fine_first, fine_last) = known.bin(at);
        let beyond = known.count_from(last + 1);
        let within = (known.count_from(first) - beyond).max(1) as f64;
        let mut weakest: Option<ShareEvidence> = None;
        for threshold in [fine_first, fine_last + 1] {
            let part_above = (known.count_from(threshold) - beyond) as f64 / within;
            let parts = self.parts(|bucket| {
                let (inside, above) = bucket.count_in_and_above(at);
                (above as f64 + part_above * inside as f64, bucket.total())
            });
            let found = self.share_evidence(&parts, rare)?;
            if weakest.is_none_or(|weakest| found.independent <= weakest.independent) {
                weakest = Some(found);
            }
        }
        weakest
    }

    /// The same for a time that is not known, from the share of such values in the batches.
    fn censored_evidence(&self, rare: f64) -> Option<ShareEvidence> {
        let parts = self.parts(|bucket| (bucket.censored as f64, bucket.total()));
        self.share_evidence(&parts, rare)
    }

    /// Evidence of a share. Each part has the number of values above a threshold and of all values.
    fn share_evidence(&self, parts: &[BatchPart], rare: f64) -> Option<ShareEvidence> {
        let total = self.distribution().count() as f64;
        let found = ratio_uncertainty(parts, rare)?;
        let count: f64 = parts.iter().map(|part| part.count).sum();
        let share = parts.iter().map(|part| part.sum).sum::<f64>() / count;
        let spread = share * (1.0 - share);
        let effective = effective(spread, found.variance, count) / count * total;
        Some(ShareEvidence {
            effective,
            independent: effective / penalty(found.student),
        })
    }

    /// Non-empty batches with a complete interval of time.
    pub(crate) fn complete(&self) -> Vec<&Bucket> {
        let buckets = self.buckets();
        let begun = buckets.iter().position(|bucket| bucket.total() > 0);
        // At the run's start a batch is whole; a later first one began in the middle.
        let from = begun.map_or(0, |first| if first == 0 { 0 } else { first + 1 });
        let until = buckets.len().saturating_sub(1).max(from);
        let inner = buckets.get(from..until).unwrap_or_default();
        inner.iter().filter(|bucket| bucket.total() > 0).collect()
    }
}

impl IntervalEstimate {
    fn bare(value: Time) -> Self {
        Self {
            value,
            interval: None,
            effective_count: None,
        }
    }
}

/// Half-width of the 95 % interval of a mean in its logarithm.
fn relative_half_width(found: &Uncertainty, mean: f64) -> f64 {
    if mean > 0.0 {
        found.half_width() / mean
    } else {
        0.0
    }
}

/// Number of independent values of variance `spread` with a mean of variance `variance`. At most the count:
/// smaller differences between batches than chance predicts are due to chance as well.
fn effective(spread: f64, variance: f64, count: f64) -> f64 {
    if variance * count <= spread {
        count
    } else {
        spread / variance
    }
}

/// The shares of a sample of `number` (not whole) independent values between whose order statistics the true `quantile`
/// lies with 95 %, 2.5 % on each side. `None` for an end that no order statistic reaches: all values may lie on one side
/// of the quantile.
///
/// The lower share is the mean share below the value of that rank, because the largest of few independent values lies
/// well below the largest of the run.
///
/// P(at most k - 1 of n values lie below the quantile) is an incomplete beta function, which is also defined between
/// whole k. Found by bisection.
fn ranks(quantile: f64, number: f64) -> (Option<f64>, Option<f64>) {
    let fewer_than = |rank: f64| match rank {
        rank if rank <= 0.0 => 0.0,
        rank if rank >= number => 1.0,
        rank => beta_reg(number - rank + 1.0, rank, 1.0 - quantile),
    };
    // Neighbouring ranks of a large number differ by more than a millionth.
    let tolerance = (4.0 * f64::EPSILON * number).max(1e-6);
    let rank_at = |probability: f64| {
        let (mut low, mut high) = (0.0, number);
        while high - low > tolerance {
            let middle = 0.5 * (low + high);
            if fewer_than(middle) <= probability {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low + high)
    };
    let all_above = (1.0 - quantile).powf(number);
    let all_below = quantile.powf(number);
    (
        (all_above <= TAIL).then(|| rank_at(TAIL) / (number + 1.0)),
        (all_below <= TAIL).then(|| rank_at(1.0 - TAIL) / number),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_units::Seed;
    use rand::RngExt as _;

    fn record(count: u64, at: impl Fn(u64) -> Span, value: impl Fn(u64) -> Span) -> Recorder {
        let mut recorder = Recorder::new();
        for n in 0..count {
            recorder.record(at(n), value(n));
        }
        recorder
    }

    fn known_interval(estimate: &IntervalEstimate) -> (Span, Span) {
        let (low, high) = estimate.interval.unwrap();
        (low.known().unwrap(), high.known().unwrap())
    }

    fn closed_ranks(quantile: f64, number: f64) -> (f64, f64) {
        let (low, high) = ranks(quantile, number);
        (low.unwrap(), high.unwrap())
    }

    /// Every `nth` of `count` values is censored after a second. The others take up to a millisecond.
    fn censored(count: u64, nth: u64) -> Recorder {
        let mut recorder = Recorder::new();
        for n in 0..count {
            let at = Span::from_millis(n);
            match n * 7919 % nth {
                0 => recorder.record_censored(at, Some(Span::from_secs(1))),
                _ => recorder.record(at, Span::from_micros(n * 6271 % 1000)),
            }
        }
        recorder
    }

    #[test]
    fn a_quantile_beside_the_censored_share_has_no_upper_end() {
        let recorder = censored(20_000, 97);
        let p50 = known_interval(&recorder.quantile(0.5));
        assert!(p50.1 < Span::from_millis(1));
        // 1.03 % are censored, so chance decides if p99 is known.
        let p99 = recorder.quantile(0.99);
        assert!(matches!(p99.value, Time::Above(_)), "{p99:?}");
        let (low, high) = p99.interval.unwrap();
        assert!(low.known().is_some() && matches!(high, Time::Above(_)));
        assert_eq!(recorder.mean().interval, None);
    }

    #[test]
    fn ranks_are_binomial() {
        // P(Bin(100, 1/2) <= 39) = 0.0176 and P(Bin(100, 1/2) <= 40) = 0.0284.
        let (low, high) = closed_ranks(0.5, 100.0);
        let (rank, opposite) = (low * 101.0, high * 100.0);
        assert!(rank > 40.0 && rank < 41.0, "{rank}");
        assert!(
            (rank + opposite - 101.0).abs() < 1e-4,
            "symmetrical ranks: {rank} {opposite}"
        );
        // Both of two independent values lie below the p99 with 98 %, and the larger is at two thirds on average.
        let (low, high) = ranks(0.99, 2.0);
        assert!(
            (low.unwrap() - 2.0 / 3.0).abs() < 1e-3 && high.is_none(),
            "{low:?}"
        );
    }

    #[test]
    fn too_little_data_gives_no_interval() {
        let none = Recorder::new();
        assert_eq!(none.mean(), IntervalEstimate::bare(Time::Known(Span::ZERO)));
        assert_eq!(
            none.quantile(0.5),
            IntervalEstimate::bare(Time::Known(Span::ZERO))
        );
        let few = record(12, Span::from_millis, |_| Span::from_millis(3));
        assert_eq!(
            few.mean(),
            IntervalEstimate::bare(Time::Known(Span::from_millis(3)))
        );
        let some = record(2_000, Span::from_millis, |n| {
            Span::from_micros(n * 7919 % 1000)
        });
        assert!(some.quantile(0.9).interval.is_some());
        assert_eq!(some.quantile(0.999).interval, None);
    }

    #[test]
    fn a_growing_queue_has_no_interval() {
        let growing = record(20_000, Span::from_millis, Span::from_micros);
        assert_eq!(growing.mean().interval, None);
        assert_eq!(growing.quantile(0.9).interval, None);
    }

    #[test]
    fn equal_values_are_certain() {
        let value = Span::from_micros(1234);
        let same = record(10_000, Span::from_millis, |_| value);
        let known = Time::Known(value);
        assert_eq!(same.quantile(0.99).interval, Some((known, known)));
        assert_eq!(same.quantile(0.99).effective_count, Some(10_000.0));
        let (low, high) = known_interval(&same.mean());
        assert!(low <= value && value <= high && high.saturating_sub(low) <= Span::from_nanos(2));
    }

    #[test]
    fn values_that_come_in_tens_count_as_one() {
        let mut stream = Seed(1).stream("values");
        let values: Vec<u64> = (0..10_000)
            .map(|_| stream.random_range(1_000..1_000_000))
            .collect();
        let value = |n| Span::from_nanos(values[n as usize / 10]);
        let tens = record(100_000, Span::from_millis, value);
        for estimate in [tens.mean(), tens.quantile(0.5), tens.quantile(0.9)] {
            let effective = estimate.effective_count.unwrap();
            assert!(
                effective < 20_000.0,
                "{effective} of 10,000 independent values"
            );
            let (low, high) = known_interval(&estimate);
            let value = estimate.value.known().unwrap();
            assert!(low < value && value < high);
        }
    }

    #[test]
    fn a_start_after_warm_up_leaves_out_the_broken_batch() {
        let late = |n| Span::from_millis(5_000 + n);
        let recorder = record(60_000, late, |n| Span::from_micros(n * 7919 % 1000));
        let batches = recorder.buckets().iter().filter(|b| b.count > 0).count();
        assert_eq!(recorder.complete().len(), batches - 2);
    }

    #[test]
    fn ranks_are_found_among_any_number_of_values() {
        for number in [1e3, 1e9, 1e12] {
            let (low, high) = closed_ranks(0.5, number);
            let half_width = 1.96 * (0.25f64 / number).sqrt();
            assert!(0.5 - low <= 1.1 * half_width + 1e-12, "{number}: {low}");
            assert!(high - 0.5 <= 1.1 * half_width + 1e-12, "{number}: {high}");
        }
    }
}
