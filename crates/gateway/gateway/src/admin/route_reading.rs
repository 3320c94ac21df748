//! Requests and rejections of each route at one moment, and their growth.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::record::times::RouteTimes;

/// The counts of one route at one moment.
#[derive(Clone, Debug)]
pub(crate) struct RouteReading {
    route: Arc<RouteTimes>,
    requests: u64,
    rejected: u64,
}

/// Requests of one route in an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RouteRejections {
    pub(crate) route: String,
    pub(crate) requests: u64,
    /// Those that admission rejected.
    pub(crate) rejected: u64,
}

impl RouteReading {
    pub(crate) fn new(route: &Arc<RouteTimes>) -> Self {
        // A request begins before it is rejected.
        let rejected = route.rejected.load(Relaxed);
        Self {
            route: route.clone(),
            requests: route.begun.load(Relaxed),
            rejected,
        }
    }

    /// The routes with rejections since `earlier`. A route without an earlier reading has begun after it.
    pub(crate) fn rejections(now: &[Self], earlier: &[Self]) -> Vec<RouteRejections> {
        let growth = |now: &Self| {
            let before = earlier
                .iter()
                .find(|then| Arc::ptr_eq(&then.route, &now.route));
            let (requests, rejected) = before.map_or((0, 0), |then| (then.requests, then.rejected));
            RouteRejections {
                route: now.route.name.clone(),
                requests: now.requests.saturating_sub(requests),
                rejected: now.rejected.saturating_sub(rejected),
            }
        };
        let routes = now.iter().map(growth);
        routes.filter(|route| route.rejected > 0).collect()
    }
}
