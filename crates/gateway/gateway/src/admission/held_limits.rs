//! The limits of routes and clients, and the requests within them.

use std::collections::HashMap;
use std::sync::Arc;

use posthaste_admission::{ClientLimits, Exceeded, Limited, LimitedClient, RequestLimits};
use posthaste_units::{Instant, Span};

use super::counters::RejectionReason;
use super::terms::AdmissionTerms;

/// The requests of all routes and clients that have limits.
#[derive(Debug)]
pub(super) struct LimitStates {
    clients: ClientLimits,
    limits_clients: bool,
    routes: HashMap<Arc<str>, RouteState>,
}

#[derive(Debug)]
struct RouteState {
    limits: RequestLimits,
    requests: Limited,
}

/// The limits that count a request.
#[derive(Debug, Default)]
pub(super) struct HeldLimits {
    client: Option<LimitedClient>,
    route: Option<Arc<str>>,
}

/// A limit that rejects a request, and the time until a retry may succeed, if it is known.
pub(super) type ExceededLimit = (RejectionReason, Option<Span>);

impl LimitStates {
    pub(super) fn new(terms: &AdmissionTerms) -> Self {
        let mut states = Self {
            clients: ClientLimits::new(terms.client_limits),
            limits_clients: false,
            routes: HashMap::new(),
        };
        states.change(Instant::ORIGIN, terms);
        states
    }

    /// Changes the limits. Requests stay counted.
    pub(super) fn change(&mut self, at: Instant, terms: &AdmissionTerms) {
        self.limits_clients = !terms.client_limits.is_empty();
        self.clients.change(at, terms.client_limits);
        for route in self.routes.values_mut() {
            route.limits = RequestLimits::default();
        }
        for (label, limits) in &terms.route_limits {
            let new = || RouteState {
                limits: *limits,
                requests: Limited::new(limits),
            };
            let route = self.routes.entry(label.as_str().into()).or_insert_with(new);
            route.limits = *limits;
            route.requests.change(at, limits);
        }
        self.routes
            .retain(|_, route| !route.limits.is_empty() || route.requests.present() > 0);
    }

    /// Counts a request of a client, given as a hash, on a route, or names the limit that rejects it. The rate of the
    /// client is used up even if the route rejects the request.
    pub(super) fn enter(
        &mut self,
        at: Instant,
        client: u64,
        route: &str,
    ) -> Result<HeldLimits, ExceededLimit> {
        let client = if self.limits_clients {
            Some(self.clients.enter(at, client).map_err(of_client)?)
        } else {
            None
        };
        let Some((name, _)) = self.routes.get_key_value(route) else {
            let route = None;
            return Ok(HeldLimits { client, route });
        };
        let name = name.clone();
        let state = self.routes.get_mut(route).expect("it was found");
        if let Err(exceeded) = state.requests.enter(at, &state.limits) {
            client
                .into_iter()
                .for_each(|client| self.clients.leave(client));
            return Err(of_route(exceeded));
        }
        let route = Some(name);
        Ok(HeldLimits { client, route })
    }

    /// A request has ended.
    pub(super) fn leave(&mut self, held: &mut HeldLimits) {
        if let Some(client) = held.client.take() {
            self.clients.leave(client);
        }
        if let Some(route) = held.route.take()
            && let Some(state) = self.routes.get_mut(&route)
        {
            state.requests.leave();
        }
    }

    /// True if requests may be rejected.
    pub(super) fn is_active(&self) -> bool {
        self.limits_clients || !self.routes.is_empty()
    }

    /// Requests of clients without a state of their own.
    pub(super) const fn beyond(&self) -> u64 {
        self.clients.beyond()
    }
}

const fn of_client(exceeded: Exceeded) -> ExceededLimit {
    match exceeded {
        Exceeded::Rate(wait) => (RejectionReason::ClientRate, Some(wait)),
        Exceeded::Concurrency => (RejectionReason::ClientConcurrency, None),
    }
}

const fn of_route(exceeded: Exceeded) -> ExceededLimit {
    match exceeded {
        Exceeded::Rate(wait) => (RejectionReason::RouteRate, Some(wait)),
        Exceeded::Concurrency => (RejectionReason::RouteConcurrency, None),
    }
}
