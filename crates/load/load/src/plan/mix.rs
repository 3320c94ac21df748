//! The choice of the next request from a mix, by weight and request number.

use crate::plan::Plan;
use crate::request::Request;

/// The requests of a run with their shares.
pub(crate) struct Mix {
    pub(crate) requests: Vec<Request>,
    draw: MixDraw,
}

/// The shares of the requests.
pub(crate) struct MixDraw {
    cumulative: Vec<f64>,
    seed: u64,
}

impl Mix {
    /// Combines a plan with its prepared requests.
    pub(crate) fn new(requests: Vec<Request>, plan: &Plan) -> Self {
        Self {
            requests,
            draw: MixDraw::for_plan(plan),
        }
    }

    /// Returns the request of this number.
    pub(crate) fn pick(&self, number: u64) -> usize {
        self.draw.pick(number)
    }
}

impl MixDraw {
    pub(crate) fn for_plan(plan: &Plan) -> Self {
        let weights = || plan.requests.iter().map(|spec| spec.weight);
        let total: f64 = weights().sum();
        assert!(
            total.is_finite() && total > 0.0,
            "the weights of a mix have no sum"
        );
        let cumulative = weights()
            .scan(0.0, |sum, weight| {
                *sum += weight / total;
                Some(*sum)
            })
            .collect();
        Self {
            cumulative,
            seed: plan.seed.child("mix").0,
        }
    }

    /// Returns the request of this number. The result does not depend on the number of loops.
    pub(crate) fn pick(&self, number: u64) -> usize {
        let last = self.cumulative.len() - 1;
        if last == 0 {
            return 0;
        }
        let draw = spread(self.seed ^ number) as f64 / u64::MAX as f64;
        self.cumulative
            .partition_point(|share| *share < draw)
            .min(last)
    }
}

/// SplitMix64's finaliser (Steele, Lea, Flood 2014): neighbouring numbers become unrelated.
const fn spread(number: u64) -> u64 {
    let state = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let first = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let second = (first ^ (first >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    second ^ (second >> 31)
}
