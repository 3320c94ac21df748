//! The samples of the price loop. They belong to the state, so that the loop can pause or change its interval.

use posthaste_units::{Instant, Span};

/// Last sample of the service, and its measured properties.
#[derive(Debug)]
pub(super) struct PriceSampler {
    /// Interval of price updates.
    pub(super) every: Span,
    pub(super) last: Instant,
    /// The last sampled busy share.
    pub(super) busy: f64,
    /// Proportion of paying requests in the last replies.
    pub(super) paid: f64,
    /// Known capacity, in requests per second.
    pub(super) capacity: Option<f64>,
    /// Shortest recent mean time of a reply, in seconds.
    pub(super) least: Option<f64>,
}

impl PriceSampler {
    pub(super) const fn new(at: Instant) -> Self {
        Self {
            every: Span::ZERO,
            last: at,
            busy: 0.0,
            paid: 1.0,
            capacity: None,
            least: None,
        }
    }
}
