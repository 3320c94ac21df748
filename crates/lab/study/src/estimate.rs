//! Medians of a few runs, with confidence intervals.
//!
//! Runs are few and come from no single distribution: a machine pauses, a timer has two values. The estimate is
//! therefore the median, and its interval comes from order statistics, which assume no distribution. Means and
//! quantiles of one long run are in `posthaste-stats`.

/// Note for drawings of a mean as in the papers.
pub const COMPLETE_REPLIES: &str =
    "Means are of complete replies: requests that were aborted are omitted, as in the paper.";
/// Note for drawings of a percentile.
pub const ALL_DUE: &str = "Percentiles are of all requests that were due; one without a reply is longer than any bound, and a percentile among such is not drawn.";

/// Formats a time in milliseconds. Infinity reads as "no reply".
pub fn in_ms(ms: f64) -> String {
    if ms.is_infinite() {
        "no reply".to_owned()
    } else {
        format!("{ms:.1} ms")
    }
}

/// Note below each picture of [`MedianEstimate`]s.
pub const MEDIANS: &str =
    "Medians of runs; whiskers are 95 % intervals, or all runs where they are fewer than six.";

/// The median of some runs. Unlike the mean, it does not move with one disturbed run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianEstimate {
    /// The median.
    pub median: f64,
    /// Lower end of a 95 % interval of the median by order statistics. With fewer than six runs, the least of all.
    pub low: f64,
    /// Upper end of the same interval.
    pub high: f64,
}

/// Number of values up to which the interval is exact. Beyond some thousand, its probabilities are too small for an f64.
const EXACT: usize = 1_000;

/// Estimates the median of `values`, which come from independent runs. NaN values are ignored. An infinite value
/// counts: a percentile among requests without a reply exceeds any bound.
pub fn estimate(values: &[f64]) -> MedianEstimate {
    let mut sorted: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| !value.is_nan())
        .collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    if count == 0 {
        return MedianEstimate {
            median: f64::NAN,
            low: f64::NAN,
            high: f64::NAN,
        };
    }
    let out = omitted(count);
    MedianEstimate {
        median: f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]),
        low: sorted[out],
        high: sorted[count - 1 - out],
    }
}

/// Number of values to omit at each end: as many as possible while that few values below the median are unlikely (2.5 %).
fn omitted(count: usize) -> usize {
    if count > EXACT {
        // The binomial distribution as a normal one: half of the values, less 1.96 standard deviations and half a value.
        let half = (count - 1) as f64 / 2.0;
        return (half - 0.98 * (count as f64).sqrt()).floor() as usize;
    }
    let (mut out, mut share) = (0, 0.5f64.powi(count as i32));
    let mut likely = share;
    while likely + share * (count - out) as f64 / (out + 1) as f64 <= 0.025 && 2 * out + 3 <= count
    {
        share *= (count - out) as f64 / (out + 1) as f64;
        likely += share;
        out += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_come_with_the_interval_that_so_few_runs_allow() {
        let estimate_of = |count: u32| {
            let values: Vec<f64> = (1..=count).rev().map(f64::from).collect();
            let MedianEstimate { median, low, high } = estimate(&values);
            (median, low, high)
        };
        assert_eq!(estimate_of(1), (1.0, 1.0, 1.0));
        assert_eq!(estimate_of(3), (2.0, 1.0, 3.0));
        // Published tables: from 6 runs on, all values are a 95 % interval. From 9 on, all but the outermost.
        assert_eq!(estimate_of(8), (4.5, 1.0, 8.0));
        assert_eq!(estimate_of(9), (5.0, 2.0, 8.0));
        assert_eq!(estimate_of(12), (6.5, 3.0, 10.0));
        // The approximation for many runs continues the exact numbers.
        assert_eq!([EXACT, EXACT + 1, 10_000].map(omitted), [468, 468, 4901]);
        assert!(estimate(&[f64::NAN]).median.is_nan());
        // With no reply in two of three runs, the median is infinite.
        let most = estimate(&[5.0, f64::INFINITY, f64::INFINITY]);
        assert_eq!((most.median, most.low), (f64::INFINITY, 5.0));
    }
}
