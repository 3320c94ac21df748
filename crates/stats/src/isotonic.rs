//! Bounds of a threshold from trials with results that only become worse with the rate.
//!
//! Neighbours that contradict the order are pooled (the pool-adjacent-violators algorithm: Barlow, Bartholomew, Bremner
//! and Brunk, Statistical Inference under Order Restrictions, 1972). A rate that is shown to hold is therefore never
//! above one that is shown to fail. Shares have the exact Poisson interval of their effective counts.

use statrs::distribution::{ChiSquared, ContinuousCDF as _};

/// One trial: `beyond` of `count` effective requests were beyond the bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// Requests per second.
    pub rate: f64,
    /// Equivalent number of independent requests.
    pub count: f64,
    /// Those beyond the bound.
    pub beyond: f64,
}

/// The highest rate shown to hold and the lowest shown to fail, with 97.5 % confidence each.
pub fn bounds(tried: &[Tried], allowed: f64) -> [Option<f64>; 2] {
    let mut sorted: Vec<Tried> = tried.iter().copied().filter(|t| t.count > 0.0).collect();
    sorted.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    // Blocks of pooled trials: lowest rate, highest rate, sums.
    let mut blocks: Vec<(f64, Tried)> = Vec::new();
    for trial in sorted {
        let mut block = (trial.rate, trial);
        while let Some(last) = blocks.last() {
            if last.1.beyond / last.1.count <= block.1.beyond / block.1.count {
                break;
            }
            block = (
                last.0,
                Tried {
                    rate: block.1.rate,
                    count: last.1.count + block.1.count,
                    beyond: last.1.beyond + block.1.beyond,
                },
            );
            blocks.pop();
        }
        blocks.push(block);
    }
    // A pooled block shows an average: it holds at its lowest rate, or fails at its highest.
    let holds = |block: &&(f64, Tried)| share(block.1)[1] < allowed;
    let fails = |block: &&(f64, Tried)| share(block.1)[0] > allowed;
    [
        blocks.iter().rfind(holds).map(|block| block.0),
        blocks.iter().find(fails).map(|block| block.1.rate),
    ]
}

/// The 95 % interval of the share beyond the bound.
pub fn share(trial: Tried) -> [f64; 2] {
    let quantile = |freedom: f64, at: f64| match ChiSquared::new(freedom) {
        Ok(law) if freedom > 0.0 => 0.5 * law.inverse_cdf(at) / trial.count,
        _ => 0.0,
    };
    let high = quantile(2.0 * trial.beyond + 2.0, 0.975);
    // Near a share of 1 a Poisson count is too uncertain, so the other side is counted.
    let rest = trial.count - trial.beyond;
    let low = quantile(2.0 * trial.beyond, 0.025).max(1.0 - quantile(2.0 * rest + 2.0, 0.975));
    [low.min(1.0), high.min(1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(rate: f64, count: f64, beyond: f64) -> Tried {
        Tried {
            rate,
            count,
            beyond,
        }
    }

    #[test]
    fn what_holds_is_below_what_fails() {
        let all = [
            tried(148.0, 500.0, 30.0),
            tried(160.0, 96.0, 0.0),
            tried(162.0, 500.0, 40.0),
            tried(120.0, 900.0, 0.0),
        ];
        assert_eq!(bounds(&all, 0.01), [Some(120.0), Some(160.0)]);
        assert_eq!(bounds(&all[1..2], 0.01), [None, None]);
        assert_eq!(bounds(&[], 0.01), [None, None]);
    }

    #[test]
    fn intervals_are_those_of_a_poisson_count() {
        // 3 events: 0.619 to 8.767.
        let [low, high] = share(tried(1.0, 1000.0, 3.0));
        assert!((low - 0.000_619).abs() < 1e-5 && (high - 0.008_767).abs() < 1e-5);
        let [low, high] = share(tried(1.0, 50.0, 50.0));
        assert!(low > 0.92 && high == 1.0, "{low} {high}");
    }
}
