//! The choice of the next request from a mix, by weight and request number.

use posthaste_units::Seed;

use crate::request::Request;

/// The requests of a run with their shares.
pub(crate) struct Mix {
    pub(crate) requests: Vec<Request>,
    cumulative: Vec<f64>,
    seed: u64,
}

impl Mix {
    pub(crate) fn new(requests: Vec<Request>, seed: Seed) -> Self {
        let total: f64 = requests.iter().map(|request| request.weight).sum();
        assert!(
            total.is_finite() && total > 0.0,
            "the weights of a mix have no sum"
        );
        let cumulative = requests
            .iter()
            .scan(0.0, |sum, request| {
                *sum += request.weight / total;
                Some(*sum)
            })
            .collect();
        Self {
            requests,
            cumulative,
            seed: seed.child("mix").0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Returns the request of this number. The result does not depend on the number of loops.
    pub(crate) fn pick(&self, number: u64) -> usize {
        let last = self.requests.len() - 1;
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
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
