//! The state of admission, shared by all threads, and the decision about one request.

use std::sync::Arc;

use posthaste_admission::{
    Admitted, Amount, Arrival, Bucket, By, Delivery, Key, Market, Monitor, Payer, Promise, Refused,
    Rest, ServiceReply, Terms, Why,
};
use posthaste_gateway_config::{AdmissionSettings, Prices};
use posthaste_qos::{Currency, Money, Priorities};
use posthaste_serve::environment;
use posthaste_units::{Instant, Ratio, Span};

use super::counters::{AdmissionGround, RejectionReason};
use super::held_limits::{HeldLimits, LimitStates};
use super::offer_fields::{OfferFields, price_text};
use super::offering::Offering;
use super::price_sampler::PriceSampler;
use super::rejected::RejectedRequest;
use super::route_location::{PlacedTicket, RouteLocation};
use super::services::Services;
use super::terms::AdmissionTerms;
use super::waiting::SlotResult;

/// Window for comparing promises with delivery.
const WINDOW: Span = Span::from_secs(60);

/// Share of requests for which a promise must hold.
const CONFIDENCE: f64 = 0.99;

/// Estimate of the time of a reply before the first one.
const UNKNOWN: Span = Span::from_secs(1);

/// State shared by all threads.
///
/// In a dry run every request is admitted. The state evolves with the requests that are really in service, so a limit
/// and the price follow the real load. A bucket pays for the requests that it would admit, and no quote is issued.
#[derive(Debug)]
pub(super) struct AdmissionState {
    /// The requests in service, and those that wait for a slot of a limit.
    pub(super) services: Services,
    /// Limits of routes and clients.
    pub(super) limits: LimitStates,
    /// Rest of all services together.
    pub(super) rest: Rest,
    pub(super) policy: AdmissionPolicy,
    pub(super) is_dry: bool,
    /// Number of changes of the configuration so far.
    pub(super) changes: u64,
    /// Promises of every offer.
    pub(super) promise: Promise,
    /// Network priorities that every offer promises, if any.
    priorities: Option<Arc<Priorities>>,
    pub(super) monitor: Monitor,
    pub(super) prices: PriceSampler,
    /// Replies since the last sample of the price loop, those of them for nothing, and their total time.
    pub(super) served: u64,
    pub(super) unpaid: u64,
    pub(super) waited: Span,
    /// Paying requests rejected for lack of capacity since then.
    pub(super) crowded_out: u64,
}

/// The policy with its state.
#[derive(Debug)]
pub(super) enum AdmissionPolicy {
    /// Admits every request.
    None,
    /// Admits a rate.
    Rate(Bucket),
    /// Admits a number of requests in service.
    Limit,
    /// Admits requests that accept the price, up to a number in service.
    Prices(Box<Market>),
}

/// The sender of a request, and its importance.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdmissionClient<'a> {
    pub(super) name: &'a str,
    /// Hash of `name`.
    pub(super) hash: u64,
    pub(super) tier: usize,
}

/// A request that was not rejected.
pub(super) enum AdmissionOutcome {
    /// It is in service.
    Admitted(AdmittedRequest, PlacedTicket, HeldLimits),
    /// It waits for a slot of the limit.
    Waits(AdmittedRequest, PlacedTicket, HeldLimits, SlotResult),
}

