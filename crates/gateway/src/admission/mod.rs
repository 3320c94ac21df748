//! The admission stage: admits requests by rate, by number in service, or by price, and records their outcome.
//!
//! [`Admission::admit`] is called once per request, before anything is sent to an upstream. All threads share one
//! state. A request locks it at admission, at its reply and at its end, each time only for lookups in a few maps. The price is adjusted outside the path of
//! requests ([`price_loop`]).

pub(crate) mod admitted;
mod counters;
mod delivery;
mod offer_fields;
mod offer_page;
pub(crate) mod offering;
pub(crate) mod price_loop;
mod publication;
mod rejected;
mod state;

use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::http::request::Parts;
use posthaste_admission::Promise;
use posthaste_compression::Codings;
use posthaste_qos::Priorities;
use posthaste_serve::Peer;

use self::admitted::AdmissionGuard;
use self::counters::AdmissionCounters;
use self::offer_fields::{OfferFields, client, price_text, strip};
use self::offering::Offering;
use self::rejected::rejection;
use self::state::{AdmissionPolicy, AdmissionState};
use crate::clock::now;
use crate::config::{AdmissionSettings, Protection};
use crate::error::Rejection;
use crate::request::preferences::Preferences;

/// Admission control of a gateway.
#[derive(Debug)]
pub(crate) struct Admission {
    /// False if every request is admitted without a count.
    pub(crate) is_active: bool,
    /// Requests carry fields about offers and quotes.
    has_prices: bool,
    /// Field that identifies the client.
    client: Option<String>,
    /// Promises of every offer.
    promise: Promise,
    /// Network priorities that every offer promises, if any.
    priorities: Option<Priorities>,
    state: Mutex<AdmissionState>,
    counters: AdmissionCounters,
}

/// The state for display.
pub(crate) struct AdmissionSnapshot {
    pub(crate) in_service: u32,
    pub(crate) limit: Option<u32>,
    pub(crate) price: Option<CurrentPrice>,
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
    pub(crate) fn new(
        config: &Protection,
        settings: &AdmissionSettings,
        offering: &Offering,
    ) -> Self {
        Self {
            is_active: !matches!(settings, AdmissionSettings::None),
            has_prices: matches!(settings, AdmissionSettings::Prices { .. }),
            client: config.client.clone(),
            promise: offering.promise,
            priorities: offering.priorities.clone(),
            state: Mutex::new(AdmissionState::new(AdmissionPolicy::new(settings))),
            counters: AdmissionCounters::default(),
        }
    }

    /// Admits a request, or rejects it with a reason and advice. `offered` are the codings of its route.
    pub(crate) fn admit(
        &self,
        head: &mut Parts,
        preferences: &Preferences,
        offered: Codings,
        peer: &Peer,
    ) -> Result<AdmissionGuard<'_>, Rejection> {
        if !self.is_active {
            return Ok(AdmissionGuard::uncounted(self));
        }
        let at = now();
        let client = client(head, peer, self.client.as_deref());
        let fields = OfferFields::read(&head.headers, preferences, offered);
        let mut state = self.state();
        let outcome = state.admit(at, &fields, &client);
        let in_service = state.in_service;
        drop(state);
        match outcome {
            Ok(admitted) => {
                self.counters.admitted(admitted.ground);
                let client = client.into_owned();
                if self.has_prices {
                    strip(&mut head.headers);
                }
                Ok(AdmissionGuard::new(self, at, in_service, client, admitted))
            }
            Err(rejected) => {
                self.counters.rejected(rejected.reason);
                Err(rejection(head, rejected))
            }
        }
    }

    /// Returns the state for display.
    pub(crate) fn snapshot(&self) -> AdmissionSnapshot {
        let mut state = self.state();
        let in_service = state.in_service;
        let (limit, price) = match &mut state.policy {
            AdmissionPolicy::None | AdmissionPolicy::Rate(_) => (None, None),
            AdmissionPolicy::Limit(limit) => (Some(limit.now()), None),
            AdmissionPolicy::Prices(limit, market) => {
                let quoted = market.quoted(now());
                let present = market.current(false);
                let price = CurrentPrice {
                    quoted,
                    turns: market.turns(),
                    offer: present.name.clone(),
                    amount: present.price.micros() as f64 / 1e6,
                    text: price_text(present.price),
                };
                (Some(limit.now()), Some(price))
            }
        };
        AdmissionSnapshot {
            in_service,
            limit,
            price,
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
