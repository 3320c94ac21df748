//! The state of admission, shared by all threads, and the decision about one request.

use posthaste_admission::{
    Admitted, Bucket, By, Delivery, Key, Limit, Market, Monitor, Terms, Why,
};
use posthaste_units::{Instant, Ratio, Span};
use rustix::rand::{GetRandomFlags, getrandom};

use super::counters::{AdmissionGround, RejectionReason};
use super::offer_fields::{OfferFields, price_text};
use crate::clock::now;
use crate::config::{AdmissionSettings, Prices};

/// Window for comparing promises with delivery.
const WINDOW: Span = Span::from_secs(60);

/// Share of requests for which a promise must hold.
const CONFIDENCE: f64 = 0.99;

/// State shared by all threads.
#[derive(Debug)]
pub(super) struct AdmissionState {
    pub(super) in_service: u32,
    pub(super) policy: AdmissionPolicy,
    pub(super) monitor: Monitor,
    /// Replies since the last sample of the price loop, and their total time.
    pub(super) served: u64,
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

/// An admitted request.
pub(super) struct AdmittedRequest {
    pub(super) ground: AdmissionGround,
    /// The request's offer, if prices apply.
    pub(super) offer: Option<String>,
    /// Fields for the reply: the price and a quote.
    pub(super) fields: Vec<(&'static str, String)>,
}

/// A rejected request.
pub(super) struct RejectedRequest {
    pub(super) reason: RejectionReason,
    /// Name and price of the current offer, if prices apply.
    pub(super) current: Option<(String, String)>,
    /// Suggested time before a retry.
    pub(super) retry_after: Option<Span>,
}

impl AdmissionPolicy {
    pub(super) fn new(settings: &AdmissionSettings) -> Self {
        match settings {
            AdmissionSettings::None => Self::None,
            AdmissionSettings::Rate { rate, burst } => {
                Self::Rate(Bucket::new(rate.as_per_second(), *burst))
            }
            AdmissionSettings::Limit(limit) => Self::Limit(limit.clone()),
            AdmissionSettings::Prices { limit, prices } => {
                let market = Market::new(terms(prices), random_key());
                Self::Prices(limit.clone(), Box::new(market))
            }
        }
    }
}

impl AdmissionState {
    pub(super) fn new(policy: AdmissionPolicy) -> Self {
        let share = Ratio::new(CONFIDENCE).expect("a share");
        Self {
            in_service: 0,
            policy,
            monitor: Monitor::new(WINDOW, share, now()),
            served: 0,
            crowded_out: 0,
            waited: Span::ZERO,
        }
    }

    /// Decides about a request. An admitted one counts as in service.
    pub(super) fn admit(
        &mut self,
        at: Instant,
        fields: &OfferFields<'_>,
        client: &str,
    ) -> Result<AdmittedRequest, RejectedRequest> {
        let is_below = |limit: &Limit, in_service: u32| in_service < limit.now();
        let admitted = match &mut self.policy {
            AdmissionPolicy::None => AdmittedRequest::plain(),
            AdmissionPolicy::Rate(bucket) => match bucket.take(at) {
                Ok(()) => AdmittedRequest::plain(),
                Err(later) => return Err(RejectedRequest::plain(RejectionReason::Rate, later)),
            },
            AdmissionPolicy::Limit(limit) if is_below(limit, self.in_service) => {
                AdmittedRequest::plain()
            }
            AdmissionPolicy::Limit(_) => {
                let second = Span::from_secs(1);
                return Err(RejectedRequest::plain(RejectionReason::Limit, second));
            }
            AdmissionPolicy::Prices(limit, market) => {
                let has_capacity = is_below(limit, self.in_service);
                match market.admit(at, &fields.request(client), has_capacity) {
                    Ok(admitted) => {
                        let offer = market.offer_at(admitted.price, fields.is_open);
                        AdmittedRequest::paying(offer, &admitted, at)
                    }
                    Err(refused) => {
                        let name = market.current(fields.is_open).name.clone();
                        let is_full = refused.why == Why::Full;
                        // Requests rejected for other reasons did not accept the offer.
                        if is_full {
                            self.monitor.record(at, &name, client, Delivery::Refused);
                            self.crowded_out += 1;
                        }
                        return Err(RejectedRequest {
                            reason: RejectionReason::Price(refused.why),
                            current: Some((name, price_text(refused.current))),
                            retry_after: (is_full || refused.why == Why::Overused)
                                .then_some(Span::from_secs(1)),
                        });
                    }
                }
            }
        };
        self.in_service += 1;
        debug_assert!(
            admitted.has_quote() || self.limit().is_none_or(|limit| self.in_service <= limit),
            "a request without a quote is admitted beyond the limit"
        );
        Ok(admitted)
    }

    /// Removes a request from those in service.
    pub(super) fn leave(&mut self) {
        debug_assert!(self.in_service > 0, "a request leaves that did not enter");
        self.in_service -= 1;
    }

    /// Counts a request in service again. The limit may have fallen meanwhile, and does not apply a second time.
    pub(super) fn resume(&mut self) {
        self.in_service += 1;
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
    fn plain() -> Self {
        Self {
            ground: AdmissionGround::Plain,
            offer: None,
            fields: Vec::new(),
        }
    }

    /// True if a quote admitted the request. Quotes hold beyond the limit.
    fn has_quote(&self) -> bool {
        matches!(self.ground, AdmissionGround::Price(By::Quote))
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
            offer: Some(offer),
            fields,
        }
    }
}

impl RejectedRequest {
    fn plain(reason: RejectionReason, retry_after: Span) -> Self {
        Self {
            reason,
            current: None,
            retry_after: Some(retry_after),
        }
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
