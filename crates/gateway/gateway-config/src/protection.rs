//! `[protection]` and `[prices]`: admission of requests when more arrive than can be served, and its price.

use std::path::PathBuf;

use http::header::HeaderName;
use posthaste_admission::{Controller, Limit, LimitBounds, Limiter};
use posthaste_qos::Currency;
use posthaste_serve::ConfigError;
use posthaste_units::{Rate, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tier::{ClientLimitsConfig, TierConfig};

/// Admission of requests.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Protection {
    /// Limit on admitted requests.
    pub policy: ProtectionPolicy,
    /// Admitted requests per second, above 0. Required by policy `rate`, an error with other policies.
    pub rate: Option<Rate>,
    /// Policy `rate`: requests admitted at once.
    pub burst: u32,
    /// Policies `limit` and `prices`: rule that finds the limit of concurrent requests. Each service has a limit of its
    /// own (`route.service`).
    pub limiter: Limiter,
    /// Policies `limit` and `prices`: lower bound of each limit.
    #[schemars(range(min = 1))]
    pub least: u32,
    /// Policies `limit` and `prices`: each limit at the start, to which it returns after an overload. Within the bounds: a
    /// value beyond one of them counts as that bound.
    #[schemars(range(min = 1))]
    pub start: u32,
    /// Policies `limit` and `prices`: upper bound of each limit. At least `least`.
    pub most: u32,
    /// Policy `limit`, and `prices` with accounts: longest time that a request waits for a slot. A quarter of it after
    /// its client has had waiting requests for this time without a break. 0 rejects at once.
    pub wait: Span,
    /// Policy `limit`, and `prices` with accounts: maximum number of waiting requests. Beyond it the least important
    /// one is rejected.
    pub waiting: u32,
    /// Policy `limit`: tiers of importance, the most important one first.
    #[serde(rename = "tier")]
    pub tiers: Vec<TierConfig>,
    /// Limits on the requests of each client.
    pub client_limits: ClientLimitsConfig,
    /// Header field that identifies the client. Only believed from the networks in `trust.forwarded`, because a client
    /// that can choose its name can use the name of another client. For all others, the address identifies the client.
    pub client: Option<String>,
    /// Number of leading bits of an IPv6 address that identify a client, 1 to 128. A subscriber usually has a network of
    /// 64 bits (RFC 7421), and could otherwise take another address for each request. Addresses of IPv4 count whole.
    #[schemars(range(min = 1, max = 128))]
    pub ipv6_prefix: u8,
    /// Decide and count, but admit every request. The limit, the rate and the price follow the requests in service, of
    /// which there are more than the policy would admit. Clients see no price, quote or offer, and none is published.
    /// Offers that a broker has from before end after `prices.life`.
    pub dry_run: bool,
}

/// Limit on admitted requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ProtectionPolicy {
    /// Admits every request.
    #[default]
    None,
    /// Admits a fixed rate.
    Rate,
    /// Admits a number of concurrent requests that adapts to response times.
    Limit,
    /// Admits requests that accept the current price, within the same number of concurrent requests.
    Prices,
}

/// An admission policy with all of its settings.
#[derive(Clone, Debug)]
pub enum AdmissionSettings {
    /// Admits every request.
    None,
    /// Admits a fixed rate.
    Rate {
        /// Requests per second.
        rate: Rate,
        /// Requests admitted at once.
        burst: u32,
    },
    /// Admits a number of requests in service.
    Limit(Limit),
    /// Admits requests that accept the price, within a number in service.
    Prices {
        /// Requests in service.
        limit: Limit,
        /// The rules of the price.
        prices: Box<Prices>,
    },
}

/// Prices and offers that follow the load.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Prices {
    /// Name of offers before the price: `standard` makes `standard@0.30`. 1 to 64 letters, digits, `-`, `_`.
    pub offer: String,
    /// Currency of every price.
    pub currency: Currency,
    /// Rule that moves the price.
    pub controller: Controller,
    /// Discount for requests that leave compression to the gateway, as a share of the price. They have offers of their
    /// own: `standard-open@0.24`. At most 90 %.
    pub discount: Ratio,
    /// Interval of price updates. At least 1 ms. Load is sampled five times per second, or taken from the latest
    /// upstream report; shorter intervals then use only the waiting time of requests, which is always current.
    pub every: Span,
    /// Lifetime of offers and quotes. At least twice `every`.
    pub life: Span,
    /// Rate of a quote if the client requests none. Above 0.
    pub rate: Rate,
    /// Maximum rate that a client may request. Above 0.
    pub most_rate: Rate,
    /// Requests that a quote admits at once.
    #[schemars(range(min = 1))]
    pub burst: u32,
    /// Maximum sum of the rates of all valid quotes. Above 0. Without it, three quarters of the observed capacity.
    pub capacity: Option<Rate>,
    /// File of a `.wsqos` document with one offer: promises of every offer besides the price. Its network priorities
    /// also mark replies.
    pub promise: Option<PathBuf>,
    /// Broker for publishing offers. Without this table offers are not published, and clients learn the price from
    /// rejections.
    pub broker: Option<Publish>,
}

