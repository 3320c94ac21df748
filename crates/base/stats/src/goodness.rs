//! Tests of an arrival process against its plan.
//!
//! The tests need all gaps between arrivals as a list. They check an instrument and are not meant to run with it.

use posthaste_units::Span;

/// Result of an Anderson-Darling test of one fully specified hypothesis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AndersonDarling {
    /// A squared: about 1 on average if the hypothesis is true, above 2.492 in 5 of 100 samples.
    pub statistic: f64,
    /// Probability of a statistic at least this large under a true hypothesis.
    pub p_value: f64,
}

/// Correlation of each gap with the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// -1 to 1.
    pub value: f64,
    /// Independent gaps stay within plus or minus this value in 95 of 100 samples.
    pub bound: f64,
}

/// Tests if `gaps` are exponential with the known mean `mean` (case 0: nothing estimated).
///
/// A gap of zero represents one below half a nanosecond, the resolution of time. Returns `None` without gaps or with a
/// mean of zero. The p-value is that of Marsaglia and Marsaglia, "Evaluating the Anderson-Darling distribution",
/// Journal of Statistical Software 9(2), 2004, with their correction for the sample size. It has four correct decimals,
/// so smaller values mean only "very small".
pub fn exponential_gaps(gaps: &[Span], mean: Span) -> Option<AndersonDarling> {
    if gaps.is_empty() || mean.is_zero() {
        return None;
    }
    let mean = mean.as_nanos() as f64;
    let mut scaled: Vec<f64> = gaps
        .iter()
        .map(|gap| (gap.as_nanos() as f64).max(0.5) / mean)
        .collect();
    scaled.sort_unstable_by(f64::total_cmp);
    let number = scaled.len() as f64;
    // ln F(x) = ln(1 - exp(-x)), and ln(1 - F(x)) = -x.
    let sum: f64 = scaled
        .iter()
        .zip(scaled.iter().rev())
        .enumerate()
        .map(|(index, (low, high))| (2 * index + 1) as f64 * ((-(-low).exp_m1()).ln() - high))
        .sum();
    let statistic = -number - sum / number;
    let limit = limit_distribution(statistic);
    let share = limit + size_correction(number, limit);
    Some(AndersonDarling {
        statistic,
        p_value: (1.0 - share).clamp(0.0, 1.0),
    })
}

/// Standard deviation divided by the mean: 0 for constant gaps, 1 for exponential ones.
///
/// Returns `None` with fewer than two gaps or a mean of zero.
pub fn coefficient_of_variation(gaps: &[Span]) -> Option<f64> {
    let (mean, squares) = moments(gaps)?;
    (mean > 0.0).then(|| (squares / (gaps.len() - 1) as f64).sqrt() / mean)
}

/// Correlation of neighbouring gaps, with the bound for independence (1.96 divided by the root of their number).
///
/// Returns `None` with fewer than two gaps, or if all are equal.
pub fn lag_one_correlation(gaps: &[Span]) -> Option<Correlation> {
    let (mean, squares) = moments(gaps)?;
    let products: f64 = gaps
        .windows(2)
        .map(|pair| (pair[0].as_nanos() as f64 - mean) * (pair[1].as_nanos() as f64 - mean))
        .sum();
    (squares > 0.0).then(|| Correlation {
        value: products / squares,
        bound: 1.96 / (gaps.len() as f64).sqrt(),
    })
}

/// The mean, and the sum of squared deviations from it.
fn moments(gaps: &[Span]) -> Option<(f64, f64)> {
    if gaps.len() < 2 {
        return None;
    }
    let values = || gaps.iter().map(|gap| gap.as_nanos() as f64);
    let mean = values().sum::<f64>() / gaps.len() as f64;
    Some((mean, values().map(|value| (value - mean).powi(2)).sum()))
}

/// P(statistic < z) for an infinite sample (`adinf` of the paper).
fn limit_distribution(z: f64) -> f64 {
    if z <= 0.0 {
        0.0
    } else if z < 2.0 {
        let series = [
            2.00012, 0.247105, -0.0649821, 0.0347962, -0.0116720, 0.00168691,
        ];
        (-1.2337141 / z).exp() / z.sqrt() * polynomial(&series, z)
    } else {
        let series = [1.0776, -2.30695, 0.43424, -0.082433, 0.008056, -0.0003146];
        (-polynomial(&series, z).exp()).exp()
    }
}

