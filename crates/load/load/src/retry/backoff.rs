//! `--backoff none|exp:T`: the wait before a retry.
//!
//! The exponential back-off has full jitter (Brooker, Exponential Backoff And Jitter, AWS Architecture Blog 2015): the
//! wait is uniform from zero to a limit that doubles with each retry.

use std::fmt;
use std::str::FromStr;

use posthaste_units::{ParseError, Seed, Span};
use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::exact;

/// Maximum of the limit of a wait, whatever the number of the retry. A wait beyond the usual timeout of a client (30 s)
/// is no retry any more.
const LONGEST: Span = Span::from_secs(30);
/// Doublings after which the limit is [`LONGEST`] for every base, and a power still has a finite value.
const DOUBLINGS: u32 = 64;

/// Wait between the end of an attempt and the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Backoff {
    /// No wait.
    None,
    /// Before retry k, a uniform draw from 0 to `base` * 2^(k-1), and to 30 s at most.
    Exponential {
        /// Limit of the wait before the first retry.
        #[serde(with = "exact::nanos")]
        base: Span,
    },
}

/// Reasons why a back-off cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BackoffError {
    /// Neither `none` nor `exp:T`.
    #[error(
        "{0:?} is no back-off: write none, or exp:T with the first limit, for example exp:100ms"
    )]
    Unknown(String),
    /// A first limit that is no time.
    #[error("exp:T needs a time: {0}")]
    Time(#[source] ParseError),
    /// A first limit of zero, or above the maximum.
    #[error("exp:T needs a time above 0 and up to {LONGEST}: write none for no wait")]
    Range,
}

impl Backoff {
    /// Fails unless the first limit is above 0 and at most 30 s.
    pub(crate) fn check(self) -> Result<(), BackoffError> {
        match self {
            Self::Exponential { base } if base.is_zero() || base > LONGEST => {
                Err(BackoffError::Range)
            }
            _ => Ok(()),
        }
    }

    /// Returns the wait before retry `retry`, counted from 1, of the request with this number. The same seed gives the
    /// same wait, on any number of event loops.
    pub(crate) fn wait(self, seed: Seed, request: u64, retry: u32) -> Span {
        debug_assert!(retry > 0, "retries count from 1");
        match self {
            Self::None => Span::ZERO,
            Self::Exponential { base } => {
                let seed = seed.child("backoff").numbered("request", request);
                let mut draws = seed.numbered("retry", retry.into()).stream("wait");
                let share: f64 = draws.random();
                Span::from_secs_f64(limit(base, retry).as_secs_f64() * share)
            }
        }
    }
}

/// Returns the limit of the wait before a retry.
fn limit(base: Span, retry: u32) -> Span {
    let doublings = (retry - 1).min(DOUBLINGS) as i32;
    Span::from_secs_f64(base.as_secs_f64() * 2f64.powi(doublings)).min(LONGEST)
}

impl FromStr for Backoff {
    type Err = BackoffError;

    fn from_str(text: &str) -> Result<Self, BackoffError> {
        match text.split_once(':') {
            None if text == "none" => Ok(Self::None),
            Some(("exp", base)) => {
                let base: Span = base.parse().map_err(BackoffError::Time)?;
                let read = Self::Exponential { base };
                read.check().map(|()| read)
            }
            _ => Err(BackoffError::Unknown(text.to_owned())),
        }
    }
}

impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Exponential { base } => write!(f, "exp:{base}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: Backoff = Backoff::Exponential {
        base: Span::from_millis(100),
    };

    #[test]
    fn a_backoff_is_read_and_written_alike() {
        for text in ["none", "exp:100ms", "exp:30s"] {
            assert_eq!(text.parse::<Backoff>().unwrap().to_string(), text);
        }
        let refused = |text: &str| text.parse::<Backoff>().unwrap_err().to_string();
        assert!(refused("exp").contains("exp:100ms"));
        assert!(refused("linear:1s").contains("exp:100ms"));
        assert!(refused("exp:100").contains("no unit"));
        assert!(refused("exp:0s").contains("none for no wait"));
        assert!(refused("exp:31s").contains("30s"));
    }

    #[test]
    fn waits_fill_a_range_that_doubles_up_to_its_maximum() {
        for (retry, limit) in [
            (1, 100),
            (2, 200),
            (4, 800),
            (10, 30_000),
            (u32::MAX, 30_000),
        ] {
            let limit = Span::from_millis(limit);
            let waits = (0..2_000).map(|request| BASE.wait(Seed(1), request, retry));
            let waits: Vec<Span> = waits.collect();
            assert!(waits.iter().all(|wait| *wait <= limit), "{retry}");
            let mean = waits.iter().copied().sum::<Span>() / 2_000;
            // The standard error of the mean of 2,000 uniform draws is 0.0065 of the range.
            let share = mean.as_secs_f64() / limit.as_secs_f64();
            assert!((share - 0.5).abs() < 0.03, "{retry}: {share}");
            let below = waits.iter().filter(|wait| **wait < limit / 10).count();
            assert!((140..=260).contains(&below), "{retry}: {below}");
        }
    }

    proptest! {
        #[test]
        fn a_seed_decides_each_wait(seed: u64, request: u64, retry in 1u32..20) {
            let wait = BASE.wait(Seed(seed), request, retry);
            prop_assert_eq!(wait, BASE.wait(Seed(seed), request, retry));
            prop_assert!(wait != BASE.wait(Seed(seed ^ 1), request, retry) || wait.is_zero());
            prop_assert_eq!(Backoff::None.wait(Seed(seed), request, retry), Span::ZERO);
        }
    }
}
