//! Lookups: lists of offers, and the best offer.

use std::borrow::Cow;
use std::ops::ControlFlow;

use hyper::header;
use hyper::http::request::Parts;
use jiff::Timestamp;
use posthaste_qos::index::{Found, Index};
use posthaste_qos::{Offer, Ranking, Requirement, compare};
use posthaste_serve::{Incoming, Peer};
use serde::{Deserialize, Serialize};

use super::body::{from_json, read};
use super::problem::ProblemDetails;
use super::reply::BrokerReply;
use super::{BrokerHandler, path};
use crate::change::{OfferKey, Tag};

/// Maximum size of a query, in bytes. A typical requirement has about 500.
const QUESTION: usize = 256 << 10;

/// Number of offers, cheapest first, whose mismatches are explained.
const EXPLAINED: usize = 10;

/// Maximum bytes of all explanations. Bounds the reply to a large query: a query of [`QUESTION`] bytes can have about
/// as many mismatches as bytes, and each mismatch can list as much again.
const EXPLANATIONS: usize = 64 << 10;

/// Maximum number of adequate offers, cheapest first, that a ranking other than by price compares.
const RANKED: usize = 1_000;

/// Default and maximum number of offers in a list.
pub(super) const LISTED: (usize, usize) = (100, 10_000);

/// A query for the best offer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BestOfferQuery {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) requirements: Requirement,
    #[serde(default)]
    pub(super) ranking: Ranking,
}

/// The best offer, or the reasons why no offer is adequate.
#[derive(Serialize)]
pub(super) struct BestOfferReply<'i> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) provider: Option<Cow<'i, str>>,
    pub(super) offer: Option<Offer>,
    /// Number of offers for the type, if none is adequate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) considered: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) reasons: Vec<Against<'i>>,
}

/// Reasons why an offer is not adequate.
#[derive(Serialize)]
pub(super) struct Against<'i> {
    pub(super) provider: &'i str,
    pub(super) name: String,
    pub(super) objections: Vec<String>,
}

#[derive(Serialize)]
struct ListedOffer<'i> {
    provider: &'i str,
    #[serde(flatten)]
    offer: Offer,
}

impl BrokerHandler {
    pub(super) async fn best_offer(
        &self,
        parts: &Parts,
        body: Incoming,
        peer: &Peer,
    ) -> Result<BrokerReply, ProblemDetails> {
        let body = read(parts, body, QUESTION, peer).await?;
        let question: BestOfferQuery = from_json(&body)?;
        path::check_name(&question.kind)?;
        let fits = question.requirements.check();
        fits.map_err(|error| ProblemDetails::senseless(error.to_string()))?;
        let current = self.context.registry.read();
        let answer = self.find(&current.index, &question);
        self.context.metrics.count_answer(answer.offer.is_some());
        Ok(BrokerReply::serialized(&answer))
    }