/// Correction of the limit's probability `x` for a finite sample (`errfix` of the paper).
fn size_correction(number: f64, x: f64) -> f64 {
    let corner = 0.01265 + 0.1757 / number;
    if x > 0.8 {
        let series = [
            -130.2137, 745.2337, -1705.091, 1950.646, -1116.360, 255.7844,
        ];
        polynomial(&series, x) / number
    } else if x < corner {
        let t = (x / corner).sqrt();
        let bend = t * (1.0 - t) * (49.0 * t - 102.0);
        bend * (0.0037 / number.powi(2) + 0.00078 / number + 0.00006) / number
    } else {
        let t = (x - corner) / (0.8 - corner);
        let series = [-0.00022633, 6.54034, -14.6538, 14.458, -8.259, 1.91864];
        polynomial(&series, t) * (0.04213 + 0.01365 / number) / number
    }
}

/// The sum of `coefficients[i] * x^i`.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_units::Seed;
    use rand_distr::{Distribution as _, Exp1};

    #[test]
    fn limit_has_the_tabled_critical_values() {
        // Table 4.2 of D'Agostino and Stephens, Goodness-of-Fit Techniques (1986), case 0.
        for (z, share) in [
            (1.248, 0.75),
            (1.933, 0.90),
            (2.492, 0.95),
            (3.070, 0.975),
            (3.857, 0.99),
        ] {
            assert!(
                (limit_distribution(z) - share).abs() < 3e-4,
                "{z}: {}",
                limit_distribution(z)
            );
        }
        assert!((limit_distribution(1.999_999) - limit_distribution(2.0)).abs() < 1e-5);
        assert!((limit_distribution(100.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn statistic_of_a_known_sample() {
        // One gap at the median: A squared = -1 - 2 ln(1/2).
        let median = Span::from_nanos((1e9 * 2f64.ln()) as u64);
        let found = exponential_gaps(&[median], Span::from_secs(1)).unwrap();
        assert!((found.statistic - (2.0 * 2f64.ln() - 1.0)).abs() < 1e-6);
        assert!(found.p_value > 0.8, "the best fit there is: {found:?}");
    }

    #[test]
    fn p_values_are_uniform_for_small_samples_too() {
        let mut stream = Seed(1).stream("gaps");
        let mut p_values = Vec::new();
        for _ in 0..20_000 {
            let mut gap = || Span::from_secs_f64(Exp1.sample(&mut stream));
            let gaps: [Span; 8] = std::array::from_fn(|_| gap());
            let found = exponential_gaps(&gaps, Span::from_secs(1)).unwrap();
            p_values.push(found.p_value);
        }
        for limit in [0.01, 0.05, 0.25, 0.5, 0.75, 0.95] {
            let share = p_values.iter().filter(|&&p| p < limit).count() as f64 / 20_000.0;
            assert!((share - limit).abs() < 0.011, "{share} below {limit}");
        }
    }

    #[test]
    fn odd_samples_are_no_trap() {
        assert_eq!(exponential_gaps(&[], Span::from_secs(1)), None);
        assert_eq!(exponential_gaps(&[Span::MAX], Span::ZERO), None);
        let zeros = exponential_gaps(&[Span::ZERO; 100], Span::from_secs(1)).unwrap();
        assert!(
            zeros.statistic.is_finite() && zeros.p_value < 1e-4,
            "{zeros:?}"
        );
        let ages = exponential_gaps(&[Span::MAX; 2], Span::from_nanos(1)).unwrap();
        assert!(ages.p_value < 1e-3, "{ages:?}");
        assert_eq!(coefficient_of_variation(&[Span::ZERO; 3]), None);
        assert_eq!(lag_one_correlation(&[Span::from_secs(1); 3]), None);
        assert_eq!(lag_one_correlation(&[Span::from_secs(1)]), None);
    }

    #[test]
    fn constant_and_alternating_gaps() {
        let constant = [Span::from_millis(1); 50];
        assert_eq!(coefficient_of_variation(&constant), Some(0.0));
        let alternating: Vec<_> = (0..100).map(|n| Span::from_millis(1 + n % 2)).collect();
        let found = lag_one_correlation(&alternating).unwrap();
        assert!(
            found.value < -0.95 && (found.bound - 0.196).abs() < 1e-9,
            "{found:?}"
        );
    }
}
