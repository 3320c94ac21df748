//! Names of the statistics in a summary.

use serde::{Deserialize, Serialize};

/// Minimum number of values for the 99.9th percentile. It leaves five values beyond.
pub const FEWEST_FOR_P999: u64 = 5_000;

/// A statistic of a set of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// The median.
    P50,
    /// The 90th percentile.
    P90,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
    /// The largest value of the run. Not an estimate, so never with an interval.
    Max,
}

impl Statistic {
    /// All, in the order of a report.
    pub const ALL: [Self; 7] = [
        Self::Mean,
        Self::P50,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::P999,
        Self::Max,
    ];

    /// The key in a [`Summary`](crate::Summary).
    pub const fn key(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p999",
            Self::Max => "max",
        }
    }

    /// The share of values that do not exceed the quantile; `None` for mean and maximum.
    pub const fn quantile(self) -> Option<f64> {
        match self {
            Self::Mean | Self::Max => None,
            Self::P50 => Some(0.5),
            Self::P90 => Some(0.9),
            Self::P95 => Some(0.95),
            Self::P99 => Some(0.99),
            Self::P999 => Some(0.999),
        }
    }
}
