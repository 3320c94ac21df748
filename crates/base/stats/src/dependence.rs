//! Uncertainty of a mean of dependent values: batch means.
//!
//! Successive response times are correlated, because the requests shared a queue. A formula for independent values
//! gives far too narrow intervals. The sums over batches much longer than that correlation are nearly independent, and
//! their spread shows the true uncertainty. How long the correlation is, a short run does not know: a calm one shows a
//! short correlation. The uncertainty is therefore calculated for batches of several lengths, and the widest interval
//! counts. `interval` chooses the mean and uses the result.

use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

/// Minimum number of the shortest batches. Fewer say too little about their own spread.
const FEWEST_BATCHES: usize = 16;
/// Minimum number of the longest batches, if none of them contains enough rare values.
const FEWEST_LONG_BATCHES: usize = 3;
/// Minimum number of the longest batches, if they contain enough rare values.
const ENOUGH_BATCHES: usize = 8;
/// Rare values in a batch that is long enough. With fewer, a batch may be shorter than a queue that empties.
const ENOUGH_PER_BATCH: f64 = 50.0;
/// Maximum correlation of neighbouring batches that the model corrects.
const STRONGEST_CORRELATION: f64 = 0.8;
/// Correlation of 16 to 31 batches from which on a run may follow a trend. A straight one has 0.87 and more.
const TREND: f64 = 0.85;
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
    /// True if neighbouring batches, 16 to 31 of them, are so much alike that the run may follow a trend.
    pub(crate) has_trend: bool,
}

/// Spread of the sums of batches of one length.
#[derive(Clone, Copy, Debug)]
struct BatchSpread {
    /// Variance of the ratio, if the batches were independent.
    variance: f64,
    /// Correlation of neighbours, at least 0.
    correlation: f64,
}

impl Uncertainty {
    /// Half-width of the 95 % interval.
    pub(crate) fn half_width(&self) -> f64 {
        self.student * self.variance.sqrt()
    }
}

/// Uncertainty of `sum of sums / sum of counts`; `None` if the parts are too few.
///
/// `rare` is the number of values that decide the ratio. With few of them, batches of a third of the run are tried
/// too.
///
/// The spread of the residuals is corrected for the remaining correlation of neighbours by a first-order
/// autoregressive model, as in N-Skart (Tafazzoli, Steiger and Wilson, 2011).
///
/// Assumes a stationary run, batches long enough for that model, and residual sums that are nearly normal.
pub(crate) fn ratio_uncertainty(parts: &[BatchPart], rare: f64) -> Option<Uncertainty> {
    if parts.len() < FEWEST_BATCHES {
        return None;
    }
    let mut parts = parts.to_vec();
    let mut widest = uncertainty(&parts)?;
    let mut has_trend = widest.has_trend;
    loop {
        let number = parts.len();
        let fewest = if rare >= ENOUGH_PER_BATCH * number as f64 {
            ENOUGH_BATCHES
        } else {
            FEWEST_LONG_BATCHES
        };
        if number.div_ceil(2) < fewest {
            return Some(Uncertainty {
                has_trend,
                ..widest
            });
        }
        parts = merge(&parts);
        let longer = uncertainty(&parts)?;
        has_trend |= longer.has_trend;
        if longer.half_width() > widest.half_width() {
            widest = longer;
        }
    }
}

/// Uncertainty of a ratio by batches of one length.
fn uncertainty(parts: &[BatchPart]) -> Option<Uncertainty> {
    let number = parts.len();
    let BatchSpread {
        variance,
        correlation,
    } = spread(parts);
    let modelled = correlation.min(STRONGEST_CORRELATION);
    let shows_trends = (FEWEST_BATCHES..2 * FEWEST_BATCHES).contains(&number);
    Some(Uncertainty {
        variance: variance * (1.0 + modelled) / (1.0 - modelled),
        student: student(number as f64 - 1.0)?,
        has_trend: shows_trends && correlation > TREND,
    })
}

