//! A service protects itself by its price: offers follow the load, quotes bind, and a request enters at a
//! price that its sender accepted, or not at all.
//!
//! A gateway holds one [`Market`] for what it protects. A few times a second it says what it has seen
//! ([`Market::observe`]), a controller moves the price ([`controller`]), and the offer that follows is
//! published. Before a request goes in it asks ([`Market::admit`]). A request that enters at the present price
//! is handed a [`Quote`] while capacity is left to be promised ([`Ledger`]): until it ends, its client is let
//! in at its rate and its price, whatever the price and the load are by then. A request that leaves it to the server
//! whether its reply is compressed pays less, by [`Terms::discount`]. What was promised is held
//! against what was delivered by a [`Monitor`]. [`Limit`] and [`Bucket`] protect without a price.
//!
//! Time is the monotonic clock of the process that quotes. No time of day decides anything: a clock that is
//! set changes nothing, and a token is worth nothing to another process or after a restart.

mod admission;
mod amount;
mod bucket;
pub mod controller;
mod ledger;
pub mod limit;
mod monitor;
mod offers;
mod parameter;
mod quote;

use posthaste_units::{Instant, Ratio, Span};

pub use admission::{Admitted, Ask, By, REFUSALS, Refused, Why};
pub use amount::Amount;
pub use bucket::Bucket;
pub use controller::{Controller, Observed, Pricing};
pub use ledger::{Ledger, Unpaid};
pub use limit::{Limit, Limiter};
pub use monitor::{
    Delivery, Judged, Monitor, PROCESSING_TIME, Promise, REQUESTS_PER_SECOND, Report, Tally,
    Verdict,
};
pub use offers::Published;
pub use parameter::WrongParameter;
pub use quote::{Forged, Key, Quote, TOKEN_LENGTH};

use crate::qos::{Currency, Money};
use offers::Offers;
use parameter::{positive, within};

/// On what terms a market trades.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// What an offer's name begins with: "standard" makes "standard@0.30".
    pub offer: String,
    /// Of every price.
    pub currency: Currency,
    /// Who moves the price.
    pub controller: Controller,
    /// What a request pays less that leaves compression to the server, as a share of the price: none by default, and
    /// nine tenths at most, so that a price still moves those who have it.
    pub discount: Ratio,
    /// How long an offer and a quote live: 2 s by default.
    pub life: Span,
    /// A quote's rate in requests per second, where a client asks for none: 1 by default.
    pub rate: f64,
    /// The highest rate that a client may ask for: 10 by default.
    pub most_rate: f64,
    /// Requests that a quote admits at once, after which they are an interval of its rate apart: 2 by
    /// default, so that one that comes a little early is not refused.
    pub burst: u32,
    /// What may be quoted in all, in requests per second; `None` takes what is observed.
    pub capacity: Option<f64>,
}

/// Prices, offers and quotes of one service. Every call takes a microsecond or so.
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

    /// Whether they make sense together, the controller's parameters among them.
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
    /// A market at its lowest price, with nothing quoted yet. Where the terms name no capacity, nothing is
    /// quoted before the first observation.
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

    /// Takes a sample, and how many requests per second the service can do; the offers to publish, in the
    /// place of all that were, where they have changed or those that are published have lived half their life.
    pub fn observe(&mut self, seen: Observed, capacity: f64) -> &[Published] {
        self.ledger
            .set_capacity(self.terms.capacity.unwrap_or(capacity));
        let price = self.pricing.push(seen);
        self.offers.set(price, seen.at)
    }

    /// The offer that holds now, for requests that leave compression to the server (`open`) or for all others; one and
    /// the same where there is no discount.
    pub fn current(&self, open: bool) -> &Published {
        self.offers.current(open)
    }

    /// What the offer is called on which a request pays this price.
    pub fn offer_at(&self, price: Money, open: bool) -> String {
        self.offers.name(price, open)
    }

    /// Whether the price moves up and down again and again: how often it has turned since the start.
    pub const fn turns(&self) -> u64 {
        self.pricing.turns()
    }

    /// Requests per second promised to clients by quotes that live.
    pub fn quoted(&mut self, now: Instant) -> f64 {
        self.ledger.quoted(now)
    }
}
