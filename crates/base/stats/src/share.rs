//! A share of independent trials, and its interval.

use statrs::distribution::{ContinuousCDF as _, Normal};

/// Number of successes in a number of independent trials with equal probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Successful trials.
    pub hits: u64,
    /// All trials.
    pub trials: u64,
}

impl Share {
    /// The share, 0 to 1; NaN without trials.
    pub fn value(self) -> f64 {
        self.hits as f64 / self.trials as f64
    }

    /// Interval that contains the true share with this confidence, such as 0.95, after Wilson ("Probable inference, the
    /// law of succession, and statistical inference", 1927). Unlike the textbook's interval, it stays within 0 and 1
    /// and keeps its confidence for rare events. 0 to 1 without trials.
    pub fn interval(self, confidence: f64) -> (f64, f64) {
        if self.trials == 0 {
            return (0.0, 1.0);
        }
        let z = Normal::standard().inverse_cdf(0.5 + confidence / 2.0);
        let (share, trials) = (self.value(), self.trials as f64);
        let weight = 1.0 + z * z / trials;
        let middle = (share + z * z / (2.0 * trials)) / weight;
        let spread = share * (1.0 - share) / trials + (z / (2.0 * trials)).powi(2);
        let half = z * spread.sqrt() / weight;
        ((middle - half).max(0.0), (middle + half).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine
    /// 17, 1998, table I, method 3.
    #[test]
    fn intervals_are_those_of_the_table() {
        for (hits, trials, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let found = Share { hits, trials }.interval(0.95);
            let near = |a: f64, b: f64| (a - b).abs() < 0.000_06;
            assert!(near(found.0, low) && near(found.1, high), "{found:?}");
        }
        assert_eq!(Share { hits: 0, trials: 0 }.interval(0.95), (0.0, 1.0));
    }
}