/// Spread of a ratio over its parts.
///
/// A ratio estimator, because counts vary too: each batch's residual is its sum minus the value for its count at the
/// overall ratio (Cochran, Sampling Techniques, section 6.3).
fn spread(parts: &[BatchPart]) -> BatchSpread {
    let number = parts.len() as f64;
    let count: f64 = parts.iter().map(|part| part.count).sum();
    let sum: f64 = parts.iter().map(|part| part.sum).sum();
    let residuals: Vec<f64> = parts
        .iter()
        .map(|part| part.sum - sum / count * part.count)
        .collect();
    let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    if squares.sqrt() <= ROUNDING * sum {
        return BatchSpread {
            variance: 0.0,
            correlation: 0.0,
        };
    }
    let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    BatchSpread {
        variance: squares * number / (number - 1.0) / (count * count),
        // Because residuals add up to zero, their correlation is biased by -1/number for independent batches.
        correlation: (products / squares + 1.0 / number).max(0.0),
    }
}

/// Batches of twice the length. An odd last one stays.
fn merge(parts: &[BatchPart]) -> Vec<BatchPart> {
    let pairs = parts.chunks(2).map(|pair| BatchPart {
        sum: pair.iter().map(|part| part.sum).sum(),
        count: pair.iter().map(|part| part.count).sum(),
    });
    pairs.collect()
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
    use posthaste_units::Seed;
    use rand::RngExt as _;

    use super::*;

    const MANY: f64 = 1e9;

    fn parts(sums: impl IntoIterator<Item = f64>) -> Vec<BatchPart> {
        sums.into_iter()
            .map(|sum| BatchPart { sum, count: 10.0 })
            .collect()
    }

    #[test]
    fn independent_batches_give_about_the_textbook_variance() {
        let mut stream = Seed(1).stream("batches");
        let sums = (0..64).map(|_| 100.0 + f64::from(stream.random_range(-1..=1)));
        let found = ratio_uncertainty(&parts(sums), MANY).unwrap();
        let plain = 64.0 * 2.0 / 3.0 / (640.0 * 640.0);
        // The widest of three lengths is somewhat wider than each.
        let factor = found.half_width() / (2.0 * f64::sqrt(plain));
        assert!((0.9..1.6).contains(&factor), "{found:?}");
    }

    #[test]
    fn counts_that_vary_with_sums_are_no_uncertainty() {
        let same_ratio: Vec<BatchPart> = (1..=20)
            .map(|n| BatchPart {
                sum: 0.3 * f64::from(n),
                count: f64::from(n),
            })
            .collect();
        assert_eq!(ratio_uncertainty(&same_ratio, MANY).unwrap().variance, 0.0);
    }

    #[test]
    fn too_few_batches_give_nothing_and_trends_are_seen() {
        assert_eq!(
            ratio_uncertainty(&parts((0..15).map(|n| f64::from(n % 2))), MANY),
            None
        );
        for number in 16..=64 {
            let growing = parts((0..number).map(|n| 100.0 + f64::from(n)));
            assert!(
                ratio_uncertainty(&growing, MANY).unwrap().has_trend,
                "{number}"
            );
        }
    }

    #[test]
    fn likeness_of_neighbours_widens() {
        let alone = parts((0..60).map(|n| 100.0 + f64::from(n * 37 % 11)));
        let alike = parts((0..60).map(|n| 100.0 + f64::from(n / 2 * 2 * 37 % 11)));
        let half_width = |parts: &[BatchPart]| ratio_uncertainty(parts, MANY).unwrap().half_width();
        assert!(half_width(&alike) > 1.4 * half_width(&alone));
    }

    #[test]
    fn few_rare_values_widen_by_longer_batches() {
        // Two levels, each for a quarter of the run: only long batches show that they differ.
        let levels = parts((0..64).map(|n| 100.0 + f64::from(n / 16 % 2 * 5 + n * 37 % 11)));
        let width = |rare| ratio_uncertainty(&levels, rare).unwrap().half_width();
        assert!(width(100.0) > 1.2 * width(MANY));
    }

    #[test]
    fn an_odd_last_batch_stays() {
        let counts = |number: usize| {
            let merged = merge(&parts((0..number).map(|_| 1.0)));
            merged.iter().map(|part| part.count).collect::<Vec<_>>()
        };
        assert_eq!(counts(5), [20.0, 20.0, 10.0]);
        assert_eq!(counts(4), [20.0, 20.0]);
    }
}
