//! The admission stage: admits requests by rate, by number in service, or by price, and records their outcome.
//!
//! [`Admission::admit`] is called once per request, before anything is sent to an upstream. All threads share one
//! state. A request locks it at admission, at its reply and at its end, each time only for lookups in a few maps. The
//! price is adjusted outside the path of requests ([`price_loop`]).
//!
//! A new configuration changes the policy under the lock ([`Admission::change`]). A thread reads its own configuration
//! only for the name of the client and for the policy `none`, which takes no lock. Until it has the new one, a request
//! is treated as one that arrived before: without a policy it is not counted, at its admission or later.

pub(crate) mod admitted;
mod counters;
mod delivery;
mod offer_fields;
mod offer_page;
pub(crate) mod offering;
pub(crate) mod price_loop;
mod price_sampler;
mod publication;
mod rejected;
mod state;

use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::http::request::Parts;
use posthaste_compression::Codings;

use self::admitted::AdmissionGuard;
use self::counters::AdmissionCounters;
use self::offer_fields::{OfferFields, client, price_text, strip};
use self::offering::Offering;
use self::rejected::rejection;
use self::state::{AdmissionPolicy, AdmissionState};
use crate::clock::now;
use crate::config::{AdmissionSettings, Protection, ProtectionPolicy};
use crate::error::Rejection;
use crate::request::client::ClientIdentity;
use crate::request::preferences::Preferences;

/// Admission control of a gateway.
#[derive(Debug)]
pub(crate) struct Admission {
    state: Mutex<AdmissionState>,
    counters: AdmissionCounters,
}

/// The state for display.
pub(crate) struct AdmissionSnapshot {
    /// False if every request is admitted without a count.
    pub(crate) is_active: bool,
    pub(crate) is_dry: bool,
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
        let state = AdmissionState::new(now(), config.dry_run, settings, offering);
        Self {
            state: Mutex::new(state),
            counters: AdmissionCounters::default(),
        }
    }

    /// Applies a new configuration. The counts and what was learned stay, see [`AdmissionState::change`].
    pub(crate) fn change(
        &self,
        config: &Protection,
        settings: &AdmissionSettings,
        offering: &Offering,
    ) {
        self.state()
            .change(now(), config.dry_run, settings, offering);
    }

    /// Admits a request, or rejects it with a reason and advice. `config` is that of its thread, `offered` are the
    /// codings of its route.
    pub(crate) fn admit(
        &self,
        config: &Protection,
        head: &mut Parts,
        preferences: &Preferences,
        offered: Codings,
        identity: &ClientIdentity,
    ) -> Result<AdmissionGuard<'_>, Rejection> {
        if config.policy == ProtectionPolicy::None {
            return Ok(AdmissionGuard::uncounted(self));
        }
        let at = now();
        let client = client(head, identity, config.client.as_deref());
        let fields = OfferFields::read(&head.headers, preferences, offered);
        let mut state = self.state();
        let outcome = state.admit(at, &fields, &client);
        let in_service = state.in_service;
        drop(state);
        match outcome {
            Ok(admitted) => {
                self.counters.admitted(admitted.ground);
                if let Some(reason) = admitted.would_reject {
                    self.counters.would_reject(reason);
                }
                let client = client.into_owned();
                if admitted.is_priced || config.policy == ProtectionPolicy::Prices {
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
        state.settle(now());
        let (in_service, is_dry) = (state.in_service, state.is_dry);
        let is_active = !matches!(state.policy, AdmissionPolicy::None);
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
            is_active,
            is_dry: is_active && is_dry,
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
