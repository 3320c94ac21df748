//! Variance between runs, and the half-width of an interval.

use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

/// Confidence of the intervals of single runs.
const OF_RUNS: f64 = 0.95;

/// The two-sided quantile of the normal distribution.
pub(super) fn normal(confidence: f64) -> f64 {
    Normal::standard().inverse_cdf(0.5 + confidence / 2.0)
}

/// The two-sided quantile of Student's t; infinite without a degree of freedom.
pub(super) fn student(confidence: f64, freedom: usize) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom as f64) {
        Ok(law) if freedom > 0 => law.inverse_cdf(0.5 + confidence / 2.0),
        _ => f64::INFINITY,
    }
}

/// Factor from the half-width of a run's own interval to one of this confidence.
pub(super) fn rescale(confidence: f64) -> f64 {
    normal(confidence) / normal(OF_RUNS)
}

/// The arithmetic mean.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Scatter between runs, pooled over both sides.
///
/// Pooled instead of Welch's test, because scatter is a property of the machine and the plan, which both sides share.
/// It is multiplicative for times, so it does not grow with them on the log scale. With three runs per side, Welch's
/// degrees of freedom fall from four to as few as two. With equally many runs per side, the pooled t statistic equals
/// Welch's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scatter {
    /// Standard deviation of the estimates of a side, including the error within runs.
    pub(super) deviation: f64,
    pub(super) freedom: usize,
}

impl Scatter {
    /// Returns `None` unless a side has two runs.
    pub(super) fn between(before: &[f64], after: &[f64]) -> Option<Self> {
        let freedom = (before.len() + after.len()).checked_sub(2)?;
        if freedom == 0 {
            return None;
        }
        let squares: f64 = [before, after]
            .into_iter()
            .flat_map(|side| {
                let middle = mean(side);
                side.iter().map(move |value| (value - middle).powi(2))
            })
            .sum();
        Some(Self {
            deviation: (squares / freedom as f64).sqrt(),
            freedom,
        })
    }

    /// Half-width of the interval of the difference between the means of `runs` (before and after) runs.
    pub(super) fn half_width(&self, confidence: f64, runs: [usize; 2]) -> f64 {
        student(confidence, self.freedom) * self.deviation * per_run(runs)
    }
}

/// Standard error of the difference between the means of these numbers of runs, each with a standard deviation of 1.
pub(super) fn per_run([before, after]: [usize; 2]) -> f64 {
    (1.0 / before as f64 + 1.0 / after as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, quantile) in [(1, 12.706), (2, 4.303), (4, 2.776), (10, 2.228)] {
            assert!((student(0.95, freedom) - quantile).abs() < 1e-3);
        }
        assert!(student(0.95, 0).is_infinite());
        assert!((normal(0.95) - 1.95996).abs() < 1e-4);
        assert!((rescale(0.95) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn variances_are_pooled() {
        let scatter = Scatter::between(&[1.0, 2.0, 3.0], &[10.0, 14.0]).unwrap();
        // Squares 2 and 8, degrees of freedom 2 and 1.
        assert!((scatter.deviation - (10.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(scatter.freedom, 3);
        assert_eq!(Scatter::between(&[1.0], &[2.0]), None);
        assert_eq!(Scatter::between(&[1.0], &[]), None);
    }
}
