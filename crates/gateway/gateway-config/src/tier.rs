//! `[[protection.tier]]`: importance of requests, and shares of the limit; limits of one client.

use std::collections::{BTreeMap, BTreeSet};

use http::header::HeaderName;
use posthaste_admission::RequestLimits;
use posthaste_serve::Networks;
use posthaste_units::{Rate, Ratio};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{GatewayConfig, RouteConfig};

/// Upper bound on the number of tiers. They are searched one after the other.
const MOST_TIERS: usize = 16;

/// A tier of importance. The first one is the most important. A request belongs to the first tier that it matches.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tier")]
pub struct TierConfig {
    /// Name in metrics, logs and on the status page. 1 to 64 letters, digits, `-`, `_`.
    pub name: String,
    /// Share of the limit that the tier gets if it needs it. It may use what the other tiers leave. The sum of all is at
    /// most 100 %.
    pub share: Ratio,
    /// Share of the limit that the tier keeps even while it does not need it. Never lent to other tiers. At most `share`.
    #[serde(default)]
    pub reserve: Ratio,
    /// Rules. A request matches the tier if it meets all conditions of one of them. The last tier has none: it takes
    /// all other requests.
    #[serde(default, rename = "match")]
    pub rules: Vec<TierRule>,
}

/// Conditions on a request, at least one. All of them are to be met.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TierRule {
    /// Route, as named in metrics: `/shop`, or `shop.example/shop` for a route with a host.
    pub route: Option<String>,
    /// Header fields with their values, such as `{ X-Tier = "gold" }`. Believed from the networks in `trust.forwarded`
    /// only, because any client can write them.
    pub headers: BTreeMap<String, String>,
    /// Name of an account (`[accounts]`), identified by its API key or its certificate.
    pub account: Option<String>,
    /// Subject of the client's verified certificate (RFC 4514), as shown by `openssl x509 -noout -subject -nameopt
    /// RFC2253`. Only with `tls.client_ca`.
    pub certificate: Option<String>,
    /// Networks of the client, such as `10.0.0.0/8`.
    #[schemars(with = "Vec<String>")]
    pub networks: Networks,
}

/// Limits on the requests of each client. They hold with every policy.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientLimitsConfig {
    /// Requests per second, above 0; beyond it 429.
    pub rate: Option<Rate>,
    /// Requests admitted at once by `rate`.
    #[schemars(range(min = 1))]
    pub burst: u32,
    /// Maximum number of requests in service or waiting; beyond it 429.
    #[schemars(range(min = 1))]
    pub concurrency: Option<u32>,
}

impl Default for ClientLimitsConfig {
    fn default() -> Self {
        Self {
            rate: None,
            burst: 20,
            concurrency: None,
        }
    }
}

impl ClientLimitsConfig {
    /// The limits as the rules of admission take them.
    pub fn limits(&self) -> RequestLimits {
        RequestLimits {
            rate: self.rate.map(|rate| (rate.as_per_second(), self.burst)),
            concurrency: self.concurrency,
        }
    }

    pub(crate) fn check(&self, key: &str) -> Result<(), String> {
        if self.rate.is_some_and(|rate| rate.as_per_second() <= 0.0) || self.burst == 0 {
            return Err(format!("{key}.rate and {key}.burst are above 0"));
        }
        if self.concurrency == Some(0) {
            return Err(format!("{key}.concurrency is at least 1"));
        }
        Ok(())
    }
}

/// Checks the tiers with the routes and the sources of identity that they name.
pub(crate) fn check(config: &GatewayConfig) -> Result<(), String> {
    let tiers = &config.protection.tiers;
    let Some((last, others)) = tiers.split_last() else {
        return Ok(());
    };
    if tiers.len() > MOST_TIERS {
        return Err(format!("at most {MOST_TIERS} tiers"));
    }
    let mut names = BTreeSet::new();
    for tier in tiers {
        let name = &tier.name;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
            return Err(format!(
                "{name:?} is not a name of up to 64 letters, digits, - or _"
            ));
        }
        if !names.insert(name) {
            return Err(format!("there are two tiers {name:?}"));
        }
        if tier.reserve > tier.share {
            return Err(format!("{name}: reserve is at most share"));
        }
        for rule in &tier.rules {
            rule.check(config)
                .map_err(|reason| format!("{name}: {reason}"))?;
        }
    }
    if let Some(tier) = others.iter().find(|tier| tier.rules.is_empty()) {
        return Err(format!(
            "{}: add match = [{{ ... }}]: without it the tiers after it get no request",
            tier.name
        ));
    }
    if !last.rules.is_empty() {
        return Err(format!(
            "{}: remove match: the last tier takes all requests that match no other",
            last.name
        ));
    }
    // Shares are written in decimal and summed in binary.
    let sum: f64 = tiers.iter().map(|tier| tier.share.get()).sum();
    if sum > 1.0 + 1e-9 {
        return Err("the sum of the shares is at most 100%".to_owned());
    }
    Ok(())
}

impl TierRule {
    fn check(&self, config: &GatewayConfig) -> Result<(), String> {
        let routes = &config.routes;
        if *self == Self::default() {
            return Err("a rule has route, headers, account, certificate or networks".to_owned());
        }
        if let Some(route) = &self.route
            && !routes.iter().any(|known| known.label() == *route)
        {
            let known: Vec<_> = routes.iter().map(RouteConfig::label).collect();
            return Err(format!(
                "there is no route {route:?}: write one of {}",
                known.join(", ")
            ));
        }
        for name in self.headers.keys() {
            if name.parse::<HeaderName>().is_err() {
                return Err(format!("{name:?} is not the name of a header field"));
            }
        }
        if self.account.is_some() && config.accounts.is_none() {
            return Err("account needs [accounts] with the accounts, or with a broker".to_owned());
        }
        let verifies = config
            .tls
            .as_ref()
            .is_some_and(|tls| tls.client_ca.is_some());
        if self.certificate.is_some() && !verifies {
            return Err(
                "certificate needs tls.client_ca: name the file with the authorities".to_owned(),
            );
        }
        if !self.headers.is_empty() && config.trust.forwarded.is_empty() {
            return Err(
                "headers need trust.forwarded: name the networks of the proxies that set them, such as \"10.0.0.0/8\""
                    .to_owned(),
            );
        }
        Ok(())
    }
}
