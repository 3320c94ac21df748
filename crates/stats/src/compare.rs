//! Two runs side by side: what differs, and what only seems to.
//!
//! Works on summaries alone, so that runs of last year can be compared from their records. Assumes
//! the runs are independent of each other; each statistic is judged by itself, so of twenty
//! verdicts on equal services one is expected to be wrong.

use serde::Serialize;

use crate::{Statistic, Summary};

/// One statistic of two runs; lower is better.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Which.
    pub statistic: Statistic,
    /// In the first run, milliseconds.
    pub before: f64,
    /// In the second run, milliseconds.
    pub after: f64,
    /// After less before, milliseconds.
    pub difference: f64,
    /// After over before; `None` where before is zero.
    pub ratio: Option<f64>,
    /// The ratio's 95 % interval; `None` where a run has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_interval: Option<[f64; 2]>,
    /// What may be concluded.
    pub verdict: Verdict,
}

/// What two runs prove about one statistic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The second run was faster, beyond chance.
    Better,
    /// The second run was slower, beyond chance.
    Worse,
    /// No difference beyond chance; a relative change of this size (0.05 is 5 %) could have hidden.
    Same {
        /// The larger distance of the ratio's interval from 1.
        within: f64,
    },
    /// A run was too short or too unsteady to tell, or the statistic is not an estimate.
    Unknown,
}

/// Every statistic of `before` and `after`, in the order of a report.
///
/// The ratio's interval combines the half-widths of both intervals in quadrature, in the logarithm
/// and each side apart (the method of variance estimates recovery: Zou and Donner, Statistics in
/// Medicine 27, 2008).
pub fn compare(before: &Summary, after: &Summary) -> Vec<Comparison> {
    Statistic::ALL
        .into_iter()
        .map(|statistic| {
            let (old, new) = (before.value(statistic), after.value(statistic));
            let intervals = before.interval(statistic).zip(after.interval(statistic));
            let ratio_interval =
                intervals.and_then(|(of_old, of_new)| ratio_interval((old, of_old), (new, of_new)));
            Comparison {
                statistic,
                before: old,
                after: new,
                difference: new - old,
                ratio: (old > 0.0).then(|| new / old),
                ratio_interval,
                verdict: ratio_interval.map_or(Verdict::Unknown, verdict),
            }
        })
        .collect()
}

fn verdict([low, high]: [f64; 2]) -> Verdict {
    if high < 1.0 {
        Verdict::Better
    } else if low > 1.0 {
        Verdict::Worse
    } else {
        Verdict::Same {
            within: (1.0 - low).max(high - 1.0),
        }
    }
}

/// `None` where something is not above zero, or not in order.
fn ratio_interval(old: (f64, [f64; 2]), new: (f64, [f64; 2])) -> Option<[f64; 2]> {
    let proper = |(value, [low, high]): (f64, [f64; 2])| {
        0.0 < low && low <= value && value <= high && high.is_finite()
    };
    if !proper(old) || !proper(new) {
        return None;
    }
    let below = |(value, [low, _]): (f64, [f64; 2])| (value / low).ln();
    let above = |(value, [_, high]): (f64, [f64; 2])| (high / value).ln();
    let ratio = new.0 / old.0;
    Some([
        ratio * (-below(new).hypot(above(old))).exp(),
        ratio * above(new).hypot(below(old)).exp(),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_mean(mean: f64, mean_interval: Option<[f64; 2]>) -> Summary {
        Summary {
            count: 1,
            mean,
            mean_interval,
            ..Summary::default()
        }
    }

    fn of_means(before: &Summary, after: &Summary) -> Comparison {
        compare(before, after).remove(0)
    }

    #[test]
    fn noise_decides() {
        let before = with_mean(10.0, Some([9.8, 10.2]));
        let faster = of_means(&before, &with_mean(9.0, Some([8.8, 9.2])));
        assert_eq!((faster.difference, faster.verdict), (-1.0, Verdict::Better));
        let [low, high] = faster.ratio_interval.unwrap();
        assert!(low > 0.86 && high < 0.94, "3 % about 0.9: {low} {high}");
        let slower = of_means(&before, &with_mean(11.0, Some([10.8, 11.2])));
        assert_eq!(slower.verdict, Verdict::Worse);
        let unsure = of_means(&before, &with_mean(11.0, Some([9.0, 13.0])));
        let Verdict::Same { within } = unsure.verdict else {
            panic!("{unsure:?}");
        };
        assert!(within > 0.2 && within < 0.4, "{within}");
    }

    #[test]
    fn without_intervals_nothing_is_known() {
        let sure = with_mean(10.0, Some([9.8, 10.2]));
        for other in [
            with_mean(1.0, None),
            with_mean(0.0, Some([0.0, 0.0])),
            with_mean(f64::NAN, Some([1.0, 2.0])),
        ] {
            assert_eq!(of_means(&sure, &other).verdict, Verdict::Unknown);
            assert_eq!(of_means(&other, &sure).verdict, Verdict::Unknown);
        }
        assert_eq!(compare(&sure, &sure)[6].verdict, Verdict::Unknown);
    }

    #[test]
    fn exchanging_the_runs_inverts_the_ratio() {
        let (one, other) = (
            with_mean(10.0, Some([9.0, 12.0])),
            with_mean(14.0, Some([13.0, 16.0])),
        );
        let there = of_means(&one, &other).ratio_interval.unwrap();
        let back = of_means(&other, &one).ratio_interval.unwrap();
        assert!((there[0] * back[1] - 1.0).abs() < 1e-12);
        assert!((there[1] * back[0] - 1.0).abs() < 1e-12);
    }
}
