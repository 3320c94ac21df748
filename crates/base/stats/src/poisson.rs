//! The exact interval of a Poisson count (Garwood, Biometrika 28, 1936).

use statrs::distribution::{ChiSquared, ContinuousCDF as _};

/// The 95 % interval of the mean of a count: each end is wrong in at most 2.5 % of all cases.
pub fn poisson_interval(count: f64) -> [f64; 2] {
    [
        half_chi_squared(2.0 * count, 0.025),
        poisson_upper(count, 0.975),
    ]
}

/// The highest mean of a count that is not excluded with `confidence`.
pub fn poisson_upper(count: f64, confidence: f64) -> f64 {
    half_chi_squared(2.0 * count + 2.0, confidence)
}

fn half_chi_squared(freedom: f64, at: f64) -> f64 {
    match ChiSquared::new(freedom) {
        Ok(law) if freedom > 0.0 => 0.5 * law.inverse_cdf(at),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_tables() {
        // Garwood's table, 2.5 % on each side.
        for (count, low, high) in [
            (0.0, 0.0, 3.689),
            (1.0, 0.0253, 5.572),
            (3.0, 0.619, 8.767),
            (10.0, 4.795, 18.39),
        ] {
            let [a, b] = poisson_interval(count);
            assert!(
                (a - low).abs() < 1e-3 && (b - high).abs() < 5e-3,
                "{count}: {a} {b}"
            );
        }
    }
}
