//! Checks: sentences with numbers that hold or do not.
//!
//! An instrument check speaks about the measuring itself and must hold on any machine; a claim
//! is the paper's and may fail here for good reasons. Only the first kind decides the exit code.

use serde::Serialize;

/// What a check speaks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The instrument: identities, exact counts, theory. Must hold anywhere.
    Instrument,
    /// The paper's claim, in shape and scaled to this machine. Reported only.
    Claim,
}

/// A sentence, and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What it speaks about.
    pub kind: Kind,
    /// The sentence with its numbers, worded so that it is true to read whether it holds or not:
    /// "36,000 of 36,000 intended requests have an outcome".
    pub sentence: String,
    /// Whether it holds.
    pub holds: bool,
}

impl Check {
    /// A check of the instrument.
    pub fn instrument(holds: bool, sentence: impl Into<String>) -> Self {
        Self {
            kind: Kind::Instrument,
            sentence: sentence.into(),
            holds,
        }
    }

    /// A check of the paper's claim.
    pub fn claim(holds: bool, sentence: impl Into<String>) -> Self {
        Self {
            kind: Kind::Claim,
            sentence: sentence.into(),
            holds,
        }
    }

    /// Whether this check must make the run fail.
    pub fn fails_the_run(&self) -> bool {
        self.kind == Kind::Instrument && !self.holds
    }
}

/// The least of these; not a number where one is none, or where there are none: then no bound holds.
pub(crate) fn least(values: impl IntoIterator<Item = f64>) -> f64 {
    let less = |a: f64, b: f64| if b < a || b.is_nan() { b } else { a };
    values.into_iter().reduce(less).unwrap_or(f64::NAN)
}

/// The most of these; not a number where one is none, or where there are none: then no bound holds.
pub(crate) fn most(values: impl IntoIterator<Item = f64>) -> f64 {
    -least(values.into_iter().map(|value| -value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_neither_least_nor_most() {
        assert_eq!((least([2.0, 1.0, 3.0]), most([2.0, 3.0, 1.0])), (1.0, 3.0));
        for unknown in [vec![], vec![f64::NAN, 1.0], vec![1.0, f64::NAN, 0.5]] {
            assert!(least(unknown.clone()).is_nan(), "{unknown:?}");
            assert!(most(unknown.clone()).is_nan(), "{unknown:?}");
        }
    }
}
