//! The offers of a route as one thread uses them: the table, and the connections to each endpoint.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use posthaste_gateway_config::Timeouts;

use super::endpoint::OfferEndpoint;
use super::shared::{PublishedTable, RouteOffers};
use crate::record::metrics::GatewayMetrics;
use crate::upstream::Upstreams;
use crate::upstream::known_pools::KnownPools;

/// The offers of a route, for one thread.
pub(crate) struct OfferUpstreams {
    pub(super) shared: Arc<RouteOffers>,
    metrics: Arc<GatewayMetrics>,
    timeouts: Timeouts,
    /// The version that `table` follows.
    seen: Cell<u64>,
    table: RefCell<Rc<ThreadTable>>,
    /// Position at which offers of one price take turns.
    next: Cell<usize>,
}

/// A table with the connections of this thread. Never changes.
pub(super) struct ThreadTable {
    pub(super) published: Arc<PublishedTable>,
    /// By the numbers of the endpoints.
    upstreams: Vec<Rc<Upstreams>>,
}

impl OfferUpstreams {
    /// Endpoints with known `pools` keep their connections.
    pub(crate) fn new(
        metrics: &Arc<GatewayMetrics>,
        shared: &Arc<RouteOffers>,
        timeouts: &Timeouts,
        pools: &KnownPools,
    ) -> Self {
        let seen = shared.version();
        let published = shared.published();
        let new = |endpoint: &Arc<OfferEndpoint>| {
            let upstreams = Upstreams::new(metrics, &endpoint.upstreams, timeouts, pools);
            Rc::new(upstreams)
        };
        let upstreams = published.endpoints.iter().map(new).collect();
        Self {
            shared: shared.clone(),
            metrics: metrics.clone(),
            timeouts: *timeouts,
            seen: Cell::new(seen),
            table: RefCell::new(Rc::new(ThreadTable {
                published,
                upstreams,
            })),
            next: Cell::new(0),
        }
    }

    /// Returns the current table. Costs one load if it has not changed.
    pub(super) fn current(&self) -> Rc<ThreadTable> {
        let version = self.shared.version();
        if version != self.seen.get() {
            self.seen.set(version);
            self.renew();
        }
        self.table.borrow().clone()
    }

    /// The position for the next choice among equal offers.
    pub(super) fn next_position(&self) -> usize {
        let position = self.next.get();
        self.next.set(position.wrapping_add(1));
        position
    }

    /// Adds the connections of each endpoint, for a later configuration.
    pub(crate) fn add_pools(&self, pools: &mut KnownPools) {
        let table = self.table.borrow();
        table
            .upstreams
            .iter()
            .for_each(|upstreams| upstreams.add_pools(pools));
    }

    /// Closes the connections that no later configuration uses.
    pub(crate) fn retire(&self) {
        let table = self.table.borrow();
        table
            .upstreams
            .iter()
            .for_each(|upstreams| upstreams.retire());
    }

    /// Closes connections that have been unused too long, and those to endpoints without an offer.
    pub(crate) fn close_unused(&self) {
        let table = self.current();
        table
            .upstreams
            .iter()
            .for_each(|upstreams| upstreams.close_unused());
    }

    /// Takes over the newest table. Endpoints that stay keep their connections.
    #[cold]
    fn renew(&self) {
        let published = self.shared.published();
        let before = self.table.borrow().clone();
        let known = before.published.endpoints.iter().map(Arc::as_ptr);
        let mut known: HashMap<_, _> = known.zip(&before.upstreams).collect();
        let mut keep = |endpoint: &Arc<OfferEndpoint>| match known.remove(&Arc::as_ptr(endpoint)) {
            Some(upstreams) => upstreams.clone(),
            None => {
                let (metrics, pools) = (&self.metrics, KnownPools::default());
                Rc::new(Upstreams::new(
                    metrics,
                    &endpoint.upstreams,
                    &self.timeouts,
                    &pools,
                ))
            }
        };
        let upstreams = published.endpoints.iter().map(&mut keep).collect();
        // In the order of the table, and not of the map.
        let endpoints = before.published.endpoints.iter().zip(&before.upstreams);
        for (endpoint, upstreams) in endpoints {
            if known.contains_key(&Arc::as_ptr(endpoint)) {
                upstreams.retire();
            }
        }
        self.table.replace(Rc::new(ThreadTable {
            published,
            upstreams,
        }));
    }
}

impl ThreadTable {
    pub(super) fn upstreams(&self, endpoint: u32) -> &Rc<Upstreams> {
        &self.upstreams[endpoint as usize]
    }

    /// Requests of this thread in flight to an endpoint. `None` if it cannot be used.
    pub(super) fn in_flight(&self, endpoint: u32) -> Option<usize> {
        self.upstreams(endpoint).least_in_flight()
    }
}
