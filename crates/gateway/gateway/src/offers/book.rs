//! The offers of a route's type as the broker tells them: those that can be used, and the others with the reason.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use posthaste_broker_client::Put;
use posthaste_gateway_config::AllowedHosts;
use posthaste_qos::selection::Promised;
use posthaste_qos::{Currency, Money, Offer};
use url::Url;

use super::class::ClassKey;

/// Maximum number of offers of a route, and of those that are remembered as excluded. A choice stays within
/// microseconds, and a provider cannot fill the memory.
pub(super) const MAX_OFFERS: usize = 4096;

/// Maximum number of different endpoints of a route's offers. Each has connections in every thread.
pub(super) const MAX_ENDPOINTS: usize = 256;

/// Rules for the offers of a route.
#[derive(Debug)]
pub(super) struct BookRules {
    pub(super) kind: String,
    /// Empty permits all.
    pub(super) providers: Vec<String>,
    pub(super) currency: Currency,
    pub(super) allowed: AllowedHosts,
    /// Path prefix of the requests as sent to upstreams.
    pub(super) path: String,
    pub(super) max_offers: usize,
    pub(super) max_endpoints: usize,
}

/// An offer that can be used.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BookedOffer {
    pub(super) name: String,
    pub(super) price: Money,
    pub(super) promised: Promised,
    pub(super) expires: Timestamp,
    pub(super) class: ClassKey,
}

/// Reasons why an offer is not used by a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exclusion {
    /// Its provider is not listed.
    Provider,
    /// It has no price in the currency of the route.
    Currency,
    /// It requires something of its client that the gateway does not know: protocols or trusted parties.
    Conditions,
    /// It names no endpoint.
    NoEndpoint,
    /// Its endpoint is no plain URL over http or https.
    Endpoint,
    /// Its endpoint is at a host that is not permitted.
    Host,
    /// Its endpoint has a path that is no prefix of the route's path.
    Path,
    /// There are too many offers or endpoints.
    TooMany,
}

/// Provider and name.
pub(super) type OfferKey = (String, String);

/// The offers of one type.
#[derive(Debug, Default)]
pub(super) struct OfferBook {
    offers: BTreeMap<OfferKey, BookedOffer>,
    excluded: BTreeMap<OfferKey, Exclusion>,
    /// Offers by origin.
    origins: HashMap<String, usize>,
}

impl Exclusion {
    pub(crate) const ALL: [Self; 8] = [
        Self::Provider,
        Self::Currency,
        Self::Conditions,
        Self::NoEndpoint,
        Self::Endpoint,
        Self::Host,
        Self::Path,
        Self::TooMany,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Currency => "currency",
            Self::Conditions => "conditions",
            Self::NoEndpoint => "no-endpoint",
            Self::Endpoint => "endpoint",
            Self::Host => "host",
            Self::Path => "path",
            Self::TooMany => "too-many",
        }
    }
}

impl OfferBook {
    /// Applies a change. Returns the reason if the offer cannot be used.
    pub(super) fn take(&mut self, put: Put, rules: &BookRules) -> Option<Exclusion> {
        if put.kind != rules.kind {
            return None;
        }
        let key = (put.provider, put.name);
        self.remove(&key);
        let offer = put.offer?;
        let booked = rules.book(&key, &offer).and_then(|booked| {
            let origin = &booked.class.origin;
            let is_new = !self.origins.contains_key(origin);
            let is_full = self.offers.len() >= rules.max_offers
                || (is_new && self.origins.len() >= rules.max_endpoints);
            if is_full {
                Err(Exclusion::TooMany)
            } else {
                Ok(booked)
            }
        });
        match booked {
            Ok(booked) => {
                let origin = booked.class.origin.clone();
                *self.origins.entry(origin).or_default() += 1;
                self.offers.insert(key, booked);
                None
            }
            Err(reason) => {
                if self.excluded.len() < rules.max_offers {
                    self.excluded.insert(key, reason);
                }
                Some(reason)
            }
        }
    }

    /// Removes offers that have ended. Returns true if there were any.
    pub(super) fn expire(&mut self, now: Timestamp) -> bool {
        let ended = self.offers.iter().filter(|(_, offer)| offer.expires <= now);
        let ended: Vec<OfferKey> = ended.map(|(key, _)| key.clone()).collect();
        ended.iter().for_each(|key| self.remove(key));
        !ended.is_empty()
    }

