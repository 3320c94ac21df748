//! The protected services: each has its own limit, tiers and waiting requests.

use std::collections::HashMap;
use std::sync::Arc;

use posthaste_admission::{Kind, Next, ProtectedService, Ticket};
use posthaste_units::{Instant, Span};
use tokio::sync::oneshot;

use super::route_location::RouteLocation;
use super::service_terms::{RouteTerms, ServiceTerms};
use super::tier_counts::TierCounts;
use super::waiting::{SlotResult, Waiters};
use super::{ServiceReading, TierReading};

/// Time after a reply in which a service counts as answering.
const RECENT: Span = Span::from_secs(1);

/// All services, and the location of each route. They are known by index, so that none is removed before the gateway ends.
#[derive(Debug)]
pub(super) struct Services {
    all: Vec<ServiceState>,
    routes: HashMap<Arc<str>, RouteLocation>,
    terms: ServiceTerms,
}

/// One service.
#[derive(Debug)]
pub(super) struct ServiceState {
    name: Arc<str>,
    pub(super) service: ProtectedService,
    pub(super) tier_counts: TierCounts,
    pub(super) waiters: Waiters,
    /// Number of its routes so far. Each is a kind of request.
    kinds: Kind,
    /// A route of the current configuration uses it.
    is_used: bool,
    /// The last reply.
    pub(super) replied: Option<Instant>,
}

impl Services {
    pub(super) fn new(now: Instant, terms: ServiceTerms, routes: &[RouteTerms]) -> Self {
        let mut services = Self {
            all: Vec::new(),
            routes: HashMap::new(),
            terms,
        };
        services.add_routes(now, routes);
        services
    }

    /// Applies a new configuration. A service keeps what it has learned, and a route that is gone its location: threads
    /// may still have it.
    pub(super) fn change(&mut self, now: Instant, terms: ServiceTerms, routes: &[RouteTerms]) {
        for state in &mut self.all {
            let limit = terms.limit.clone();
            state.service.change(limit, terms.tiers.clone());
            state.service.set_dry(terms.is_dry);
            state.tier_counts.change(&terms.tier_names);
            state.is_used = false;
        }
        self.terms = terms;
        self.add_routes(now, routes);
    }

    /// Gives each route its service and its kind, and marks the services as used.
    fn add_routes(&mut self, now: Instant, routes: &[RouteTerms]) {
        for route in routes {
            let service = self.named(now, &route.service);
            self.all[service].is_used = true;
            let known = self.routes.get(route.label.as_str());
            let kind = match known.filter(|location| location.service == service) {
                Some(location) => location.kind,
                None => self.all[service].new_kind(),
            };
            let location = RouteLocation {
                service,
                kind,
                is_exempt: route.is_exempt,
            };
            self.routes.insert(route.label.as_str().into(), location);
        }
    }

    /// The service of this name, which may be new.
    fn named(&mut self, now: Instant, name: &str) -> usize {
        if let Some(known) = self.all.iter().position(|state| &*state.name == name) {
            return known;
        }
        let ServiceTerms {
            limit,
            is_dry,
            tiers,
            tier_names,
        } = &self.terms;
        let mut service = ProtectedService::new(limit.clone(), tiers.clone(), now);
        service.set_dry(*is_dry);
        self.all.push(ServiceState {
            name: name.into(),
            service,
            tier_counts: TierCounts::new(tier_names),
            waiters: Waiters::new(),
            kinds: 0,
            is_used: false,
            replied: None,
        });
        self.all.len() - 1
    }

    /// The location of a route, by its label. One that no configuration had so far is a service of its own.
    pub(super) fn find(&mut self, now: Instant, label: &str) -> RouteLocation {
        if let Some(location) = self.routes.get(label) {
            return *location;
        }
        let service = self.named(now, label);
        let location = RouteLocation {
            service,
            kind: self.all[service].new_kind(),
            is_exempt: false,
        };
        self.routes.insert(label.into(), location);
        location
    }

    pub(super) fn at(&mut self, location: RouteLocation) -> &mut ServiceState {
        &mut self.all[location.service]
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut ServiceState> {
        self.all.iter_mut()
    }

    /// Number of requests in service, of all services.
    pub(super) fn in_service(&self) -> u32 {
        self.all
            .iter()
            .map(|state| state.service.in_service())
            .sum()
    }

    /// The services for display: those that are used or have requests.
    pub(super) fn readings(&mut self, now: Instant) -> Vec<ServiceReading> {
        let shown = |state: &&mut ServiceState| state.is_used || state.service.in_service() > 0;
        let all = self.all.iter_mut().filter(shown);
        all.map(|state| state.reading(now)).collect()
    }
}

impl ServiceState {
    fn new_kind(&mut self) -> Kind {
        self.kinds += 1;
        self.kinds - 1
    }

    /// Returns where the result for a waiting request will be. Call it before [`serve_waiting`](Self::serve_waiting).
    pub(super) fn wait(&mut self, ticket: Ticket) -> SlotResult {
        let (sender, result) = oneshot::channel();
        self.waiters.insert(ticket, sender);
        result
    }

    /// Gives free slots to waiting requests, and rejects those that have waited too long. Returns how many got a slot.
    pub(super) fn serve_waiting(&mut self, now: Instant) -> u32 {
        let mut admitted = 0;
        while let Some(next) = self.service.pop(now) {
            let (Next::Admitted(ticket) | Next::Rejected(ticket)) = next;
            let waiter = self.waiters.remove(&ticket);
            match next {
                Next::Admitted(ticket) => {
                    let among = Some(self.service.among(now, ticket.kind()));
                    let is_sent = waiter.is_some_and(|waiter| waiter.send(among).is_ok());
                    debug_assert!(is_sent, "a slot has a receiver");
                    if is_sent {
                        admitted += 1;
                    } else {
                        self.service.leave(&ticket, now);
                    }
                }
                Next::Rejected(_) => {
                    waiter.map(|waiter| waiter.send(None));
                }
            }
        }
        admitted
    }

    /// True if the service has answered within a second, or twice its mean time of a reply. One that hangs has no capacity
    /// that others could pay for.
    pub(super) fn answers(&self, now: Instant) -> bool {
        let mean = self.service.reply_time().unwrap_or_default();
        let recent = (mean * 2).max(RECENT);
        let is_recent = |at: Instant| now.saturating_since(at) <= recent;
        self.replied.is_some_and(is_recent)
    }

    /// Removes a waiting request. Returns false if it does not wait any more.
    pub(super) fn cancel(&mut self, ticket: &Ticket) -> bool {
        self.waiters.remove(ticket);
        self.service.cancel(ticket)
    }

    fn reading(&mut self, now: Instant) -> ServiceReading {
        self.service.settle(now);
        let counts = self.tier_counts.iter().zip(self.service.tiers());
        let tiers = counts.map(|(count, (in_service, waiting))| TierReading {
            name: count.name.clone(),
            in_service,
            waiting,
            admitted: count.admitted,
            rejected: count.rejected,
            waited: count.waited,
            wait: count.wait.as_secs_f64(),
        });
        ServiceReading {
            name: self.name.clone(),
            in_service: self.service.in_service(),
            tiers: tiers.collect(),
            limit: self.service.limit(),
            hanging: self.service.hanging(now),
        }
    }
}