/// An admitted request.
pub(super) struct AdmittedRequest {
    pub(super) ground: AdmissionGround,
    /// Tier of the slot that it needs. `None` if it needs none.
    slot: Option<usize>,
    /// Reason of its rejection if it gets no slot.
    pub(super) without_slot: RejectionReason,
    /// It pays nothing, because it has no account or no budget.
    pub(super) is_unpaid: bool,
    /// The price that the request pays.
    pub(super) price: Option<Money>,
    /// The request's offer, if prices apply.
    pub(super) offer: Option<String>,
    /// Prices apply, so the request may have fields about them.
    pub(super) is_priced: bool,
    /// Network priorities that its offer promises.
    pub(super) priorities: Option<Arc<Priorities>>,
    /// The reason against it, if a dry run admits it.
    pub(super) would_reject: Option<RejectionReason>,
    /// Fields for the reply: the price and a quote. None in a dry run.
    pub(super) fields: Vec<(&'static str, String)>,
}

impl AdmissionPolicy {
    /// Starts the policy, or continues with what `before` has learned: a bucket keeps its level, and prices keep the price,
    /// the quotes, the published offers and the key ([`Market::change`]).
    fn new(settings: &AdmissionSettings, before: Self, at: Instant) -> Self {
        match settings {
            AdmissionSettings::None => Self::None,
            AdmissionSettings::Rate { rate, burst } => {
                let rate = rate.as_per_second();
                let Self::Rate(mut bucket) = before else {
                    return Self::Rate(Bucket::new(rate, *burst));
                };
                bucket.change(at, rate, *burst);
                Self::Rate(bucket)
            }
            AdmissionSettings::Limit(_) => Self::Limit,
            AdmissionSettings::Prices { prices, .. } => {
                let terms = terms(prices);
                let Self::Prices(mut market) = before else {
                    return Self::Prices(Box::new(Market::new(terms, random_key())));
                };
                market.change(terms);
                Self::Prices(market)
            }
        }
    }

    const fn has_prices(&self) -> bool {
        matches!(self, Self::Prices(..))
    }
}

impl AdmissionState {
    /// False in a dry run, and for offers from before the last change of the configuration.
    pub(super) const fn publishes(&self, changes: u64) -> bool {
        !self.is_dry && self.changes == changes
    }

    pub(super) fn new(at: Instant, terms: &AdmissionTerms, offering: &Offering) -> Self {
        let share = Ratio::new(CONFIDENCE).expect("a share");
        Self {
            services: Services::new(at, terms.services.clone(), &terms.routes),
            limits: LimitStates::new(terms),
            rest: Rest::new(at),
            policy: AdmissionPolicy::new(&terms.policy, AdmissionPolicy::None, at),
            is_dry: terms.services.is_dry,
            changes: 0,
            promise: offering.promise,
            priorities: offering.priorities.clone(),
            monitor: Monitor::new(WINDOW, share, at),
            prices: PriceSampler::new(at),
            served: 0,
            unpaid: 0,
            crowded_out: 0,
            waited: Span::ZERO,
        }
    }

    /// Applies a new configuration. Requests in service stay counted, and count for the new policy. Requests that the
    /// policy `none` admitted are not counted: a limit that starts then does not see those in service. Waiting requests
    /// are rejected if the number of tiers changes, and admitted if the policy no longer is a limit.
    pub(super) fn change(&mut self, at: Instant, terms: &AdmissionTerms, offering: &Offering) {
        let before = std::mem::replace(&mut self.policy, AdmissionPolicy::None);
        let had_prices = before.has_prices();
        self.policy = AdmissionPolicy::new(&terms.policy, before, at);
        if self.policy.has_prices() && !had_prices {
            // The counts since the start are no sample.
            (self.served, self.unpaid, self.crowded_out) = (0, 0, 0);
            self.waited = Span::ZERO;
            self.prices = PriceSampler::new(at);
        }
        self.is_dry = terms.services.is_dry;
        self.changes += 1;
        self.promise = offering.promise;
        self.priorities = offering.priorities.clone();
        self.limits.change(at, terms);
        let services = terms.services.clone();
        self.services.change(at, services, &terms.routes);
        let admitted: u32 = self
            .services
            .all_mut()
            .map(|state| state.serve_waiting(at))
            .sum();
        if admitted > 0 {
            self.rest.enter();
        }
    }

