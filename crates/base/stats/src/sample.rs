//! The number of requests that a bound needs to be shown to hold.
//!
//! A bound on the quantile q leaves the share 1 - q beyond it. With fewer than 3 / (1 - q) requests, a service with
//! twice that share often has none beyond the bound. With as many, none beyond it excludes the share with 95 %.

use statrs::distribution::{Binomial, DiscreteCDF as _};

/// Expected number of requests beyond a bound at the allowed share.
const EXPECTED: f64 = 3.0;
/// Probability below which chance does not explain the number beyond the bound.
const CHANCE: f64 = 0.025;

/// Requests that were compared with a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundSample {
    /// All of them.
    pub count: u64,
    /// Those beyond the bound.
    pub beyond: u64,
    /// The share that may be beyond it.
    pub allowed: f64,
    /// The number that shows that the bound holds.
    pub needed: u64,
}

impl BoundSample {
    /// A sample for which this share may be beyond the bound.
    pub fn new(count: u64, beyond: u64, allowed: f64) -> Self {
        // Rounded, because 3 / (1 - 0.99) is a little more than 300.
        let needed = (EXPECTED / allowed.max(f64::MIN_POSITIVE) * 1e6).round() / 1e6;
        Self {
            count,
            beyond,
            allowed,
            needed: if allowed > 0.0 {
                needed.ceil() as u64
            } else {
                1
            },
        }
    }

    /// True if there are enough requests to show that the bound holds.
    pub const fn suffices(&self) -> bool {
        self.count >= self.needed
    }

    /// True if more requests are beyond the bound than chance explains at the allowed share.
    pub fn exceeds_chance(&self) -> bool {
        let Some(fewer) = self.beyond.checked_sub(1) else {
            return false;
        };
        let law = Binomial::new(self.allowed.clamp(0.0, 1.0), self.count);
        law.is_ok_and(|law| law.sf(fewer) <= CHANCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_need_three_requests_beyond_the_bound() {
        for (quantile, needed) in [(0.5, 6), (0.9, 30), (0.95, 60), (0.99, 300)] {
            assert_eq!(
                BoundSample::new(1, 0, 1.0 - quantile).needed,
                needed,
                "{quantile}"
            );
        }
        assert_eq!(BoundSample::new(1, 0, 0.001).needed, 3_000);
        assert_eq!(BoundSample::new(1, 0, 0.0).needed, 1);
    }

    #[test]
    fn chance_explains_one_late_request_of_twenty_and_not_three() {
        // At 1 %, one or more of 20 are late in 18 % of all runs, two in 1.7 %.
        let exceeds = |beyond| BoundSample::new(20, beyond, 0.01).exceeds_chance();
        assert_eq!([0, 1, 2, 20].map(exceeds), [false, false, true, true]);
    }
}
