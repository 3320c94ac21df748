//! The admission stage: admits requests by rate, by number in service, or by price, and records their outcome.
//!
//! [`Admission::admit`] is called once per request, before anything is sent to an upstream. It applies the limits of the
//! client and of the route, then the policy. With the policy `limit` a request may wait for a slot ([`waiting`]). All
//! threads share one state. A request locks it at admission, at its reply and at its end, each time only for lookups in
//! a few maps. The price is adjusted outside the path of requests ([`price_loop`]).
//!
//! A new configuration changes the policy under the lock ([`Admission::change`]). A thread reads its own configuration
//! only for the name of the client and for the policy `none`, which takes no lock. Until it has the new one, a request
//! is treated as one that arrived before: without a policy it is not counted, at its admission or later.

pub(crate) mod admitted;
mod client_hasher;
mod counters;
mod delivery;
mod held_limits;
mod offer_fields;
mod offer_page;
pub(crate) mod offering;
pub(crate) mod price_loop;
mod price_sampler;
mod publication;
mod rejected;
mod route_location;
mod service_terms;
mod services;
mod state;
pub(crate) mod terms;
mod tier_counts;
pub(crate) mod tier_rules;
mod waiting;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::http::request::Parts;
use posthaste_compression::Codings;
use posthaste_gateway_config::{Protection, ProtectionPolicy};
use posthaste_units::{Instant, Span};

use self::admitted::{AdmissionGuard, AdmittedService};
use self::client_hasher::ClientHasher;
use self::counters::{AdmissionCounters, RejectionReason};
use self::offer_fields::{OfferFields, client, price_text, strip};
use self::offering::Offering;
use self::rejected::{RejectedRequest, rejection};
use self::route_location::PlacedTicket;
use self::state::{
    AdmissionClient, AdmissionOutcome, AdmissionPolicy, AdmissionState, AdmittedRequest,
};
use self::terms::AdmissionTerms;
use self::waiting::WaitingRequest;
use crate::accounts::payment::{Paying, Payment};
use crate::clock::now;
use crate::error::Rejection;
use crate::request::client::ClientIdentity;
use crate::request::preferences::Preferences;

/// Admission control of a gateway.
#[derive(Debug)]
pub(crate) struct Admission {
    state: Mutex<AdmissionState>,
    counters: AdmissionCounters,
    hasher: ClientHasher,
}

/// Facts about a request, besides its head, that decide about its admission.
#[derive(Clone, Copy)]
pub(crate) struct AdmissionSubject<'a> {
    pub(crate) identity: &'a ClientIdentity,
    /// Label of the route.
    pub(crate) route: &'a str,
    /// The route has limits.
    pub(crate) is_limited: bool,
    /// Codings that the route offers.
    pub(crate) codings: Codings,
    /// Index of the tier.
    pub(crate) tier: usize,
    pub(crate) paying: Paying<'a>,
}

/// A request that was not rejected at once.
enum Begun<'p> {
    InService(AdmittedService<'p>),
    Waiting(WaitingService<'p>),
}

/// A request that waits for its service.
struct WaitingService<'p> {
    request: WaitingRequest<'p>,
    admitted: AdmittedRequest,
    payment: Option<Payment<'p>>,
    longest: Span,
}

/// The state for display.
pub(crate) struct AdmissionSnapshot {
    /// False if every request is admitted without a count.
    pub(crate) is_active: bool,
    pub(crate) is_dry: bool,
    /// Requests in service, of all services.
    pub(crate) in_service: u32,
    pub(crate) price: Option<CurrentPrice>,
    pub(crate) services: Vec<ServiceReading>,
    /// Requests of clients that share the limits of one, because there are too many.
    pub(crate) beyond: u64,
}

/// One service.
pub(crate) struct ServiceReading {
    pub(crate) name: Arc<str>,
    pub(crate) in_service: u32,
    /// Those of them that hang, and do not count for the limit.
    pub(crate) hanging: u32,
    /// `None` if the policy has no limit.
    pub(crate) limit: Option<u32>,
    /// Empty without tiers.
    pub(crate) tiers: Vec<TierReading>,
}

/// One tier.
pub(crate) struct TierReading {
    pub(crate) name: String,
    pub(crate) in_service: u32,
    pub(crate) waiting: usize,
    pub(crate) admitted: u64,
    pub(crate) rejected: u64,
    /// Admitted requests that had waited, and their total time in seconds.
    pub(crate) waited: u64,
    pub(crate) wait: f64,
}

/// The current offer.
pub(crate) struct CurrentPrice {
    pub(crate) offer: String,
    /// Price of one request, in units of its currency.
    pub(crate) amount: f64,
    /// The price as text.
    pub(crate) text: String,
    pub(crate) quoted: f64,
    pub(crate) turns: u64,
}

impl Admission {
    /// Creates the state from the configuration.
    pub(crate) fn new(terms: &AdmissionTerms, offering: &Offering) -> Self {
        Self {
            state: Mutex::new(AdmissionState::new(now(), terms, offering)),
            counters: AdmissionCounters::default(),
            hasher: ClientHasher::new(),
        }
    }

    /// Applies a new configuration. The counts and what was learned stay, see [`AdmissionState::change`].
    pub(crate) fn change(&self, terms: &AdmissionTerms, offering: &Offering) {
        self.state().change(now(), terms, offering);
    }

