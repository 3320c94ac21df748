//! Counts of requests whose bad ones come in bursts.
//!
//! Bad requests come in bursts: all requests of one long queue, or of one stall. A burst is one event. The interval of
//! the number of bursts is that of a Poisson count. Bursts of unequal size count as fewer bursts of equal size with the
//! same sum and variance (Bohm and Zech, Nucl. Instrum. Methods A 748, 2014).

use std::iter::Sum;

use posthaste_stats::{RequestPart, poisson_interval, poisson_upper};

/// Bursts that show a failure, if their share of bad requests does.
const BURSTS: f64 = 3.0;
/// Requests without any bad one, if no request at all may be bad.
const ALL_GOOD: f64 = 1_000.0;
/// A smaller allowed share allows no bad request at all.
const NONE: f64 = 1e-6;
/// Confidence of a plan.
const LIKELY: f64 = 0.8;
/// Confidence of the share of requests beyond half of the bound.
const SURE: f64 = 0.95;
/// Numbers of neighbouring intervals over which the variance of the bad requests is taken.
const SCALES: [usize; 3] = [1, 2, 4];
/// Minimum number of intervals for that variance.
const BLOCKS: usize = 8;

/// Requests of one or more trials.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pool {
    pub(super) requests: f64,
    pub(super) bad: f64,
    pub(super) bursts: f64,
    /// Sum of the squares of the sizes of the bursts.
    pub(super) squares: f64,
}

impl Sum for Pool {
    fn sum<I: Iterator<Item = Self>>(pools: I) -> Self {
        pools.fold(Self::default(), Self::add)
    }
}

impl Pool {
    /// The requests of a trial. Neighbouring intervals with bad requests are one burst, unless bad requests are spread
    /// as evenly as single ones would be.
    pub(super) fn from_parts(parts: &[RequestPart]) -> Self {
        let mut all = Self::default();
        let mut burst = 0.0;
        for part in parts {
            all.requests += part.count;
            if part.bad >= 0.5 {
                burst += part.bad;
            } else {
                all = all.with_burst(burst);
                burst = 0.0;
            }
        }
        all = all.with_burst(burst);
        let spread = SCALES
            .map(|scale| dispersion(parts, scale))
            .into_iter()
            .fold(1.0, f64::max);
        Self {
            squares: all.squares.min(spread * all.bad),
            ..all
        }
    }

    /// Requests of which some are bad, each by itself.
    pub(super) const fn of_single(requests: f64, bad: f64) -> Self {
        Self {
            requests,
            bad,
            bursts: bad,
            squares: bad,
        }
    }

    fn add(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            bad: self.bad + other.bad,
            bursts: self.bursts + other.bursts,
            squares: self.squares + other.squares,
        }
    }

    fn with_burst(self, size: f64) -> Self {
        Self {
            bad: self.bad + size,
            bursts: self.bursts + f64::from(u8::from(size > 0.0)),
            squares: self.squares + size * size,
            ..self
        }
    }

    /// The share of bad requests.
    pub(super) fn share(self) -> f64 {
        self.bad / self.requests.max(1.0)
    }

    /// The highest share of bad requests that is not excluded with a confidence of 95 %.
    pub(super) fn most(self) -> f64 {
        poisson_upper(self.equal_bursts(), SURE) * self.burst_size() / self.requests.max(1.0)
    }

    /// Number of bursts of one size with the same sum and the same variance, for a Poisson number of bursts of any size.
    fn equal_bursts(self) -> f64 {
        if self.squares > 0.0 {
            self.bad * self.bad / self.squares
        } else {
            0.0
        }
    }

    /// Size of the equal bursts, at least one request.
    fn burst_size(self) -> f64 {
        if self.bad > 0.0 {
            (self.squares / self.bad).max(1.0)
        } else {
            1.0
        }
    }

    /// True if `more` requests would probably show that at most the share `allowed` is bad: if bad ones come as often as
    /// they do at most with a confidence of 80 %.
    pub(super) fn would_hold(self, more: f64, allowed: f64) -> bool {
        let size = self.burst_size();
        let added = if allowed < NONE {
            0.0
        } else {
            poisson_upper(self.equal_bursts(), LIKELY) * more / self.requests.max(1.0)
        };
        let all = Self {
            requests: self.requests + more,
            bad: self.bad + added * size,
            bursts: self.bursts + added,
            squares: self.squares + added * size * size,
        };
        all.holds(allowed)
    }

    /// True if at most the share `allowed` of all requests is bad, with 97.5 % confidence.
    pub(super) fn holds(self, allowed: f64) -> bool {
        if allowed < NONE {
            return self.bad == 0.0 && self.requests >= ALL_GOOD;
        }
        let [_, bursts] = poisson_interval(self.equal_bursts());
        bursts * self.burst_size() <= allowed * self.requests
    }

    /// True if more than the share `allowed` of all requests is bad, with 97.5 % confidence.
    pub(super) fn fails(self, allowed: f64) -> bool {
        let [bursts, _] = poisson_interval(self.equal_bursts());
        self.bursts >= BURSTS && bursts * self.burst_size() > allowed * self.requests
    }
}

/// Variance of the bad requests of blocks of `scale` intervals, as a multiple of their mean. One for single requests,
/// the size of the bursts for bursts. Infinite with too few blocks.
fn dispersion(parts: &[RequestPart], scale: usize) -> f64 {
    let blocks = parts
        .chunks_exact(scale)
        .map(|block| block.iter().map(|part| part.bad).sum());
    let blocks: Vec<f64> = blocks.collect();
    let count = blocks.len() as f64;
    let mean = blocks.iter().sum::<f64>() / count.max(1.0);
    if blocks.len() < BLOCKS || mean <= 0.0 {
        return f64::INFINITY;
    }
    let squares: f64 = blocks.iter().map(|bad| (bad - mean).powi(2)).sum();
    squares / (count - 1.0) / mean
}
