//! The upstreams of a route, with the state that its threads share.

use std::sync::Arc;

use posthaste_gateway_config::{self as config, RouteConfig, UpstreamProtocol};

use super::changes::Changes;
use super::ejection::Ejector;
use super::names::Names;
use super::retry_budget::RetryBudget;
use super::target::UpstreamTarget;
use crate::error::TargetError;

/// The upstreams of a route. Shared by all threads. Empty if the route has only offers.
pub(crate) struct RouteUpstreams {
    pub(crate) targets: Vec<Arc<UpstreamTarget>>,
    pub(super) protocol: UpstreamProtocol,
    pub(super) changes: Arc<Changes>,
    pub(super) retry: config::Retry,
    pub(super) budget: Arc<RetryBudget>,
    /// `None` without rules for ejection.
    pub(super) ejector: Option<Arc<Ejector>>,
}

impl RouteUpstreams {
    pub(crate) fn new(route: &RouteConfig, names: &mut Names<'_>) -> Result<Self, TargetError> {
        let changes = Arc::default();
        Ok(Self {
            targets: UpstreamTarget::all(route, &changes, names)?,
            protocol: route.protocol,
            changes,
            retry: route.retry.clone(),
            budget: Arc::default(),
            ejector: route
                .ejection
                .as_ref()
                .map(|rules| Arc::new(Ejector::new(rules))),
        })
    }

    /// Makes the upstreams follow the addresses of their names.
    pub(crate) fn follow_names(&self) {
        for target in &self.targets {
            if let Some(host) = &target.host_name {
                host.add_user(target.clone());
            }
        }
    }

    /// Takes over from `known`, the same route in an earlier configuration, the knowledge about each address that both
    /// have. Must be called before this is shared.
    pub(crate) fn remember(&mut self, known: &Self) {
        self.budget = known.budget.clone();
        let rules = |route: &Self| route.ejector.as_ref().map(|ejector| ejector.rules.clone());
        let rules_stay = rules(self) == rules(known);
        if rules_stay {
            self.ejector = known.ejector.clone();
        }
        for target in &mut self.targets {
            let target = Arc::get_mut(target).expect("a new configuration is not shared yet");
            let mut known = known.targets.iter();
            if let Some(known) = known.find(|known| known.name == target.name) {
                target.remember(known, rules_stay);
            }
        }
    }
}