    /// The usable offers, by provider and name.
    pub(super) fn offers(&self) -> impl Iterator<Item = (&OfferKey, &BookedOffer)> {
        self.offers.iter()
    }

    /// Scheme, host and port of each endpoint.
    pub(super) fn origins(&self) -> impl Iterator<Item = &String> {
        self.origins.keys()
    }

    /// Number of excluded offers by reason.
    pub(super) fn excluded(&self, reason: Exclusion) -> usize {
        let excluded = self.excluded.values();
        excluded.filter(|excluded| **excluded == reason).count()
    }

    fn remove(&mut self, key: &OfferKey) {
        self.excluded.remove(key);
        let Some(offer) = self.offers.remove(key) else {
            return;
        };
        let origin = &offer.class.origin;
        let count = self.origins.get_mut(origin).expect("it was counted");
        *count -= 1;
        if *count == 0 {
            self.origins.remove(origin);
        }
    }
}

impl BookRules {
    fn book(&self, key: &OfferKey, offer: &Offer) -> Result<BookedOffer, Exclusion> {
        let (provider, name) = key;
        if !self.providers.is_empty() && !self.providers.contains(provider) {
            return Err(Exclusion::Provider);
        }
        let price = offer
            .qos
            .price
            .filter(|price| price.currency() == self.currency);
        let price = price.ok_or(Exclusion::Currency)?;
        if offer.qos.requires_of_client() {
            return Err(Exclusion::Conditions);
        }
        let endpoint = offer.endpoint.as_deref().ok_or(Exclusion::NoEndpoint)?;
        let class = ClassKey {
            provider: provider.clone(),
            name: class_name(name).to_owned(),
            origin: self.origin(endpoint)?,
        };
        Ok(BookedOffer {
            name: name.clone(),
            price,
            promised: Promised::from_definition(&offer.qos),
            expires: offer.expires,
            class,
        })
    }

    /// Scheme, host and port of a permitted endpoint.
    fn origin(&self, endpoint: &str) -> Result<String, Exclusion> {
        let url = Url::parse(endpoint).map_err(|_| Exclusion::Endpoint)?;
        let is_plain = matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        let (Some(host), Some(port), true) =
            (url.host_str(), url.port_or_known_default(), is_plain)
        else {
            return Err(Exclusion::Endpoint);
        };
        if !self.allowed.permit(&url) {
            return Err(Exclusion::Host);
        }
        let prefix = url.path().trim_end_matches('/');
        let rest = self.path.strip_prefix(prefix);
        if !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            return Err(Exclusion::Path);
        }
        Ok(format!("{}://{host}:{port}", url.scheme()))
    }
}

/// The name of an offer before `@`, or all of it if that is empty.
fn class_name(name: &str) -> &str {
    match name.split_once('@') {
        None | Some(("", _)) => name,
        Some((class, _)) => class,
    }
}

#[cfg(test)]
mod tests {
    use posthaste_qos::{Definition, Protocols, Requires, Term};
    use posthaste_units::Span;

    use super::*;

    fn rules() -> BookRules {
        BookRules {
            kind: "books".to_owned(),
            providers: Vec::new(),
            currency: "EUR".parse().unwrap(),
            allowed: AllowedHosts::read(&["127.0.0.1".to_owned(), "*.example".to_owned()]).unwrap(),
            path: "/books".to_owned(),
            max_offers: 3,
            max_endpoints: 2,
        }
    }

    fn offer(endpoint: &str) -> Offer {
        let mut qos = Definition {
            price: Some("0.10 EUR".parse().unwrap()),
            ..Definition::default()
        };
        qos.default.server.processing_time = Some(Span::from_millis(50));
        Offer {
            name: String::new(),
            expires: "2026-01-01T00:00:00Z".parse().unwrap(),
            endpoint: Some(endpoint.to_owned()),
            qos,
        }
    }

    fn put(name: &str, offer: Option<Offer>) -> Put {
        Put {
            kind: "books".to_owned(),
            provider: "ada".to_owned(),
            name: name.to_owned(),
            at: None,
            offer,
        }
    }

