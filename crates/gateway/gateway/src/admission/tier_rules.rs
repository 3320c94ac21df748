//! The tier of a request.

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use posthaste_gateway_config::{TierConfig, TierRule};
use posthaste_serve::Networks;

use crate::request::client::ClientIdentity;

/// The rules of all tiers, the most important one first.
#[derive(Debug, Default)]
pub(crate) struct TierRules {
    /// Rules and index of their tier.
    rules: Vec<(Rule, usize)>,
    names: Vec<String>,
}

/// Conditions, all of which are to be met.
#[derive(Debug)]
struct Rule {
    route: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
    account: Option<String>,
    certificate: Option<String>,
    networks: Networks,
}

/// Facts about a request that decide about its tier.
pub(crate) struct TierFacts<'a> {
    /// Label of the route.
    pub(crate) route: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) identity: &'a ClientIdentity,
    /// Name of the account.
    pub(crate) account: Option<&'a str>,
    /// Subject of the client's certificate.
    pub(crate) subject: Option<&'a str>,
}

impl TierRules {
    /// Reads checked tiers.
    pub(crate) fn new(tiers: &[TierConfig]) -> Self {
        let rules = tiers.iter().enumerate().flat_map(|(index, tier)| {
            let rules = tier.rules.iter().map(Rule::new);
            rules.map(move |rule| (rule, index))
        });
        Self {
            rules: rules.collect(),
            names: tiers.iter().map(|tier| tier.name.clone()).collect(),
        }
    }

    /// Index of the tier of a request. 0 without tiers.
    pub(crate) fn tier(&self, request: &TierFacts<'_>) -> usize {
        let mut rules = self.rules.iter();
        let found = rules.find(|(rule, _)| rule.matches(request));
        found.map_or(self.names.len().saturating_sub(1), |(_, tier)| *tier)
    }

    /// Name of a tier. `None` without tiers.
    pub(crate) fn name(&self, tier: usize) -> Option<&str> {
        self.names.get(tier).map(String::as_str)
    }
}

impl Rule {
    fn new(rule: &TierRule) -> Self {
        let headers = rule.headers.iter().filter_map(|(name, value)| {
            let (name, value) = (name.parse().ok()?, HeaderValue::from_str(value).ok()?);
            Some((name, value))
        });
        Self {
            route: rule.route.clone(),
            headers: headers.collect(),
            account: rule.account.clone(),
            certificate: rule.certificate.clone(),
            networks: rule.networks.clone(),
        }
    }

    fn matches(&self, request: &TierFacts<'_>) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == found
        };
        let identity = request.identity;
        let has_all = || {
            let has =
                |(name, value): &(HeaderName, HeaderValue)| has_only(request.headers, name, value);
            self.headers.is_empty() || identity.is_trusted && self.headers.iter().all(has)
        };
        let networks = &self.networks;
        is(&self.route, Some(request.route))
            && is(&self.account, request.account)
            && is(&self.certificate, request.subject)
            && has_all()
            && (networks.is_empty() || identity.address.is_in(networks))
    }
}

/// True if the field has one line with this value. Of several lines, some may be the client's own.
fn has_only(headers: &HeaderMap, name: &HeaderName, value: &HeaderValue) -> bool {
    let mut lines = headers.get_all(name).iter();
    lines.next() == Some(value) && lines.next().is_none()
}
