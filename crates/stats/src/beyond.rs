//! The share of values beyond a bound, and how far the values of a run depend on one another.
//!
//! Rare values come in clusters: all requests that stood in one long queue exceed the bound together. The
//! *dispersion* of a sum is its variance divided by the variance that as many independent values would give. It is
//! taken from batch sums (`dependence`), once for the count of values beyond the bound and once for the sum of all
//! values.

use posthaste_units::Span;

use crate::Recorder;
use crate::dependence::{Part, ratio_uncertainty};

/// The values of a recorder compared with a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Beyond {
    /// Values recorded.
    pub count: u64,
    /// Values above the bound, to 0.1 % of it.
    pub beyond: u64,
    /// Dispersion of `beyond`; `None` where the batches do not tell, or no value is beyond, or all are.
    pub share_dispersion: Option<f64>,
    /// Dispersion of the sum of all values; `None` where the batches do not tell.
    pub mean_dispersion: Option<f64>,
    /// Variance of the mean divided by its square; `None` as above.
    pub mean_relative_variance: Option<f64>,
}

impl Beyond {
    /// The larger of both dispersions, at least 1; `None` where neither is known.
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
            count: all.count(),
            beyond: all.count_above(bound),
            ..Beyond::default()
        };
        let kept = self.complete();
        let Some(first) = kept.first() else {
            return found;
        };
        // The coarse bin of the bound is split in the proportion of the fine histogram.
        let at = bound.as_nanos();
        let (low, high) = first.bin(at);
        let outside = all.count_from(high + 1);
        let within = all.count_from(low).saturating_sub(outside).max(1) as f64;
        let split = found.beyond.saturating_sub(outside) as f64 / within;
        let parts: Vec<Part> = kept
            .iter()
            .map(|bucket| {
                let (inside, above) = bucket.count_in_and_above(at);
                Part {
                    sum: above as f64 + split * inside as f64,
                    count: bucket.count as f64,
                }
            })
            .collect();
        let count: f64 = parts.iter().map(|part| part.count).sum();
        let share = parts.iter().map(|part| part.sum).sum::<f64>() / count;
        let spread = share * (1.0 - share);
        if spread > 0.0 {
            found.share_dispersion =
                ratio_uncertainty(&parts).map(|found| found.variance * count / spread);
        }
        let parts: Vec<Part> = kept
            .iter()
            .map(|bucket| Part {
                sum: bucket.sum as f64,
                count: bucket.count as f64,
            })
            .collect();
        let mean = parts.iter().map(|part| part.sum).sum::<f64>() / count;
        let squares: f64 = kept.iter().map(|bucket| bucket.sum_of_squares as f64).sum();
        let spread = (squares / count - mean * mean).max(0.0);
        if let Some(uncertainty) = ratio_uncertainty(&parts).filter(|_| mean > 0.0) {
            found.mean_relative_variance = Some(uncertainty.variance / (mean * mean));
            if spread > 0.0 {
                found.mean_dispersion = Some(uncertainty.variance * count / spread);
            }
        }
        found
    }
}