    /// Decides about a request. An admitted one counts as in service, or waits for a slot.
    pub(super) fn admit(
        &mut self,
        at: Instant,
        fields: &OfferFields<'_>,
        sender: AdmissionClient<'_>,
        payer: Payer,
        route: &str,
    ) -> Result<AdmissionOutcome, RejectedRequest> {
        let location = self.services.find(at, route);
        self.serve_waiting(at, location);
        // The configuration of the sender's thread may be another one.
        let tiers = self.services.at(location).service.tier_count();
        let tier = sender.tier.min(tiers - 1);
        let sender = AdmissionClient { tier, ..sender };
        let (mut held, decided) = match self.limits.enter(at, sender.hash, route) {
            Ok(held) => (held, self.decide(at, fields, sender, payer, location)),
            Err((reason, wait)) => {
                let wait = wait.unwrap_or_else(|| self.reply_time(location));
                let rejected = RejectedRequest::plain(reason, wait);
                (HeldLimits::default(), Err(rejected))
            }
        };
        let admitted = match decided {
            Ok(admitted) => admitted,
            Err(rejected) if self.is_dry => {
                AdmittedRequest::in_spite_of(rejected.reason, rejected.current.is_some())
            }
            Err(rejected) => {
                self.limits.leave(&mut held);
                self.reject(at, location, sender, &rejected);
                return Err(rejected);
            }
        };
        match admitted.slot {
            Some(tier) => {
                // There is one tier if accounts have just been removed.
                let tier = tier.min(tiers - 1);
                let sender = AdmissionClient { tier, ..sender };
                self.by_slot(at, fields, sender, location, admitted, held)
            }
            None => Ok(self.without_limit(at, sender, location, admitted, held)),
        }
    }

    /// Takes a request into service that needs no slot.
    fn without_limit(
        &mut self,
        at: Instant,
        sender: AdmissionClient<'_>,
        location: RouteLocation,
        admitted: AdmittedRequest,
        held: HeldLimits,
    ) -> AdmissionOutcome {
        let state = self.services.at(location);
        let ticket = state
            .service
            .enter(at, location.kind, sender.tier, sender.hash);
        state.tier_counts.admitted(sender.tier);
        self.rest.enter();
        AdmissionOutcome::Admitted(admitted, PlacedTicket { location, ticket }, held)
    }

    /// Gives a slot to a request, or lets it wait.
    fn by_slot(
        &mut self,
        at: Instant,
        fields: &OfferFields<'_>,
        sender: AdmissionClient<'_>,
        location: RouteLocation,
        admitted: AdmittedRequest,
        mut held: HeldLimits,
    ) -> Result<AdmissionOutcome, RejectedRequest> {
        let state = self.services.at(location);
        let arrival = state
            .service
            .arrive(at, location.kind, sender.tier, sender.hash);
        let outcome = match arrival {
            Arrival::Admitted(ticket) => {
                state.tier_counts.admitted(sender.tier);
                self.rest.enter();
                AdmissionOutcome::Admitted(admitted, PlacedTicket { location, ticket }, held)
            }
            Arrival::Waits(ticket) => {
                let result = state.wait(ticket);
                AdmissionOutcome::Waits(admitted, PlacedTicket { location, ticket }, held, result)
            }
            Arrival::Rejected => {
                self.limits.leave(&mut held);
                let reason = admitted.without_slot;
                return Err(self.reject_without_slot(at, fields, sender, location, reason));
            }
        };
        // The request may have displaced another one.
        self.serve_waiting(at, location);
        Ok(outcome)
    }

    /// Rejects a request that got no slot.
    pub(super) fn reject_without_slot(
        &mut self,
        at: Instant,
        fields: &OfferFields<'_>,
        sender: AdmissionClient<'_>,
        location: RouteLocation,
        reason: RejectionReason,
    ) -> RejectedRequest {
        let retry_after = self.reply_time(location);
        let rejected = match (&self.policy, reason) {
            (AdmissionPolicy::Prices(market), RejectionReason::Price(why)) => {
                let refused = Refused {
                    why,
                    current: market.current(fields.is_open).price,
                };
                RejectedRequest::by_market(market, fields, &refused, retry_after)
            }
            _ => RejectedRequest::plain(reason, retry_after),
        };
        self.reject(at, location, sender, &rejected);
        rejected
    }

    /// Gives free slots of a service to waiting requests, and rejects those that have waited too long.
    fn serve_waiting(&mut self, at: Instant, location: RouteLocation) {
        if self.services.at(location).serve_waiting(at) > 0 {
            self.rest.enter();
        }
    }

    /// Removes a waiting request. Returns false if it does not wait any more.
    pub(super) fn cancel(&mut self, ticket: &PlacedTicket) -> bool {
        self.services.at(ticket.location).cancel(&ticket.ticket)
    }

