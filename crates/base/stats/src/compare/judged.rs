//! The statistics that decide a comparison, and their shares of the risk of a false alarm.

use serde::Serialize;

use super::Rules;

/// A statistic of response times, or the share of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Judged {
    /// The arithmetic mean.
    Mean,
    /// The median.
    P50,
    /// The 99th percentile.
    P99,
    /// Share of requests that did not end well.
    Errors,
}

/// Settings of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margins {
    /// Maximum relative difference of times that counts as equal.
    pub times: f64,
    /// Maximum absolute difference of error shares that counts as equal.
    pub errors: f64,
    /// Relative scatter between runs, if known from other measurements.
    pub scatter: Option<f64>,
}

impl Default for Margins {
    /// 25 % and 1 percentage point. With a scatter of 5 % and three runs per side, an interval extends 10 to 25 % to
    /// each side. A smaller margin would leave equal services unknown in more than one of ten comparisons.
    fn default() -> Self {
        Self {
            times: 0.25,
            errors: 0.01,
            scatter: None,
        }
    }
}

impl Judged {
    /// All, in the order of a report.
    pub const ALL: [Self; 4] = [Self::Mean, Self::P50, Self::P99, Self::Errors];

    /// Risk that this statistic is found worse on equal services.
    ///
    /// The risks sum to 6.5 %, an upper bound of the risk that any is found worse, at any correlation. Mean and median
    /// have most of it, because they show a slowdown in the shortest runs.
    pub const fn risk(self) -> f64 {
        match self {
            Self::Mean | Self::P50 => 0.025,
            Self::P99 => 0.01,
            Self::Errors => 0.005,
        }
    }

    /// The rules for this statistic.
    pub const fn rules(self, margins: &Margins) -> Rules {
        Rules {
            confidence: 1.0 - 2.0 * self.risk(),
            margin: match self {
                Self::Errors => margins.errors,
                _ => margins.times,
            },
            scatter: margins.scatter,
            steady: matches!(self, Self::Mean),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_risks_have_a_sum() {
        let sum: f64 = Judged::ALL.into_iter().map(Judged::risk).sum();
        assert!((sum - 0.065).abs() < 1e-12, "{sum}");
    }
}
