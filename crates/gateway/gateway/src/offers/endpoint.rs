//! An endpoint of offers as an upstream of its own, with its addresses, health and checks.

use std::sync::Arc;

use posthaste_gateway_config::{Resolver, RouteConfig};
use posthaste_serve::spawn_task;
use tokio::task::AbortHandle;

use crate::error::TargetError;
use crate::upstream::health_check::HealthChecks;
use crate::upstream::names::Names;
use crate::upstream::route_upstreams::RouteUpstreams;
use crate::upstream::target::UpstreamTarget;

/// An endpoint that offers name. Shared by all threads.
pub(crate) struct OfferEndpoint {
    /// One upstream.
    pub(crate) upstreams: RouteUpstreams,
}

/// An endpoint with its tasks. Dropping it ends them.
pub(super) struct RunningEndpoint {
    pub(super) endpoint: Arc<OfferEndpoint>,
    renewal: Option<AbortHandle>,
    _checks: HealthChecks,
}

impl OfferEndpoint {
    /// Creates the upstream by the rules of the route. Blocks while a name is looked up.
    pub(super) fn new(
        origin: &str,
        route: &RouteConfig,
        rules: &Resolver,
    ) -> Result<Self, TargetError> {
        let route = RouteConfig {
            upstream: vec![origin.to_owned()],
            ..route.clone()
        };
        let mut names = Names::new(rules, std::iter::empty());
        let upstreams = RouteUpstreams::new(&route, &mut names)?;
        match names.look_up_new().pop() {
            None => Ok(Self { upstreams }),
            Some(unresolved) => Err(TargetError::Resolve {
                name: origin.to_owned(),
                error: Box::new(unresolved.error),
            }),
        }
    }

    pub(crate) fn target(&self) -> &Arc<UpstreamTarget> {
        let mut targets = self.upstreams.targets.iter();
        targets.next().expect("an endpoint is one upstream")
    }
}

impl RunningEndpoint {
    /// Starts the lookups of the name and the health checks on the calling thread.
    pub(super) fn start(endpoint: OfferEndpoint, route: &RouteConfig, rules: &Resolver) -> Self {
        endpoint.upstreams.follow_names();
        let renewal = endpoint.target().host_name.clone().map(|name| {
            let rules = rules.clone();
            let renewing = async move { name.keep_current(&rules).await };
            spawn_task(renewing).abort_handle()
        });
        let mut checks = HealthChecks::default();
        checks.add(&route.health, &endpoint.upstreams.targets);
        Self {
            endpoint: Arc::new(endpoint),
            renewal,
            _checks: checks,
        }
    }
}

impl Drop for RunningEndpoint {
    fn drop(&mut self) {
        if let Some(renewal) = &self.renewal {
            renewal.abort();
        }
    }
}
