//! The counters of the history at one moment.

use posthaste_units::Instant;

use super::route_reading::RouteReading;
use crate::clock::now;
use crate::context::GatewayContext;
use crate::record::fine_histogram::TimeCounts;
use crate::record::outcomes::Outcomes;

/// The counters at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    pub(crate) outcomes: Outcomes,
    /// Times of requests that an upstream answered with a status below 500.
    pub(crate) times: TimeCounts,
    pub(crate) routes: Vec<RouteReading>,
}

impl Reading {
    /// Reads the counters now.
    pub(crate) fn take(context: &GatewayContext) -> Self {
        let (metrics, resolved) = (&context.metrics, context.resolved());
        Self {
            at: now(),
            outcomes: metrics.outcomes(),
            times: metrics.ends.answered.counts(),
            routes: resolved
                .routes()
                .map(|route| RouteReading::new(route.times))
                .collect(),
        }
    }
}
