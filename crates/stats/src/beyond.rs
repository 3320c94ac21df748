//! Share of values beyond a bound, and the dependence between the values of a run.
//!
//! Rare values come in clusters: all requests of one long queue exceed the bound together. The *dispersion* of a sum is
//! its variance divided by the variance for the same number of independent values. It is calculated from batch sums
//! (`dependence`): once for the count of values beyond the bound and once for the sum of all values.

use posthaste_units::Span;

use crate::Recorder;
use crate::dependence::{BatchPart, Uncertainty, ratio_uncertainty};

/// The values of a recorder compared with a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Beyond {
    /// Values, known and censored.
    pub count: u64,
    /// Values above the bound, with a resolution of 0.1 %. Censored values count as above.
    pub beyond: u64,
    /// Dispersion of `beyond`. `None` if the batches are insufficient, or no value or every value is beyond.
    pub share_dispersion: Option<f64>,
    /// Dispersion of the sum of all known values. `None` if the batches are insufficient.
    pub mean_dispersion: Option<f64>,
    /// Variance of the mean divided by its square. `None` as above.
    pub mean_relative_variance: Option<f64>,
}

impl Beyond {
    /// The larger of both dispersions, at least 1. `None` if neither is known.
    pub fn dispersion(&self) -> Option<f64> {
        let known = [self.share_dispersion, self.mean_dispersion];
        let largest = known.into_iter().flatten().reduce(f64::max);
        largest.map(|dispersion| dispersion.max(1.0))
    }
}

impl Recorder {
    /// Compares all values with `bound`.
    pub fn beyond(&self, bound: Span) -> Beyond {
        let all = self.histogram();
        let mut found = Beyond {
            count: self.distribution().count(),
            beyond: all.count_above(bound) + self.distribution().censored(),
            ..Beyond::default()
        };
        let kept = self.complete();
        let Some(first) = kept.first() else {
            return found;
        };
        // The coarse bin of the bound is split in the proportion of the fine histogram.
        let at = bound.as_nanos();
        let (low, high) = first.bin(at);
        let outside = all.count_from(high.saturating_add(1));
        let within = all.count_from(low).saturating_sub(outside).max(1) as f64;
        let split = all.count_above(bound).saturating_sub(outside) as f64 / within;
        let share = kept.iter().map(|bucket| {
            let (inside, above) = bucket.count_in_and_above(at);
            BatchPart {
                sum: above as f64 + split * inside as f64,
                count: bucket.total() as f64,
            }
        });
        found.share_dispersion = share_dispersion(&share.collect::<Vec<_>>());
        let mean = kept.iter().map(|bucket| BatchPart {
            sum: bucket.sum as f64,
            count: bucket.count as f64,
        });
        let squares = kept.iter().map(|bucket| bucket.sum_of_squares as f64).sum();
        if let Some((variance, dispersion)) = mean_dispersion(&mean.collect::<Vec<_>>(), squares) {
            found.mean_relative_variance = Some(variance);
            found.mean_dispersion = dispersion;
        }
        found
    }
}

/// Sum of the parts' counts, and the ratio of the sum of their sums to it.
fn ratio(parts: &[BatchPart]) -> (f64, f64) {
    let count: f64 = parts.iter().map(|part| part.count).sum();
    (
        count,
        parts.iter().map(|part| part.sum).sum::<f64>() / count,
    )
}

/// Uncertainty of the ratio from sufficiently long batches. Neighbours with too strong a correlation are merged in
/// pairs. Otherwise only runs with an accidentally short correlation of the queue would give a result.
fn by_long_batches(parts: &[BatchPart]) -> Option<Uncertainty> {
    let mut parts = parts.to_vec();
    while parts.len() > 1 {
        if let Some(found) = ratio_uncertainty(&parts) {
            return Some(found);
        }
        let pairs = parts.chunks_exact(2).map(|pair| BatchPart {
            sum: pair[0].sum + pair[1].sum,
            count: pair[0].count + pair[1].count,
        });
        parts = pairs.collect();
    }
    None
}

fn share_dispersion(parts: &[BatchPart]) -> Option<f64> {
    let (count, share) = ratio(parts);
    let spread = share * (1.0 - share);
    let found = by_long_batches(parts).filter(|_| spread > 0.0)?;
    Some(found.variance * count / spread)
}

/// Relative variance of the mean, and its dispersion if the values differ. `squares` is the sum of their squares.
fn mean_dispersion(parts: &[BatchPart], squares: f64) -> Option<(f64, Option<f64>)> {
    let (count, mean) = ratio(parts);
    let found = by_long_batches(parts).filter(|_| mean > 0.0)?;
    let spread = (squares / count - mean * mean).max(0.0);
    let dispersion = (spread > 0.0).then(|| found.variance * count / spread);
    Some((found.variance / (mean * mean), dispersion))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_come_in_tens_are_ten_times_as_dispersed() {
        let mut recorder = Recorder::new();
        for n in 0..40_000_u64 {
            // Ten in a row are equal, and a fifth of the tens is beyond 8 ms.
            let value = Span::from_millis(1 + n / 10 * 7919 % 10);
            recorder.record(Span::from_millis(n), value);
        }
        let found = recorder.beyond(Span::from_millis(8));
        assert_eq!((found.count, found.beyond), (40_000, 8_000));
        let dispersion = found.share_dispersion.unwrap();
        assert!(dispersion < 20.0, "{dispersion}");
        assert!(found.mean_relative_variance.unwrap() > 0.0);
    }

    #[test]
    fn censored_values_are_beyond_every_bound() {
        let mut recorder = Recorder::new();
        for n in 0..2_000 {
            let at = Span::from_millis(n);
            match n % 4 {
                0 => recorder.record_censored(at, Some(Span::from_millis(1))),
                _ => recorder.record(at, Span::from_millis(2)),
            }
        }
        let found = recorder.beyond(Span::from_secs(3_600));
        assert_eq!((found.count, found.beyond), (2_000, 500));
        assert_eq!(Recorder::new().beyond(Span::ZERO), Beyond::default());
    }

    #[test]
    fn nothing_is_beyond_the_longest_span() {
        let mut recorder = Recorder::new();
        for ms in 0..100 {
            recorder.record(Span::from_millis(ms), Span::MAX);
        }
        let found = recorder.beyond(Span::MAX);
        assert_eq!((found.count, found.beyond), (100, 0));
    }
}