    #[test]
    fn offers_that_cannot_be_used_are_excluded_with_the_reason() {
        let excluded = |offer: Offer| {
            let mut book = OfferBook::default();
            let reason = book.take(put("a", Some(offer)), &rules());
            let kept = book.offers().count() + reason.map_or(0, |reason| book.excluded(reason));
            assert_eq!(kept, 1);
            reason
        };
        for (endpoint, reason) in [
            ("http://127.0.0.1:9001", None),
            ("http://127.0.0.1:9001/", None),
            ("http://127.0.0.1:9001/books", None),
            ("https://a.example/books/", None),
            ("http://127.0.0.1:9001/book", Some(Exclusion::Path)),
            ("http://127.0.0.1:9001/books/1", Some(Exclusion::Path)),
            ("http://127.0.0.1:9001/?a=b", Some(Exclusion::Endpoint)),
            ("http://ada@127.0.0.1:9001/", Some(Exclusion::Endpoint)),
            ("ftp://127.0.0.1/", Some(Exclusion::Endpoint)),
            ("127.0.0.1:9001", Some(Exclusion::Endpoint)),
            ("http://127.0.0.2:9001", Some(Exclusion::Host)),
            ("http://example/", Some(Exclusion::Host)),
        ] {
            assert_eq!(excluded(offer(endpoint)), reason, "{endpoint}");
        }
        let good = || offer("http://127.0.0.1:9001");
        let nowhere = Offer {
            endpoint: None,
            ..good()
        };
        assert_eq!(excluded(nowhere), Some(Exclusion::NoEndpoint));
        let mut dollars = good();
        dollars.qos.price = Some("0.10 USD".parse().unwrap());
        assert_eq!(excluded(dollars), Some(Exclusion::Currency));
        let mut secret = good();
        secret.qos.default.security.push(Protocols {
            protocols: vec![Term::default()],
            requires: Requires::All,
        });
        assert_eq!(excluded(secret), Some(Exclusion::Conditions));
        let listed = BookRules {
            providers: vec!["bob".to_owned()],
            ..rules()
        };
        let mut book = OfferBook::default();
        let reason = book.take(put("a", Some(good())), &listed);
        assert_eq!(reason, Some(Exclusion::Provider));
    }

    #[test]
    fn the_number_of_offers_and_endpoints_is_bounded() {
        let (mut book, rules) = (OfferBook::default(), rules());
        let mut take = |name: &str, port: Option<u16>| {
            let offer = port.map(|port| offer(&format!("http://127.0.0.1:{port}")));
            book.take(put(name, offer), &rules)
        };
        assert_eq!(take("a", Some(1)), None);
        assert_eq!(take("b", Some(2)), None);
        assert_eq!(take("c", Some(3)), Some(Exclusion::TooMany), "endpoints");
        assert_eq!(take("c", Some(2)), None);
        assert_eq!(take("d", Some(2)), Some(Exclusion::TooMany), "offers");
        // A change of a known offer is no further one.
        assert_eq!(take("a", Some(2)), None);
        assert_eq!(take("b", Some(4)), None);
        assert_eq!(take("a", None), None);
        assert_eq!(take("d", Some(4)), None);
        assert_eq!(book.offers().count(), 3);
        assert_eq!(book.origins().count(), 2);
        assert!(
            Exclusion::ALL
                .iter()
                .all(|reason| book.excluded(*reason) == 0)
        );
    }

    #[test]
    fn offers_of_other_types_and_ended_ones_are_not_kept() {
        let (mut book, rules) = (OfferBook::default(), rules());
        let other = Put {
            kind: "maps".to_owned(),
            ..put("a", Some(offer("http://127.0.0.1:9001")))
        };
        assert_eq!(book.take(other, &rules), None);
        assert_eq!(book.offers().count(), 0);
        book.take(put("a@0.10", Some(offer("http://127.0.0.1:9001"))), &rules);
        let (_, booked) = book.offers().next().unwrap();
        assert_eq!(booked.class.name, "a");
        assert_eq!(class_name("@0.10"), "@0.10");
        assert!(!book.expire("2025-12-31T23:59:59Z".parse().unwrap()));
        assert!(book.expire("2026-01-01T00:00:00Z".parse().unwrap()));
        assert_eq!((book.offers().count(), book.origins().count()), (0, 0));
    }
}
