//! Uncertainty of a mean of dependent values: batch means.
//!
//! Successive response times are correlated, because the requests shared a queue. A formula for independent values
//! gives far too narrow intervals. The sums over batches much longer than that correlation are nearly independent, and
//! their spread shows the true uncertainty. `interval` chooses the mean and uses the result.

use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

/// Minimum number of batches. Fewer say too little about their own spread.
const FEWEST_BATCHES: usize = 16;
/// Maximum correlation of neighbouring batches. Beyond it, the run follows a trend and has no stable mean.
const STRONGEST_CORRELATION: f64 = 0.8;
/// Relative spread of sums up to which they differ by rounding only.
const ROUNDING: f64 = 1e-12;

/// Contribution of one batch to a ratio of sums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchPart {
    pub(crate) sum: f64,
    pub(crate) count: f64,
}

/// Uncertainty of the ratio of all sums to all counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Uncertainty {
    /// Variance of the ratio, for the number of values in the parts.
    pub(crate) variance: f64,
    /// Student's t for a two-sided 95 % interval.
    pub(crate) student: f64,
}

/// Uncertainty of `sum of sums / sum of counts`; `None` if the parts are too few or follow a trend.
///
/// A ratio estimator, because counts vary too: each batch's residual is its sum minus the value for its count at the
/// overall ratio (Cochran, Sampling Techniques, section 6.3). The spread of the residuals is corrected for the
/// remaining correlation of neighbours by a first-order autoregressive model, as in N-Skart (Tafazzoli, Steiger and
/// Wilson, 2011).
///
/// Assumes a stationary run, batches long enough for that model, and residual sums that are nearly normal.
pub(crate) fn ratio_uncertainty(parts: &[BatchPart]) -> Option<Uncertainty> {
    let number = parts.len();
    if number < FEWEST_BATCHES {
        return None;
    }
    let count: f64 = parts.iter().map(|part| part.count).sum();
    let sum: f64 = parts.iter().map(|part| part.sum).sum();
    let residuals: Vec<f64> = parts
        .iter()
        .map(|part| part.sum - sum / count * part.count)
        .collect();
    let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    let freedom = number as f64 - 1.0;
    let student = student(freedom)?;
    if squares.sqrt() <= ROUNDING * sum {
        return Some(Uncertainty {
            variance: 0.0,
            student,
        });
    }
    let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    // Because residuals add up to zero, their correlation is biased by -1/number for independent batches.
    let correlation = (products / squares + 1.0 / number as f64).max(0.0);
    if correlation > STRONGEST_CORRELATION {
        return None;
    }
    let independent = squares * number as f64 / freedom / (count * count);
    Some(Uncertainty {
        variance: independent * (1.0 + correlation) / (1.0 - correlation),
        student,
    })
}

/// Square of the ratio of Student's t to the corresponding normal quantile. An effective count estimated from few
/// batches is divided by it (Korn and Graubard, Survey Methodology 24, 1998).
pub(crate) fn penalty(student: f64) -> f64 {
    (student / Normal::standard().inverse_cdf(0.975)).powi(2)
}

fn student(freedom: f64) -> Option<f64> {
    Some(StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(sums: impl IntoIterator<Item = f64>) -> Vec<BatchPart> {
        sums.into_iter()
            .map(|sum| BatchPart { sum, count: 10.0 })
            .collect()
    }

    #[test]
    fn independent_batches_give_the_textbook_variance() {
        // Values of -1 and 1 without correlation between neighbours.
        let sums = [1.0, 1.0, -1.0, -1.0]
            .repeat(8)
            .into_iter()
            .map(|x| 100.0 + x);
        let found = ratio_uncertainty(&parts(sums)).unwrap();
        let plain = 32.0 * 32.0 / 31.0 / (320.0 * 320.0);
        assert!((found.variance / plain - 1.0).abs() < 0.15, "{found:?}");
        assert!(
            (found.student - 2.0395).abs() < 1e-3,
            "t with 31 degrees: {found:?}"
        );
    }

    #[test]
    fn counts_that_vary_with_sums_are_no_uncertainty() {
        let same_ratio: Vec<BatchPart> = (1..=20)
            .map(|n| BatchPart {
                sum: 0.3 * f64::from(n),
                count: f64::from(n),
            })
            .collect();
        assert_eq!(ratio_uncertainty(&same_ratio).unwrap().variance, 0.0);
    }

    #[test]
    fn too_few_batches_and_trends_give_nothing() {
        assert_eq!(
            ratio_uncertainty(&parts((0..15).map(|n| f64::from(n % 2)))),
            None
        );
        assert_eq!(
            ratio_uncertainty(&parts((0..60).map(|n| 100.0 + f64::from(n)))),
            None
        );
    }

    #[test]
    fn likeness_of_neighbours_widens() {
        let alone = parts((0..60).map(|n| 100.0 + f64::from(n * 37 % 11)));
        let alike = parts((0..60).map(|n| 100.0 + f64::from(n / 2 * 2 * 37 % 11)));
        let variance = |parts: &[BatchPart]| ratio_uncertainty(parts).unwrap().variance;
        assert!(variance(&alike) > 2.0 * variance(&alone));
    }
}