/// A broker and the identity of the offers there. The gateway replaces all offers of the provider for the type.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    /// URL of the broker.
    pub url: String,
    /// Interface type of the offers.
    #[serde(rename = "type")]
    pub kind: String,
    /// Provider name of the offers.
    pub provider: String,
    /// File with the provider's token.
    pub token: PathBuf,
    /// Service address stated in the offers.
    pub endpoint: Option<String>,
}

impl Default for Protection {
    fn default() -> Self {
        Self {
            policy: ProtectionPolicy::None,
            rate: None,
            burst: 20,
            limiter: Limiter::default(),
            least: 4,
            start: 16,
            most: 1024,
            wait: Span::from_millis(100),
            waiting: 1000,
            tiers: Vec::new(),
            client_limits: ClientLimitsConfig::default(),
            client: None,
            ipv6_prefix: 64,
            dry_run: false,
        }
    }
}

impl Default for Prices {
    fn default() -> Self {
        let rate = |per_second| Rate::per_second(per_second).expect("a rate");
        Self {
            offer: "standard".to_owned(),
            currency: "EUR".parse().expect("a currency"),
            controller: Controller::default(),
            discount: Ratio::default(),
            every: Span::from_millis(200),
            life: Span::from_secs(2),
            rate: rate(1.0),
            most_rate: rate(10.0),
            burst: 2,
            capacity: None,
            promise: None,
            broker: None,
        }
    }
}

impl Protection {
    /// The policy with its settings. Prices that are not configured have their defaults.
    pub fn settings(&self, prices: Option<&Prices>) -> AdmissionSettings {
        let bounds = LimitBounds {
            least: self.least,
            start: self.start,
            most: self.most,
        };
        let limit = || Limit::new(self.limiter.clone(), bounds);
        match self.policy {
            ProtectionPolicy::None => AdmissionSettings::None,
            ProtectionPolicy::Rate => AdmissionSettings::Rate {
                rate: self.rate.expect("the policy rate was read with a rate"),
                burst: self.burst,
            },
            ProtectionPolicy::Limit => AdmissionSettings::Limit(limit()),
            ProtectionPolicy::Prices => AdmissionSettings::Prices {
                limit: limit(),
                prices: Box::new(prices.cloned().unwrap_or_default()),
            },
        }
    }

    /// True if requests of some kind may be rejected.
    pub fn is_active(&self) -> bool {
        self.policy != ProtectionPolicy::None || !self.client_limits.limits().is_empty()
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |reason: String| Err(ConfigError::new(reason));
        if (self.policy == ProtectionPolicy::Rate) != self.rate.is_some() {
            return wrong(
                "protection.rate and protection.policy = \"rate\" go together".to_owned(),
            );
        }
        if self.rate.is_some_and(|rate| rate.as_per_second() <= 0.0) {
            return wrong("protection.rate is above 0".to_owned());
        }
        if self.least == 0 || self.least > self.most {
            return wrong("protection.least is at least 1, and at most protection.most".to_owned());
        }
        if self.start == 0 {
            return wrong("protection.start is at least 1".to_owned());
        }
        if let Err(error) = self.limiter.check() {
            return wrong(format!("protection.limiter: {error}"));
        }
        if !self.tiers.is_empty() && self.policy != ProtectionPolicy::Limit {
            return wrong("protection.tier needs protection.policy = \"limit\"".to_owned());
        }
        self.client_limits
            .check("protection.client_limits")
            .map_err(ConfigError::new)?;
        if !(1..=128).contains(&self.ipv6_prefix) {
            return wrong("protection.ipv6_prefix is a number of bits from 1 to 128".to_owned());
        }
        match &self.client {
            Some(field) if field.parse::<HeaderName>().is_err() => wrong(format!(
                "protection.client: {field:?} is not the name of a header field"
            )),
            _ => Ok(()),
        }
    }
}

impl Prices {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |reason: &str| Err(ConfigError::new(reason));
        if let Err(error) = self.controller.check() {
            return wrong(&format!("prices.controller: {error}"));
        }
        if self.discount.get() > 0.9 {
            return wrong(
                "prices.discount is at most 90%: a client that pays nothing is not deterred",
            );
        }
        let rates = [Some(self.rate), Some(self.most_rate), self.capacity];
        if rates
            .into_iter()
            .flatten()
            .any(|rate| rate.as_per_second() <= 0.0)
        {
            return wrong(
                "prices.rate, prices.most_rate and prices.capacity are above 0: nothing is quoted otherwise",
            );
        }
        if self.burst == 0 {
            return wrong("prices.burst is at least 1: nothing is quoted otherwise");
        }
        if self.offer.is_empty() || self.offer.len() > 64 || !self.offer.bytes().all(is_plain) {
            return wrong("prices.offer is a name of up to 64 letters, digits, - or _");
        }
        if self.every < Span::from_millis(1) || self.life < self.every * 2 {
            return wrong("prices.life is at least twice prices.every, and that at least 1ms");
        }
        Ok(())
    }
}

/// True for a character of header fields and paths other than the `@` before a price.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}