    /// Admits a request, or rejects it with a reason and advice. It may wait for a slot of the limit. `config` is that
    /// of its thread.
    pub(crate) async fn admit<'p>(
        &'p self,
        config: &Protection,
        head: &mut Parts,
        preferences: &Preferences,
        subject: AdmissionSubject<'p>,
    ) -> Result<AdmissionGuard<'p>, Rejection> {
        if !config.is_active() && !subject.is_limited {
            return Ok(AdmissionGuard::uncounted(self));
        }
        let client = match subject.paying.name() {
            Some(account) => Cow::Borrowed(account),
            None => client(head, subject.identity, config),
        };
        let sender = AdmissionClient {
            name: &client,
            hash: self.hasher.hash(&client),
            tier: subject.tier,
        };
        let fields = OfferFields::read(&head.headers, preferences, subject.codings);
        let service = match self.enter(&fields, sender, &subject).await {
            Ok(service) => service,
            Err(rejected) => {
                self.counters.rejected(rejected.reason);
                return Err(rejection(head, rejected));
            }
        };
        let admitted = &service.request;
        self.counters.admitted(admitted.ground);
        if let Some(reason) = admitted.would_reject {
            self.counters.would_reject(reason);
        }
        if admitted.is_priced || config.policy == ProtectionPolicy::Prices {
            strip(&mut head.headers);
        }
        Ok(AdmissionGuard::new(self, service))
    }

    /// Takes a request into service, at once or after a wait.
    async fn enter<'p>(
        &'p self,
        fields: &OfferFields<'_>,
        sender: AdmissionClient<'_>,
        subject: &AdmissionSubject<'p>,
    ) -> Result<AdmittedService<'p>, RejectedRequest> {
        let at = now();
        let waiting = match self.begin(at, fields, sender, subject)? {
            Begun::InService(service) => return Ok(service),
            Begun::Waiting(waiting) => waiting,
        };
        let PlacedTicket { location, ticket } = *waiting.request.ticket();
        let tier = ticket.tier();
        let Some(slot) = waiting.request.wait(waiting.longest).await else {
            let sender = AdmissionClient { tier, ..sender };
            let reason = match waiting.admitted.without_slot {
                RejectionReason::Limit => RejectionReason::Wait,
                other => other,
            };
            let mut state = self.state();
            return Err(state.reject_without_slot(now(), fields, sender, location, reason));
        };
        let wait = slot.at.saturating_since(at);
        self.state()
            .services
            .at(location)
            .tier_counts
            .waited(tier, wait);
        Ok(AdmittedService {
            began: slot.at,
            request: waiting.admitted,
            client: sender.name.to_owned(),
            ticket: slot.ticket,
            held: slot.held,
            among: slot.among,
            payment: waiting.payment,
        })
    }

    /// Takes a request into service, or lets it begin to wait. Holds its price.
    fn begin<'p>(
        &'p self,
        at: Instant,
        fields: &OfferFields<'_>,
        sender: AdmissionClient<'_>,
        subject: &AdmissionSubject<'p>,
    ) -> Result<Begun<'p>, RejectedRequest> {
        let mut state = self.state();
        let decide = |payer| state.admit(at, fields, sender, payer, subject.route);
        let outcome = subject.paying.admit(at, decide, AdmissionOutcome::price);
        let (outcome, payment) = outcome?;
        Ok(match outcome {
            AdmissionOutcome::Admitted(request, ticket, held) => {
                Begun::InService(AdmittedService {
                    began: at,
                    request,
                    client: sender.name.to_owned(),
                    ticket,
                    held,
                    among: state.among(at, ticket.location),
                    payment,
                })
            }
            AdmissionOutcome::Waits(admitted, ticket, held, result) => {
                let longest = state.services.at(ticket.location).service.wait();
                Begun::Waiting(WaitingService {
                    request: WaitingRequest::new(self, ticket, held, result),
                    admitted,
                    payment,
                    longest,
                })
            }
        })
    }

    /// Returns the state for display.
    pub(crate) fn snapshot(&self) -> AdmissionSnapshot {
        let mut state = self.state();
        let (at, is_dry) = (now(), state.is_dry);
        let services = state.services.readings(at);
        let is_active = !matches!(state.policy, AdmissionPolicy::None) || state.limits.is_active();
        let price = match &mut state.policy {
            AdmissionPolicy::None | AdmissionPolicy::Rate(_) | AdmissionPolicy::Limit => None,
            AdmissionPolicy::Prices(market) => {
                let quoted = market.quoted(at);
                let present = market.current(false);
                Some(CurrentPrice {
                    quoted,
                    turns: market.turns(),
                    offer: present.name.clone(),
                    amount: present.price.micros() as f64 / 1e6,
                    text: price_text(present.price),
                })
            }
        };
        AdmissionSnapshot {
            is_active,
            is_dry: is_active && is_dry,
            in_service: state.services.in_service(),
            price,
            services,
            beyond: state.limits.beyond(),
        }
    }

    pub(crate) const fn counters(&self) -> &AdmissionCounters {
        &self.counters
    }

    /// A panic with the lock held cannot leave the counts inconsistent.
    fn state(&self) -> MutexGuard<'_, AdmissionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
