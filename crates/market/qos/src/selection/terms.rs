//! Terms of one request: its demands on the offer that serves it.

use std::str::FromStr;

use posthaste_units::{Ratio, Span};
use thiserror::Error;

use crate::money::Money;

/// Terms of one request. `None` is a value that is not stated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestTerms {
    /// Maximum price.
    pub max_price: Option<Money>,
    /// Maximum response time.
    pub max_latency: Option<LatencyBound>,
    /// Minimum share of requests that are answered well.
    pub min_reliability: Option<Ratio>,
    /// Name of an offer that is taken if it is adequate.
    pub selected: Option<String>,
}

/// A maximum response time at a percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyBound {
    /// The maximum.
    pub most: Span,
    /// Percentile of the measured times that is compared with it. A promised processing time holds for every request.
    pub percentile: Percentile,
}

/// A percentile of measured times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Percentile {
    /// The median.
    P50,
    /// The 99th percentile.
    #[default]
    P99,
}

/// Reason why a latency bound cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TermError {
    /// Not a time.
    #[error("{0:?} is not a time: write 200ms or 1.5s")]
    Time(String),
    /// An unknown parameter.
    #[error("{0:?} is not a measured percentile: write p=50 or p=99")]
    Percentile(String),
}

/// Parses a time with an optional percentile: `200ms`, `200ms;p=50`.
impl FromStr for LatencyBound {
    type Err = TermError;

    fn from_str(text: &str) -> Result<Self, TermError> {
        let (time, parameter) = match text.split_once(';') {
            None => (text, None),
            Some((time, parameter)) => (time, Some(parameter.trim())),
        };
        let most = time.trim().parse();
        let most = most.map_err(|_| TermError::Time(time.trim().to_owned()))?;
        let percentile = match parameter {
            None => Percentile::default(),
            Some("p=50") => Percentile::P50,
            Some("p=99") => Percentile::P99,
            Some(other) => return Err(TermError::Percentile(other.to_owned())),
        };
        Ok(Self { most, percentile })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_has_a_time_and_maybe_a_percentile() {
        let bound = |text: &str| text.parse::<LatencyBound>();
        let most = Span::from_millis(200);
        let percentile = Percentile::P99;
        assert_eq!(bound(" 200ms "), Ok(LatencyBound { most, percentile }));
        assert_eq!(bound("0.2s ; p=99"), Ok(LatencyBound { most, percentile }));
        let median = bound("200ms;p=50").unwrap();
        assert_eq!(median.percentile, Percentile::P50);
        for (text, hint) in [
            ("200", "write 200ms"),
            ("", "write 200ms"),
            ("-1ms", "write 200ms"),
            ("200ms;p=98", "p=50 or p=99"),
            ("200ms;", "p=50 or p=99"),
            ("200ms;p=50;p=99", "p=50 or p=99"),
        ] {
            let error = bound(text).unwrap_err().to_string();
            assert!(error.contains(hint), "{text:?}: {error}");
        }
    }
}
