//! Checks: sentences with numbers that hold or fail.
//!
//! An instrument check is about the measurement itself and must hold on any machine. A claim of a paper and a goal of
//! this project may fail here for good reasons. Only instrument checks decide the exit code.

use serde::Serialize;

/// Possible reason for a difference that should disappear in a longer run on a quieter machine. No run has confirmed it.
pub const NOISE: &str = "possibly noise of short runs on a shared machine; repeat them, or measure longer with `--full`.";

/// Subject of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckKind {
    /// The instrument: identities, exact counts, theory. Must hold anywhere.
    Instrument,
    /// A claim of a paper, compared in shape and scaled to this machine. Reported only.
    Paper,
    /// A goal of this project, in a figure that goes beyond the papers. Reported only.
    Goal,
}

/// A sentence and its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its subject.
    pub kind: CheckKind,
    /// The sentence with its numbers. It reads as true in both cases: "36,000 of 36,000 intended requests have an
    /// outcome".
    pub sentence: String,
    /// True if the check holds.
    pub holds: bool,
    /// True if the check fails only because a problem that the paper found is smaller here.
    pub better: bool,
    /// Reason of the failure. Empty if the check holds or if no reason is known.
    pub reason: String,
}

impl Check {
    /// A check of the instrument.
    pub fn instrument(holds: bool, sentence: impl Into<String>) -> Self {
        Self::new(CheckKind::Instrument, holds, sentence.into())
    }

    /// A check of a paper's claim.
    pub fn claim(holds: bool, sentence: impl Into<String>) -> Self {
        Self::new(CheckKind::Paper, holds, sentence.into())
    }

    /// A check of a goal of this project.
    pub fn goal(holds: bool, sentence: impl Into<String>) -> Self {
        Self::new(CheckKind::Goal, holds, sentence.into())
    }

    fn new(kind: CheckKind, holds: bool, sentence: String) -> Self {
        Self {
            kind,
            sentence,
            holds,
            better: false,
            reason: String::new(),
        }
    }

    /// Adds `reason` if the check fails.
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        if !self.holds {
            self.reason = reason.into();
        }
        self
    }

    /// Marks the difference as an improvement if the check fails and `better` is true.
    pub fn better_if(mut self, better: bool) -> Self {
        self.better = better && !self.holds;
        self
    }

    /// True if this check makes the run fail.
    pub fn fails_the_run(&self) -> bool {
        self.kind == CheckKind::Instrument && !self.holds
    }
}

/// Returns the least value. NaN if any value is NaN or if there are none, so that no bound holds.
pub fn least(values: impl IntoIterator<Item = f64>) -> f64 {
    let less = |a: f64, b: f64| if b < a || b.is_nan() { b } else { a };
    values.into_iter().reduce(less).unwrap_or(f64::NAN)
}

/// Returns the greatest value. NaN if any value is NaN or if there are none, so that no bound holds.
pub fn most(values: impl IntoIterator<Item = f64>) -> f64 {
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
    fn extremes_with_unknown_values_are_unknown() {
        assert_eq!((least([2.0, 1.0, 3.0]), most([2.0, 3.0, 1.0])), (1.0, 3.0));
        for unknown in [vec![], vec![f64::NAN, 1.0], vec![1.0, f64::NAN, 0.5]] {
            assert!(least(unknown.clone()).is_nan(), "{unknown:?}");
            assert!(most(unknown.clone()).is_nan(), "{unknown:?}");
        }
    }
}