    /// Asks the policy about a request.
    fn decide(
        &mut self,
        at: Instant,
        fields: &OfferFields<'_>,
        sender: AdmissionClient<'_>,
        payer: Payer,
        location: RouteLocation,
    ) -> Result<AdmittedRequest, RejectedRequest> {
        let reply_time = self.reply_time(location);
        let service = &mut self.services.at(location).service;
        match &mut self.policy {
            AdmissionPolicy::None => Ok(AdmittedRequest::plain()),
            _ if location.is_exempt => Ok(AdmittedRequest::plain()),
            AdmissionPolicy::Rate(bucket) => match bucket.take(at) {
                Ok(()) => Ok(AdmittedRequest::plain()),
                Err(later) => Err(RejectedRequest::plain(RejectionReason::Rate, later)),
            },
            AdmissionPolicy::Limit if !self.is_dry => Ok(AdmittedRequest {
                slot: Some(sender.tier),
                ..AdmittedRequest::plain()
            }),
            AdmissionPolicy::Limit if service.has_slot(at, location.kind) => {
                Ok(AdmittedRequest::plain())
            }
            AdmissionPolicy::Limit => {
                Err(RejectedRequest::plain(RejectionReason::Limit, reply_time))
            }
            AdmissionPolicy::Prices(market) => {
                let has_slot = service.has_slot(at, location.kind);
                // With accounts, requests wait for a slot, those that pay first.
                let may_wait = payer != Payer::Anyone && !self.is_dry;
                // A quote is given with a reply, and one that waits may get none.
                let is_unquoted = self.is_dry || !has_slot;
                let ask = fields.request(sender.name, payer, is_unquoted);
                match market.admit(at, &ask, has_slot || may_wait) {
                    Ok(admitted) => {
                        let offer = market.offer_at(admitted.price, fields.is_open);
                        let mut paying = AdmittedRequest::paying(offer, &admitted, at);
                        if self.is_dry {
                            (paying.price, paying.fields) = (None, Vec::new());
                        } else {
                            paying.priorities.clone_from(&self.priorities);
                        }
                        paying.is_unpaid = matches!(payer, Payer::Nobody | Payer::Broke);
                        if may_wait && admitted.by != By::Quote {
                            paying.slot = Some(usize::from(paying.is_unpaid));
                        }
                        Ok(paying)
                    }
                    Err(Refused { why, .. }) if may_wait && why.is_for_lack_of_money() => {
                        Ok(AdmittedRequest::unpaid(why, market.terms().currency))
                    }
                    Err(refused) => {
                        let retry_after = match refused.why {
                            Why::Full => reply_time,
                            Why::Overused => market.wait(at, &ask).unwrap_or_default(),
                            _ => self.prices.every,
                        };
                        Err(RejectedRequest::by_market(
                            market,
                            fields,
                            &refused,
                            retry_after,
                        ))
                    }
                }
            }
        }
    }

    /// Records a rejection.
    fn reject(
        &mut self,
        at: Instant,
        location: RouteLocation,
        sender: AdmissionClient<'_>,
        rejected: &RejectedRequest,
    ) {
        let state = self.services.at(location);
        state.tier_counts.rejected(sender.tier);
        let RejectionReason::Price(why) = rejected.reason else {
            return;
        };
        // Without the load, the price would be 0 and the others rejected all the same.
        if !matches!(why, Why::Forged | Why::OtherCurrency) {
            state.service.rejected(at);
            self.rest.rejected(at);
        }
        // Requests rejected for other reasons did not accept the offer.
        if let (Why::Full, Some((name, _))) = (why, &rejected.current) {
            self.monitor
                .record(at, name, sender.name, Delivery::Refused);
            self.crowded_out += u64::from(state.answers(at));
        }
    }

    /// Estimate of the time of a reply.
    pub(super) fn reply_time(&mut self, location: RouteLocation) -> Span {
        let own = self.services.at(location).service.reply_time();
        own.or(self.rest.mean()).unwrap_or(UNKNOWN)
    }