    /// Finds the best offer with the index, or with the search that replaces it.
    pub(super) fn find<'i>(
        &self,
        index: &'i Index,
        question: &BestOfferQuery,
    ) -> BestOfferReply<'i> {
        self.demand(&question.kind);
        let now = Timestamp::now();
        let Some(search) = &self.context.search else {
            return answer(index, question, now);
        };
        let wanted = &question.requirements.qos;
        match search.best(&question.kind, wanted, &index.world(now)) {
            Ok(Some((provider, offer))) => BestOfferReply::found(provider.into(), offer),
            Ok(None) => nothing(index, question, now),
            Err(error) => {
                tracing::error!(%error, "the search cannot answer");
                nothing(index, question, now)
            }
        }
    }

    /// Requests the type from the UDDI registry, even if it is known, because cached entries may be old.
    pub(super) fn demand(&self, kind: &str) {
        if let Some(directory) = &self.context.directory {
            directory.demand(kind);
        }
    }

    /// Returns the current state of one offer.
    pub(super) fn get(&self, key: &OfferKey) -> Result<BrokerReply, ProblemDetails> {
        let current = self.context.registry.read();
        let found = current.index.get(&key.kind, &key.provider, &key.name);
        let found = found.filter(|offer| offer.expires > Timestamp::now());
        let offer = found.ok_or_else(|| ProblemDetails::not_found("there is no such offer"))?;
        Ok(
            BrokerReply::serialized(&offer)
                .with(header::ETAG, &Tag::from_offer(&offer).to_string()),
        )
    }

    /// Lists the offers of a type, cheapest first, or the known types.
    pub(super) fn list(&self, parts: &Parts) -> Result<BrokerReply, ProblemDetails> {
        let query = parts.uri.query().unwrap_or_default();
        let pairs = || form_urlencoded::parse(query.as_bytes());
        let value = |name| pairs().find(|(key, _)| key == name).map(|(_, value)| value);
        let number = |name, usual| match value(name) {
            None => Ok(usual),
            Some(text) => {
                let wrong = |_| ProblemDetails::bad(format!("{name} is {text:?}: write a number"));
                text.parse::<usize>().map_err(wrong)
            }
        };
        let (skip, take) = (
            number("offset", 0)?,
            number("limit", LISTED.0)?.min(LISTED.1),
        );
        let current = self.context.registry.read();
        let Some(kind) = value("type") else {
            let mut types: Vec<&str> = current.index.kinds().collect();
            types.sort_unstable();
            let types: Vec<&str> = types.into_iter().skip(skip).take(take).collect();
            return Ok(BrokerReply::serialized(
                &serde_json::json!({ "types": types }),
            ));
        };
        // May include offers that expired within the last second.
        let offers = current.index.offers_from(&kind, skip).take(take);
        let listed = offers.map(|Found { provider, offer }| ListedOffer { provider, offer });
        let listed: Vec<ListedOffer<'_>> = listed.collect();
        Ok(BrokerReply::serialized(
            &serde_json::json!({ "type": kind, "offers": listed }),
        ))
    }
}

impl<'i> BestOfferReply<'i> {
    fn found(provider: Cow<'i, str>, offer: Offer) -> Self {
        Self {
            provider: Some(provider),
            offer: Some(offer),
            considered: None,
            reasons: Vec::new(),
        }
    }
}

/// The best adequate offer, or the reasons why none is adequate.
fn answer<'i>(index: &'i Index, question: &BestOfferQuery, now: Timestamp) -> BestOfferReply<'i> {
    let BestOfferQuery {
        kind,
        requirements,
        ranking,
    } = question;
    let mut adequate = index.adequate(kind, &requirements.qos, now);
    let best = match ranking {
        Ranking::Cheapest => adequate.next(),
        ranking => {
            let adequate: Vec<Found<'i>> = adequate.take(RANKED).collect();
            ranking
                .rank(&adequate, &index.world(now))
                .first()
                .map(|best| (*best).clone())
        }
    };
    match best {
        Some(Found { provider, offer }) => BestOfferReply::found(provider.into(), offer),
        None => nothing(index, question, now),
    }
}

fn nothing<'i>(index: &'i Index, question: &BestOfferQuery, now: Timestamp) -> BestOfferReply<'i> {
    BestOfferReply {
        provider: None,
        offer: None,
        considered: Some(index.len_of(&question.kind)),
        reasons: against(index, question, now),
    }
}

fn against<'i>(index: &'i Index, question: &BestOfferQuery, now: Timestamp) -> Vec<Against<'i>> {
    let world = index.world(now);
    let mut room = EXPLANATIONS;
    let explain = |Found { provider, offer }: Found<'i>| {
        let mut objections = Vec::new();
        let wanted = &question.requirements.qos;
        let compared = compare(&offer, wanted, &world, &mut |mismatch| {
            let message = mismatch.to_string();
            match room.checked_sub(message.len()) {
                Some(left) => room = left,
                None => return ControlFlow::Break(()),
            }
            objections.push(message);
            ControlFlow::Continue(())
        });
        if compared.is_break() {
            objections.push("and more".to_owned());
        }
        Against {
            provider,
            name: offer.name,
            objections,
        }
    };
    index
        .offers(&question.kind)
        .take(EXPLAINED)
        .map(explain)
        .collect()
}
