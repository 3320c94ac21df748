//! Who is let in when more come than can be served, and at what price.

use std::path::PathBuf;

use hyper::header::HeaderName;
use posthaste_serve::ConfigError;
use posthaste_units::{Rate, Ratio, Span};
use posthaste_wsqos::market::{Controller, Limiter};
use posthaste_wsqos::qos::Currency;
use serde::Deserialize;

/// Who is let in.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Protection {
    /// By what: `none` (the default), `rate`, `limit` or `prices`.
    pub policy: Guard,
    /// With `rate`: at most so many requests, for example `500/s`.
    pub rate: Option<Rate>,
    /// With `rate`: so many of them may come at once. Default 20.
    pub burst: u32,
    /// With `limit` and `prices`: how many may be in service at once is found by `gradient` (the default) or `aimd`.
    pub limiter: Limiter,
    /// With them: never fewer than these. Default 4.
    pub least: u32,
    /// With them: never more than these. Default 1024.
    pub most: u32,
    /// With `prices`: a field that names the client and that clients cannot set, because what stands before the gateway
    /// does. Default none: a client is an address.
    pub client: Option<String>,
}

/// By what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// Everybody is let in.
    #[default]
    None,
    /// A fixed rate.
    Rate,
    /// As many at once as the service can do.
    Limit,
    /// Those who pay the present price, and as many at once as the service can do.
    Prices,
}

/// Offers that follow the load.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Prices {
    /// What offers are called, before their price: `standard` makes `standard@0.30`.
    pub offer: String,
    /// Of every price. Default EUR.
    pub currency: Currency,
    /// Who moves the price: `proportional-integral` (the default), `steps` or `rajomon`, with their parameters.
    pub controller: Controller,
    /// What those pay less who leave it to the gateway whether their replies are compressed, as a share of the price;
    /// they have offers of their own then, `standard-open@0.24`. Default none, 90 % at most.
    pub discount: Ratio,
    /// How often demand is looked at, and the price moved. Default 200 ms.
    pub every: Span,
    /// How long an offer and a quote hold. Default 2 s.
    pub life: Span,
    /// A quote's rate where a client asks for none. Default 1/s.
    pub rate: Rate,
    /// The highest rate a client may ask for. Default 10/s.
    pub most_rate: Rate,
    /// Requests that a quote admits at once. Default 2.
    pub burst: u32,
    /// What may be quoted in all; by default three quarters of what the service has shown that it can do.
    pub capacity: Option<Rate>,
    /// A `.wsqos` document with one offer: what every offer promises besides its price, priorities in the network among it.
    pub promise: Option<PathBuf>,
    /// Where offers are published; by default nowhere, and clients learn the price from refusals.
    pub broker: Option<Publish>,
}

/// A broker, and what offers are published as.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    /// Where it is.
    pub url: String,
    /// The type of interface that the service has.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whose offers they are: all that this provider offers for the type is what the gateway says.
    pub provider: String,
    /// A file with the provider's token.
    pub token: PathBuf,
    /// Where clients call the service, for offers to say.
    pub endpoint: Option<String>,
}

impl Default for Protection {
    fn default() -> Self {
        Self {
            policy: Guard::None,
            rate: None,
            burst: 20,
            limiter: Limiter::default(),
            least: 4,
            most: 1024,
            client: None,
        }
    }
}

impl Default for Prices {
    fn default() -> Self {
        let rate = |per_second| Rate::per_second(per_second).unwrap_or_default();
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
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |reason: String| Err(ConfigError::of(reason));
        if (self.policy == Guard::Rate) != self.rate.is_some() {
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
        if let Err(error) = self.limiter.check() {
            return wrong(format!("protection.limiter: {error}"));
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
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |reason: &str| Err(ConfigError::of(reason));
        if let Err(error) = self.controller.check() {
            return wrong(&format!("prices.controller: {error}"));
        }
        if self.discount.get() > 0.9 {
            return wrong("prices.discount is at most 90%: nobody is held off who pays nothing");
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

/// What may stand in a header field and in a path, and is not the @ before a price.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}
