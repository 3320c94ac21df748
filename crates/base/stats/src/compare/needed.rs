//! Estimate of the data that would decide an open comparison.
//!
//! Assumes that the change and the spread stay as measured. With few runs the spread is inaccurate, so the result is
//! only an order of magnitude.

use serde::Serialize;

use super::spread::{normal, per_run, student};
use super::{EQUALITY, Rules};

/// Maximum number of runs per side to propose. More are not practical.
const MOST_RUNS: usize = 99;
/// Maximum factor of the run length to propose.
const LONGEST: u32 = 64;
/// Scatter between runs if none was measured. The rules are tuned for it.
const USUAL_SCATTER: f64 = 0.05;

/// Two alternatives that would each decide a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Needed {
    /// Runs per side of the current length; `None` beyond 99.
    pub runs: Option<usize>,
    /// Factor of the run length at the same number of runs. `None` if the scatter between runs exceeds that within
    /// them.
    pub times_longer: Option<u32>,
    /// The scatter between runs is not measured but assumed to be 5 %.
    pub assumed: bool,
}

/// Data of an open comparison, on the scale with a symmetrical interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenComparison {
    /// Absolute value of the change.
    pub(super) change: f64,
    /// Maximum change that counts as equal.
    pub(super) margin: f64,
    /// Standard deviation of the estimates of a side, including the error within runs.
    pub(super) deviation: Option<f64>,
    /// Part of `deviation` from the error within one run.
    pub(super) within: f64,
    pub(super) runs: [usize; 2],
}

impl Needed {
    pub(super) fn estimate(open: &OpenComparison, rules: &Rules) -> Self {
        let assumed = open.deviation.is_none() && rules.scatter.is_none();
        let usual = rules.scatter.unwrap_or(USUAL_SCATTER);
        let deviation = open.deviation.unwrap_or(usual.hypot(open.within));
        let decides = |half: &dyn Fn(f64) -> f64| {
            open.change > half(rules.confidence) || open.change + half(EQUALITY) <= open.margin
        };
        let runs = (2..=MOST_RUNS).find(|n| {
            decides(&|confidence| {
                let own = normal(confidence) * open.within;
                let measured = student(confidence, 2 * n - 2) * deviation;
                measured.max(own) * per_run([*n, *n])
            })
        });
        let few = open.runs[0].min(open.runs[1]);
        let between = (deviation.powi(2) - open.within.powi(2)).max(0.0);
        let freedom = open.runs[0] + open.runs[1] - 2;
        let longer = |times: u32| {
            let own = open.within.powi(2) / f64::from(times);
            decides(&|confidence| {
                let quantile = match freedom {
                    0 => normal(confidence),
                    _ => student(confidence, freedom),
                };
                quantile * (between + own).sqrt() * per_run(open.runs)
            })
        };
        let lengths = (1..=LONGEST.ilog2()).map(|power| 1 << power);
        // One run per side shows no scatter at any length.
        let times_longer = lengths.filter(|_| !assumed).find(|times| longer(*times));
        Self {
            runs: runs.map(|runs| runs.max(few + 1)),
            times_longer,
            assumed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        confidence: 0.95,
        margin: 0.2,
        scatter: None,
        steady: false,
    };

    fn open(change: f64, deviation: Option<f64>, within: f64) -> Needed {
        let open = OpenComparison {
            change,
            margin: 1.2f64.ln(),
            deviation,
            within,
            runs: [3, 3],
        };
        Needed::estimate(&open, &RULES)
    }

    #[test]
    fn more_runs_decide_what_scatters() {
        // 0.1 of deviation: t(2n - 2) * 0.1 * sqrt(2 / n) <= 0.182 - 0.05 first at n = 5 (1.860 * 0.0632 = 0.118).
        let needed = open(0.05, Some(0.1), 0.01);
        assert_eq!((needed.runs, needed.assumed), (Some(5), false));
        assert_eq!(needed.times_longer, None, "scatter between runs stays");
    }

    #[test]
    fn longer_runs_decide_what_is_noise_within_them() {
        let needed = open(0.05, Some(0.2), 0.2);
        // 2.132 * 0.2 * 0.8165 = 0.348, and 0.123 with runs 8 times longer.
        assert_eq!(needed.times_longer, Some(8));
        assert!(needed.runs.is_some_and(|runs| runs > 6), "{needed:?}");
    }

    #[test]
    fn nothing_decides_a_change_at_the_margin() {
        let needed = open(1.2f64.ln() / 2.0, Some(2.0), 0.0);
        assert_eq!(needed.runs, None);
    }
}
