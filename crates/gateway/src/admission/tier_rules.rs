//! The tier of a request.

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use posthaste_serve::Networks;

use crate::config::{TierConfig, TierRule};
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
    networks: Networks,
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
    pub(crate) fn tier(
        &self,
        route: &str,
        headers: &HeaderMap,
        identity: &ClientIdentity,
    ) -> usize {
        let mut rules = self.rules.iter();
        let found = rules.find(|(rule, _)| rule.matches(route, headers, identity));
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
            networks: rule.networks.clone(),
        }
    }

    fn matches(&self, route: &str, headers: &HeaderMap, identity: &ClientIdentity) -> bool {
        let is_of_route = self.route.as_ref().is_none_or(|name| name == route);
        let has_all = || {
            let has = |(name, value): &(HeaderName, HeaderValue)| has_only(headers, name, value);
            self.headers.is_empty() || identity.is_trusted && self.headers.iter().all(has)
        };
        let networks = &self.networks;
        is_of_route && has_all() && (networks.is_empty() || networks.contains(identity.address))
    }
}

/// True if the field has one line with this value. Of several lines, some may be the client's own.
fn has_only(headers: &HeaderMap, name: &HeaderName, value: &HeaderValue) -> bool {
    let mut lines = headers.get_all(name).iter();
    lines.next() == Some(value) && lines.next().is_none()
}
