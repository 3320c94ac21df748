//! The state of admission, shared by all threads, and the decision about one request.

use std::sync::Arc;

use posthaste_admission::{
    Admitted, Amount, Arrival, Bucket, By, Delivery, Key, Limit, Market, Monitor, Next, Payer,
    Promise, Refused, Rest, Terms, Ticket, Tiers, Why,
};
use posthaste_qos::{Currency, Money, Priorities};
use posthaste_units::{Instant, Ratio, Span};
use rustix::rand::{GetRandomFlags, getrandom};

use super::TierReading;
use super::counters::{AdmissionGround, RejectionReason};
use super::held_limits::{HeldLimits, LimitStates};
use super::offer_fields::{OfferFields, price_text};
use super::offering::Offering;
use super::price_sampler::PriceSampler;
use super::rejected::RejectedRequest;
use super::terms::AdmissionTerms;
use super::tier_counts::TierCounts;
use super::waiting::Waiters;
use crate::config::{AdmissionSettings, Prices};

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
    /// The requests in service, and those that wait for a slot of the limit.
    pub(super) tiers: Tiers,
    pub(super) tier_counts: TierCounts,
    pub(super) waiters: Waiters,
    /// Limits of routes and clients.
    pub(super) limits: LimitStates,
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
    Limit(Limit),
    /// Admits requests that accept the price, up to a number in service.
    Prices(Limit, Box<Market>),
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
    Admitted(AdmittedRequest, Ticket, HeldLimits),
    /// It waits for a slot of the limit.
    Waits(AdmittedRequest, Ticket, HeldLimits),
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
    /// Starts the policy, or continues with what `before` has learned:
    ///
    /// - A bucket keeps its level.
    /// - A limit is kept within the new bounds, from `limit` to `prices` and back, too.
    /// - Prices keep the price, the quotes, the published offers and the key, see [`Market::change`].
    fn new(settings: &AdmissionSettings, before: Self, at: Instant) -> Self {
        let limit = |new: &Limit| match &before {
            Self::Limit(limit) | Self::Prices(limit, _) => new.clone().continuing(limit),
            Self::None | Self::Rate(_) => new.clone(),
        };
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
            AdmissionSettings::Limit(new) => Self::Limit(limit(new)),
            AdmissionSettings::Prices { limit: new, prices } => {
                let (limit, terms) = (limit(new), terms(prices));
                let Self::Prices(_, mut market) = before else {
                    return Self::Prices(limit, Box::new(Market::new(terms, random_key())));
                };
                market.change(terms);
                Self::Prices(limit, market)
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
            tiers: Tiers::new(terms.tiers.clone()),
            tier_counts: TierCounts::new(&terms.tier_names),
            waiters: Waiters::new(),
            limits: LimitStates::new(terms),
            rest: Rest::new(at),
            policy: AdmissionPolicy::new(&terms.policy, AdmissionPolicy::None, at),
            is_dry: terms.is_dry,
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
        self.is_dry = terms.is_dry;
        self.changes += 1;
        self.promise = offering.promise;
        self.priorities = offering.priorities.clone();
        self.tier_counts.change(&terms.tier_names);
        self.tiers.change(terms.tiers.clone());
        self.limits.change(at, terms);
        self.serve_waiting(at);
    }

    /// Decides about a request. An admitted one counts as in service, or waits for a slot.
    pub(super) fn admit(
        &mut self,
        at: Instant,
        fields: &OfferFields<'_>,
        (sender, payer): (AdmissionClient<'_>, Payer),
        route: &str,
    ) -> Result<AdmissionOutcome, RejectedRequest> {
        self.settle(at);
        self.serve_waiting(at);
        // The configuration of the sender's thread may be another one.
        let tier = sender.tier.min(self.tiers.count() - 1);
        let sender = AdmissionClient { tier, ..sender };
        let (mut held, decided) = match self.limits.enter(at, sender.hash, route) {
            Ok(held) => (held, self.decide(at, fields, (sender, payer))),
            Err((reason, wait)) => {
                let wait = wait.unwrap_or_else(|| self.reply_time());
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
                self.reject(at, sender, &rejected);
                return Err(rejected);
            }
        };
        match admitted.slot {
            Some(tier) => {
                // There is one tier if accounts have just been removed.
                let tier = tier.min(self.tiers.count() - 1);
                let sender = AdmissionClient { tier, ..sender };
                self.by_slot(at, fields, sender, admitted, held)
            }
            None => Ok(self.without_limit(sender, admitted, held)),
        }
    }

    /// Takes a request into service that needs no slot.
    fn without_limit(
        &mut self,
        sender: AdmissionClient<'_>,
        admitted: AdmittedRequest,
        held: HeldLimits,
    ) -> AdmissionOutcome {
        let ticket = self.tiers.unlimited(sender.tier, sender.hash);
        self.tiers.enter(&ticket);
        self.rest.enter();
        self.tier_counts.admitted(sender.tier);
        debug_assert!(
            admitted.may_exceed() || self.limit().is_none_or(|limit| self.in_service() <= limit),
            "a request without a quote is admitted beyond the limit"
        );
        AdmissionOutcome::Admitted(admitted, ticket, held)
    }

    /// Gives a slot to a request, or lets it wait.
    fn by_slot(
        &mut self,
        at: Instant,
        fields: &OfferFields<'_>,
        sender: AdmissionClient<'_>,
        admitted: AdmittedRequest,
        mut held: HeldLimits,
    ) -> Result<AdmissionOutcome, RejectedRequest> {
        let (tier, limit) = (sender.tier, self.slots());
        let outcome = match self.tiers.push(at, limit, tier, sender.hash) {
            Arrival::Admitted(ticket) => {
                self.rest.enter();
                self.tier_counts.admitted(tier);
                AdmissionOutcome::Admitted(admitted, ticket, held)
            }
            Arrival::Waits(ticket) => AdmissionOutcome::Waits(admitted, ticket, held),
            Arrival::Rejected => {
                self.limits.leave(&mut held);
                let reason = admitted.without_slot;
                return Err(self.reject_without_slot(at, fields, sender, reason));
            }
        };
        // The request may have displaced another one.
        self.serve_waiting(at);
        Ok(outcome)
    }

    /// Rejects a request that got no slot.
    pub(super) fn reject_without_slot(
        &mut self,
        at: Instant,
        fields: &OfferFields<'_>,
        sender: AdmissionClient<'_>,
        reason: RejectionReason,
    ) -> RejectedRequest {
        let retry_after = self.reply_time();
        let rejected = match (&self.policy, reason) {
            (AdmissionPolicy::Prices(_, market), RejectionReason::Price(why)) => {
                let refused = Refused {
                    why,
                    current: market.current(fields.is_open).price,
                };
                RejectedRequest::by_market(market, fields, &refused, retry_after)
            }
            _ => RejectedRequest::plain(reason, retry_after),
        };
        self.reject(at, sender, &rejected);
        rejected
    }

    /// Gives free slots to waiting requests, and rejects those that have waited too long.
    fn serve_waiting(&mut self, at: Instant) {
        let limit = self.slots();
        while let Some(next) = self.tiers.pop(at, limit) {
            let (Next::Admitted(ticket) | Next::Rejected(ticket)) = next;
            let waiter = self.waiters.remove(&ticket);
            match next {
                Next::Admitted(_) => {
                    self.rest.enter();
                    let in_service = Some(self.in_service());
                    let is_sent = waiter.is_some_and(|waiter| waiter.send(in_service).is_ok());
                    debug_assert!(is_sent, "a slot is given to nobody");
                }
                Next::Rejected(_) => {
                    waiter.map(|waiter| waiter.send(None));
                }
            }
        }
    }

    /// The tiers for display.
    pub(super) fn tier_readings(&self) -> Vec<TierReading> {
        let counts = self.tier_counts.iter().zip(self.tiers.counts());
        let readings = counts.map(|(count, (in_service, waiting))| TierReading {
            name: count.name.clone(),
            in_service,
            waiting,
            admitted: count.admitted,
            rejected: count.rejected,
            waited: count.waited,
            wait: count.wait.as_secs_f64(),
        });
        readings.collect()
    }

    /// Removes a waiting request. Returns false if it does not wait any more.
    pub(super) fn cancel(&mut self, ticket: &Ticket) -> bool {
        self.waiters.remove(ticket);
        self.tiers.cancel(ticket)
    }

    /// Number of requests in service.
    pub(super) const fn in_service(&self) -> u32 {
        self.tiers.in_service()
    }

    /// Asks the policy about a request.
    fn decide(
        &mut self,
        at: Instant,
        fields: &OfferFields<'_>,
        (sender, payer): (AdmissionClient<'_>, Payer),
    ) -> Result<AdmittedRequest, RejectedRequest> {
        let in_service = self.in_service();
        let reply_time = self.reply_time();
        match &mut self.policy {
            AdmissionPolicy::None => Ok(AdmittedRequest::plain()),
            AdmissionPolicy::Rate(bucket) => match bucket.take(at) {
                Ok(()) => Ok(AdmittedRequest::plain()),
                Err(later) => Err(RejectedRequest::plain(RejectionReason::Rate, later)),
            },
            AdmissionPolicy::Limit(_) if !self.is_dry => Ok(AdmittedRequest {
                slot: Some(sender.tier),
                ..AdmittedRequest::plain()
            }),
            AdmissionPolicy::Limit(limit) if in_service < limit.now() => {
                Ok(AdmittedRequest::plain())
            }
            AdmissionPolicy::Limit(_) => {
                Err(RejectedRequest::plain(RejectionReason::Limit, reply_time))
            }
            AdmissionPolicy::Prices(limit, market) => {
                let has_slot = in_service < limit.now();
                // With accounts, requests wait for a slot, those that pay first.
                let may_wait = payer != Payer::Anyone && !self.is_dry;
                // A quote is given with a reply, and one that waits may get none.
                let is_unquoted = self.is_dry || !has_slot;
                let ask = fields.request((sender.name, payer), is_unquoted);
                match market.admit(at, &ask, has_slot || may_wait) {
                    Ok(admitted) => {
                        let offer = market.offer_at(admitted.price, fields.is_open);
                        let mut paying = AdmittedRequest::paying(offer, &admitted, at);
                        match self.is_dry {
                            true => (paying.price, paying.fields) = (None, Vec::new()),
                            false => paying.priorities.clone_from(&self.priorities),
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
    fn reject(&mut self, at: Instant, sender: AdmissionClient<'_>, rejected: &RejectedRequest) {
        self.tier_counts.rejected(sender.tier);
        let RejectionReason::Price(why) = rejected.reason else {
            return;
        };
        // Without the load, the price would be 0 and the others rejected all the same.
        if !matches!(why, Why::Forged | Why::OtherCurrency) {
            self.rest.rejected(at);
        }
        // Requests rejected for other reasons did not accept the offer.
        if let (Why::Full, Some((name, _))) = (why, &rejected.current) {
            self.monitor
                .record(at, name, sender.name, Delivery::Refused);
            self.crowded_out += 1;
        }
    }

    /// Raises a limit that an earlier load has lowered, if the service has come to rest since.
    pub(super) fn settle(&mut self, at: Instant) {
        if let AdmissionPolicy::Limit(limit) | AdmissionPolicy::Prices(limit, _) = &mut self.policy
            && self.tiers.in_service() == 0
            && self.rest.at(at).get() >= 1.0
        {
            limit.rest();
        }
    }

    /// Estimate of the time of a reply.
    pub(super) fn reply_time(&self) -> Span {
        self.rest.mean().unwrap_or(UNKNOWN)
    }

    /// Removes a request from those in service, and gives its slot to a waiting one.
    pub(super) fn leave(&mut self, ticket: &Ticket, at: Instant) {
        self.tiers.leave(ticket);
        if self.in_service() == 0 {
            self.rest.leave(at);
        }
        self.serve_waiting(at);
    }

    /// Counts a request in service again. The limit may have fallen meanwhile, and does not apply a second time.
    pub(super) fn resume(&mut self, ticket: &Ticket) {
        self.tiers.enter(ticket);
        self.rest.enter();
    }

    /// Number of slots. Unlimited in a dry run, and if the policy has no limit.
    fn slots(&self) -> u32 {
        let limit = self.limit().filter(|_| !self.is_dry);
        limit.unwrap_or(u32::MAX)
    }

    /// The current limit on requests in service, if the policy has one.
    fn limit(&self) -> Option<u32> {
        match &self.policy {
            AdmissionPolicy::None | AdmissionPolicy::Rate(_) => None,
            AdmissionPolicy::Limit(limit) | AdmissionPolicy::Prices(limit, _) => Some(limit.now()),
        }
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
        let price = Amount::ZERO.of(currency);
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

    /// True if the request is admitted beyond the limit: quotes hold there, too, and a dry run admits all.
    fn may_exceed(&self) -> bool {
        let by_quote = AdmissionGround::Price(By::Quote);
        self.would_reject.is_some() || self.ground == by_quote
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
    let mut bytes = [0; 32];
    // 32 bytes arrive at once and completely (getrandom(2)).
    getrandom(&mut bytes, GetRandomFlags::empty()).expect("the system's random numbers");
    Key::new(&bytes)
}
