//! Checks: sentences with numbers that hold or do not.
//!
//! An instrument check speaks about the measuring itself and must hold on any machine. A claim of a paper and a goal of
//! our own may fail here for good reasons. Only the first kind decides the exit code.

use serde::Serialize;

/// The reason of a difference that a longer run on a quieter machine does not show.
pub(crate) const NOISE: &str = "noise: runs are short, and other programs of this machine take the processor from them; `--full` measures longer.";

/// Subject of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The instrument: identities, exact counts, theory. Must hold anywhere.
    Instrument,
    /// A claim of a paper, in shape and scaled to this machine. Reported only.
    Paper,
    /// A goal of our own, in a figure that goes beyond the papers. Reported only.
    Goal,
}

/// A sentence, and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its subject.
    pub kind: Kind,
    /// The sentence with its numbers, worded so that it is true to read whether it holds or not:
    /// "36,000 of 36,000 intended requests have an outcome".
    pub sentence: String,
    /// Whether it holds.
    pub holds: bool,
    /// It does not hold, because what a paper found to be bad is better here.
    pub better: bool,
    /// The reason why it does not hold; empty where it holds, or where none is known.
    pub reason: String,
}

impl Check {
    /// A check of the instrument.
    pub fn instrument(holds: bool, sentence: impl Into<String>) -> Self {
        Self::new(Kind::Instrument, holds, sentence.into())
    }

    /// A check of a paper's claim.
    pub fn claim(holds: bool, sentence: impl Into<String>) -> Self {
        Self::new(Kind::Paper, holds, sentence.into())
    }

    /// A check of a goal of our own.
    pub fn goal(holds: bool, sentence: impl Into<String>) -> Self {
        Self::new(Kind::Goal, holds, sentence.into())
    }

    fn new(kind: Kind, holds: bool, sentence: String) -> Self {
        Self {
            kind,
            sentence,
            holds,
            better: false,
            reason: String::new(),
        }
    }

    /// The same check with the reason that is given where it does not hold.
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        if !self.holds {
            self.reason = reason.into();
        }
        self
    }

    /// The same check; where it does not hold, and this is true, the difference is an improvement.
    pub fn better_if(mut self, better: bool) -> Self {
        self.better = better && !self.holds;
        self
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
    fn a_check_that_holds_needs_no_reason() {
        let check = |holds| {
            Check::claim(holds, "It is so.")
                .because("noise")
                .better_if(true)
        };
        assert_eq!(
            (check(true).reason.as_str(), check(true).better),
            ("", false)
        );
        assert_eq!(
            (check(false).reason.as_str(), check(false).better),
            ("noise", true)
        );
    }

    #[test]
    fn what_is_not_known_is_neither_least_nor_most() {
        assert_eq!((least([2.0, 1.0, 3.0]), most([2.0, 3.0, 1.0])), (1.0, 3.0));
        for unknown in [vec![], vec![f64::NAN, 1.0], vec![1.0, f64::NAN, 0.5]] {
            assert!(least(unknown.clone()).is_nan(), "{unknown:?}");
            assert!(most(unknown.clone()).is_nan(), "{unknown:?}");
        }
    }
}