    /// Requests in service that one of this kind may have to queue with, itself included.
    pub(super) fn among(&mut self, at: Instant, location: RouteLocation) -> u32 {
        self.services
            .at(location)
            .service
            .among(at, location.kind)
            .max(1)
    }

    /// Learns from a reply, whose request is still in service. One that its client has given up says nothing about the
    /// time of a reply.
    pub(super) fn reply(
        &mut self,
        at: Instant,
        location: RouteLocation,
        reply: ServiceReply,
        is_abandoned: bool,
    ) {
        let state = self.services.at(location);
        if !reply.is_failed {
            state.replied = Some(at);
        }
        let service = &mut state.service;
        if is_abandoned {
            service.abandoned(reply);
        } else {
            service.reply(reply);
            self.rest.replied(reply.time);
        }
    }

    /// Removes a request from those in service, and gives its slot to a waiting one.
    pub(super) fn leave(&mut self, ticket: &PlacedTicket, at: Instant) {
        let PlacedTicket { location, ticket } = ticket;
        self.services.at(*location).service.leave(ticket, at);
        if self.services.in_service() == 0 {
            self.rest.leave(at);
        }
        self.serve_waiting(at, *location);
    }

    /// Counts a request in service again. The limit may have fallen meanwhile, and does not apply a second time.
    pub(super) fn resume(&mut self, ticket: &PlacedTicket, at: Instant) {
        let PlacedTicket { location, ticket } = ticket;
        self.services.at(*location).service.resume(ticket, at);
        self.rest.enter();
    }
}

impl AdmittedRequest {
    pub(super) fn plain() -> Self {
        Self {
            ground: AdmissionGround::Plain,
            slot: None,
            without_slot: RejectionReason::Limit,
            is_unpaid: false,
            price: None,
            offer: None,
            is_priced: false,
            priorities: None,
            would_reject: None,
            fields: Vec::new(),
        }
    }

    /// Admitted by a dry run.
    fn in_spite_of(reason: RejectionReason, is_priced: bool) -> Self {
        Self {
            ground: AdmissionGround::DryRun,
            is_priced,
            would_reject: Some(reason),
            ..Self::plain()
        }
    }

    /// Admitted without payment, to a slot that paying requests leave. `why` is the reason against it without one.
    fn unpaid(why: Why, currency: Currency) -> Self {
        let price = Amount::ZERO.to_money(currency);
        Self {
            ground: AdmissionGround::Unpaid,
            slot: Some(1),
            without_slot: RejectionReason::Price(why),
            is_unpaid: true,
            is_priced: true,
            fields: vec![("price", price_text(price))],
            ..Self::plain()
        }
    }

    fn paying(offer: String, admitted: &Admitted, at: Instant) -> Self {
        let mut fields = vec![("price", price_text(admitted.price))];
        if let Some((quote, token)) = &admitted.quote {
            let life = quote.until.saturating_since(at).as_nanos() / 1_000_000;
            let text = format!("{token};rate={};life={life}", quote.rate);
            fields.push(("quote", text));
        }
        Self {
            ground: AdmissionGround::Price(admitted.by),
            without_slot: RejectionReason::Price(Why::Full),
            price: Some(admitted.price),
            offer: Some(offer),
            is_priced: true,
            fields,
            ..Self::plain()
        }
    }
}

impl AdmissionOutcome {
    /// The price that the request pays.
    pub(super) const fn price(&self) -> Option<Money> {
        let (Self::Admitted(request, ..) | Self::Waits(request, ..)) = self;
        request.price
    }
}

fn terms(prices: &Prices) -> Terms {
    Terms {
        controller: prices.controller.clone(),
        discount: prices.discount,
        life: prices.life,
        rate: prices.rate.as_per_second(),
        most_rate: prices.most_rate.as_per_second(),
        burst: prices.burst,
        capacity: prices.capacity.map(|rate| rate.as_per_second()),
        ..Terms::new(&prices.offer, prices.currency)
    }
}

/// Creates a random secret key.
fn random_key() -> Key {
    let bytes = environment::random("quotes");
    Key::new(&bytes.expect("the system's random numbers"))
}
