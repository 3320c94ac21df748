//! The objective in the form that the search uses.

use posthaste_stats::BoundedStatistic;
use posthaste_units::Span;

/// An upper bound on a statistic of the response time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The share of requests that must lie within the bound; 1 for all of them, `None` for the mean.
    pub quantile: Option<f64>,
    /// The bound.
    pub bound: Span,
    /// The share of requests that may fail.
    pub tolerance: f64,
}

impl Goal {
    /// The form of the response curve. `None` if no request at all may exceed the bound, because no curve describes
    /// that.
    pub fn law(&self) -> Option<BoundedStatistic> {
        match self.quantile {
            None => Some(BoundedStatistic::Mean),
            Some(share) if share < 1.0 => Some(BoundedStatistic::Share {
                allowed: 1.0 - share,
            }),
            Some(_) => None,
        }
    }

    /// The share of requests that may lie beyond the bound. For a mean, the share that may fail.
    pub fn allowed(&self) -> f64 {
        self.quantile.map_or(self.tolerance, |share| 1.0 - share)
    }
}
