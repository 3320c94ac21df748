//! Admission control by price: offers follow the load, quotes bind, and a request is admitted at a price that its
//! client accepted, or rejected.
//!
//! A gateway holds one [`Market`] per protected resource:
//!
//! 1. It reports measurements a few times a second ([`Market::observe`]). A controller ([`controller`]) moves the price
//!    and the resulting offer is published.
//! 2. It asks for admission before it forwards a request ([`Market::admit`]).
//! 3. A request that is admitted at the current price gets a [`Quote`] while uncommitted capacity is left ([`Ledger`]).
//!    Until the quote ends, its client is admitted at its rate and price, at any current price and load.
//!
//! With [`accounts`], a request pays from the budget of its account, and its own statements buy nothing without one.
//!
//! A request that leaves compression of its reply to the server pays less, by [`Terms::discount`]. A [`Monitor`]
//! compares promises with deliveries. [`Limit`] and [`Bucket`] protect without prices.
//!
//! Time is the monotonic clock of the process that issues the quotes. Setting the time of day has no effect. A token is
//! invalid in another process or after a restart.

pub mod accounts;
mod admit;
mod amount;
mod bucket;
pub mod controller;
mod ledger;
pub mod limit;
mod monitor;
mod offers;
mod parameter;
mod payer;
mod present;
mod quote;
mod request_limits;
mod rest;
mod service;
mod tiers;

use posthaste_units::{Instant, Ratio, Span};

pub use admit::{Admitted, Ask, By, REFUSALS, Refused, Why};
pub use amount::Amount;
pub use bucket::Bucket;
pub use controller::{Controller, Observed, Pricing};
pub use ledger::{Ledger, Unpaid};
pub use limit::{Kind, Limit, LimitBounds, Limiter, ServiceReply};
pub use monitor::{
    Delivery, Judged, Monitor, PROCESSING_TIME, Promise, REQUESTS_PER_SECOND, Report, Tally,
    Verdict,
};
pub use offers::Published;
pub use parameter::WrongParameter;
pub use payer::Payer;
pub use quote::{Forged, Key, Quote, TOKEN_LENGTH};
pub use request_limits::{ClientLimits, Exceeded, Limited, LimitedClient, RequestLimits};
pub use rest::Rest;
pub use service::ProtectedService;
pub use tiers::{Arrival, Next, Slots, Ticket, TierShare, TierTerms, Tiers};

use offers::Offers;
use parameter::{positive, within};
use posthaste_qos::{Currency, Money};

/// Configuration of a market.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// Prefix of offer names: "standard" makes "standard@0.30".
    pub offer: String,
    /// Currency of every price.
    pub currency: Currency,
    /// Controller of the price.
    pub controller: Controller,
    /// Share of the price that a request saves if it leaves compression to the server: 0 by default, 90 % at most, so
    /// that the price still has an effect on such requests.
    pub discount: Ratio,
    /// Lifetime of offers and quotes: 2 s by default.
    pub life: Span,
    /// Default rate of a quote, in requests per second: 1 by default.
    pub rate: f64,
    /// Maximum rate that a client may request: 10 by default.
    pub most_rate: f64,
    /// Requests that a quote admits at once: 2 by default, so that a slightly early request is not rejected. Later ones
    /// must keep the interval of the rate.
    pub burst: u32,
    /// Maximum sum of quoted rates, in requests per second. `None` uses the observed capacity.
    pub capacity: Option<f64>,
}

/// Prices, offers and quotes of one service. Each call takes about a microsecond.
#[derive(Debug)]
pub struct Market {
    terms: Terms,
    key: Key,
    pricing: Pricing,
    offers: Offers,
    ledger: Ledger,
}

impl Terms {
    /// The default terms for offers of this name.
    pub fn new(offer: &str, currency: Currency) -> Self {
        Self {
            offer: offer.to_owned(),
            currency,
            controller: Controller::default(),
            discount: Ratio::default(),
            life: Span::from_secs(2),
            rate: 1.0,
            most_rate: 10.0,
            burst: 2,
            capacity: None,
        }
    }

    /// Fails if the terms or the controller's parameters contradict each other.
    pub fn check(&self) -> Result<(), WrongParameter> {
        positive("life", !self.life.is_zero())?;
        positive("rate", self.rate > 0.0)?;
        positive("most_rate", self.most_rate > 0.0)?;
        positive("burst", self.burst > 0)?;
        positive(
            "capacity",
            self.capacity.is_none_or(|capacity| capacity > 0.0),
        )?;
        within("discount", self.discount.get(), 0.0, 0.9)?;
        self.controller.check()
    }
}

impl Market {
    /// Creates a market at price 0, without quotes. If the terms state no capacity, nothing is quoted before the first
    /// observation.
    pub fn new(terms: Terms, key: Key) -> Self {
        let pricing = Pricing::new(terms.controller.clone(), terms.currency);
        let offers = Offers::new(&terms.offer, pricing.price(), terms.life, terms.discount);
        let capacity = terms.capacity.unwrap_or(0.0);
        let ledger = Ledger::new(terms.life, terms.burst, capacity);
        Self {
            terms,
            key,
            pricing,
            offers,
            ledger,
        }
    }

    /// Changes the terms. With the same currency the price stays, quotes and published offers are honoured until they
    /// end, and the new offers are published at the next sample. Amounts of another currency say nothing about this
    /// one, so its market starts at price 0, and every offer and quote has expired.
    pub fn change(&mut self, terms: Terms) {
        if terms.currency == self.terms.currency {
            self.pricing.change(terms.controller.clone());
            self.offers.change(&terms.offer, terms.life, terms.discount);
        } else {
            self.pricing = Pricing::new(terms.controller.clone(), terms.currency);
            let price = self.pricing.price();
            self.offers = Offers::new(&terms.offer, price, terms.life, terms.discount);
            self.ledger.clear();
        }
        self.ledger.set_terms(terms.life, terms.burst);
        if let Some(capacity) = terms.capacity {
            self.ledger.set_capacity(capacity);
        }
        self.terms = terms;
    }

    /// Bounds the next price by the part of the load that may be left ([`Pricing::rest`]).
    pub fn rest(&mut self, rest: Ratio) {
        self.pricing.rest(rest);
    }

    /// The terms in use.
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Adds a sample and the service's capacity in requests per second. Returns the offers to publish in place of all
    /// earlier ones. Empty unless the price has changed or half the lifetime of the published offers is over.
    pub fn observe(&mut self, seen: Observed, capacity: f64) -> &[Published] {
        debug_assert!(capacity >= 0.0, "a capacity of {capacity}");
        self.ledger
            .set_capacity(self.terms.capacity.unwrap_or(capacity));
        let price = self.pricing.push(seen);
        self.offers.set(price, seen.at)
    }

    /// The current offer for requests that leave compression to the server (`open`) or for all others. Without a
    /// discount both are the same.
    pub fn current(&self, open: bool) -> &Published {
        self.offers.current(open)
    }

    /// Name of the offer at which a request pays this price.
    pub fn offer_at(&self, price: Money, open: bool) -> String {
        self.offers.name(price, open)
    }

    /// Number of price reversals since the start. A high count shows that the price oscillates.
    pub const fn turns(&self) -> u64 {
        self.pricing.turns()
    }

    /// Sum of the live quotes' rates, in requests per second.
    pub fn quoted(&mut self, now: Instant) -> f64 {
        self.ledger.quoted(now)
    }
}
