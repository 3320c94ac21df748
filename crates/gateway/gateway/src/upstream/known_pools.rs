//! Connections that outlive a change of the configuration.
//!
//! They belong to an address with its health, which a later configuration takes over for the same upstream of the same
//! route ([`RouteUpstreams::remember`](super::route_upstreams::RouteUpstreams::remember)). Upstreams with a configured
//! authority are an exception: the file may have changed, and open connections were verified by the old one.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::endpoint::UpstreamEndpoint;
use super::health::Health;
use super::pool::Pool;

/// The pools of one configuration, by address. Valid as long as that configuration.
#[derive(Default)]
pub(crate) struct KnownPools(HashMap<*const Health, Rc<Pool>>);

impl KnownPools {
    pub(super) fn add(&mut self, endpoint: &UpstreamEndpoint, pool: &Rc<Pool>) {
        self.0.insert(Arc::as_ptr(&endpoint.health), pool.clone());
    }

    /// The pool of an address that has stayed.
    pub(super) fn get(&self, endpoint: &UpstreamEndpoint) -> Option<Rc<Pool>> {
        self.0.get(&Arc::as_ptr(&endpoint.health)).cloned()
    }
}
