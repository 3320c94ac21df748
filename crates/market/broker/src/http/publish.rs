//! Publishing. Stages of a request: authenticate, read, validate, charge the quota, write, reply.

use std::time::Instant;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{self, HeaderName};
use hyper::http::request::Parts;
use jiff::Timestamp;
use posthaste_qos::{Document, Offer, bounds};
use posthaste_serve::{Incoming, Peer};
use serde::Deserialize;

use super::BrokerHandler;
use super::authenticate::unstored;
use super::body::{from_json, read};
use super::problem::{Also, ProblemDetails};
use super::reply::BrokerReply;
use crate::change::{OfferGroup, OfferKey, Tag};
use crate::offered::{all, check, fault};
use crate::quota::Exceeded;
use crate::store::{Condition, Write, WriteEffect, WriteOutcome};
use crate::token::TokenRole;

/// JSON form of several offers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Several {
    offers: Vec<Offer>,
}

impl BrokerHandler {
    /// Creates or replaces one offer.
    pub(super) async fn put(
        &self,
        key: OfferKey,
        parts: &Parts,
        body: Incoming,
        peer: &Peer,
    ) -> Result<BrokerReply, ProblemDetails> {
        let by = self.authenticate_provider(parts, &key.provider).await?;
        let only_if = condition(parts)?;
        let body = read(parts, body, bounds::BYTES, peer).await?;
        let offer = if is_xml(parts) {
            one(read_xml(&body)?)?
        } else {
            from_json(&body)?
        };
        if offer.name != key.name {
            let (named, path) = (offer.name, key.name);
            return Err(ProblemDetails::senseless(format!(
                "the offer is called {named:?}, and {path:?} in the path"
            )));
        }
        if let Some(detail) = fault(&self.context.registry, &offer, Timestamp::now()) {
            return Err(ProblemDetails::senseless(detail));
        }
        self.charge_quota(by, 1)?;
        let tag = Tag::from_offer(&offer);
        let made = self
            .write(Write {
                by,
                changes: vec![(key, Some(offer))],
                only_if,
                alone: None,
            })
            .await?;
        let status = match made.replaced {
            0 => StatusCode::CREATED,
            _ => StatusCode::NO_CONTENT,
        };
        Ok(BrokerReply::json(Bytes::new())
            .with_status(status)
            .with(header::ETAG, &tag.to_string()))
    }

    /// Replaces all offers of a provider for a type.
    pub(super) async fn put_all(
        &self,
        group: OfferGroup,
        parts: &Parts,
        body: Incoming,
        peer: &Peer,
    ) -> Result<BrokerReply, ProblemDetails> {
        let by = self.authenticate_provider(parts, &group.provider).await?;
        let body = read(parts, body, bounds::BYTES, peer).await?;
        let offers = if is_xml(parts) {
            read_xml(&body)?
        } else {
            from_json::<Several>(&body)?.offers
        };
        let kept = offers.len();
        let registry = &self.context.registry;
        check(registry, &offers).map_err(ProblemDetails::senseless)?;
        self.charge_quota(by, kept.max(1))?;
        let WriteEffect { withdrawn, .. } = self.write(all(group, offers, by)).await?;
        Ok(BrokerReply::serialized(
            &serde_json::json!({ "offers": kept, "withdrawn": withdrawn }),
        ))
    }

    /// Withdraws an offer.
    pub(super) async fn withdraw(
        &self,
        key: OfferKey,
        parts: &Parts,
    ) -> Result<BrokerReply, ProblemDetails> {
        let by = self.authenticate_provider(parts, &key.provider).await?;
        let only_if = match condition(parts)? {
            Condition::Any => Condition::There,
            stated => stated,
        };
        self.charge_quota(by, 1)?;
        let write = Write {
            by,
            changes: vec![(key, None)],
            only_if,
            alone: None,
        };
        match self.write(write).await {
            Err(problem)
                if only_if == Condition::There
                    && problem.status == StatusCode::PRECONDITION_FAILED =>
            {
                Err(ProblemDetails::not_found("there is no such offer"))
            }
            outcome => {
                outcome.map(|_| BrokerReply::json(Bytes::new()).with_status(StatusCode::NO_CONTENT))
            }
        }
    }

    /// Authenticates `provider` by its bearer token (RFC 6750). Returns the number of the token.
    async fn authenticate_provider(
        &self,
        parts: &Parts,
        provider: &str,
    ) -> Result<u64, ProblemDetails> {
        let grant = self.authenticate(parts, TokenRole::Provider).await?;
        if grant.provider != provider {
            let detail = format!(
                "this token belongs to {:?}, and the offer to {provider:?}",
                grant.provider
            );
            return Err(ProblemDetails::new(StatusCode::FORBIDDEN, detail));
        }
        Ok(grant.number)
    }

    /// Charges changes to the token's quota. Rejects with 429 when the quota is used up (RFC 6585, section 4).
    fn charge_quota(&self, token: u64, changes: usize) -> Result<(), ProblemDetails> {
        let quota = &self.context.quota;
        let spent = quota.take(token, changes, Instant::now());
        spent.map_err(|exceeded| {
            let most = quota.per_minute();
            let detail = format!(
                "a token may change {most} offers within a minute (limits.changes_per_minute)"
            );
            match exceeded {
                Exceeded::Always => ProblemDetails::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    format!("{changes} offers at once: {detail}"),
                ),
                Exceeded::Until(wait) => ProblemDetails::new(StatusCode::TOO_MANY_REQUESTS, detail)
                    .with(Also::RetryAfter(wait)),
            }
        })
    }

    /// Stores a change durably through the store writer.
    async fn write(&self, write: Write) -> Result<WriteEffect, ProblemDetails> {
        match self.writer()?.write(write).await {
            Ok(WriteOutcome::Made(made)) => Ok(made),
            Ok(WriteOutcome::Refused) => {
                let detail = "the offer does not meet the condition of the request (If-Match, If-None-Match): get its present state";
                Err(ProblemDetails::new(StatusCode::PRECONDITION_FAILED, detail))
            }
            Ok(WriteOutcome::Full(full)) => Err(ProblemDetails::new(
                StatusCode::INSUFFICIENT_STORAGE,
                format!("{full} (limits.{})", full.limit()),
            )),
            Err(error) => Err(unstored(error)),
        }
    }
}

fn is_xml(parts: &Parts) -> bool {
    let kind = parts.headers.get(header::CONTENT_TYPE);
    let kind = kind
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    ["application/xml", "text/xml"]
        .iter()
        .any(|xml| essence.eq_ignore_ascii_case(xml))
}

fn read_xml(body: &[u8]) -> Result<Vec<Offer>, ProblemDetails> {
    let document =
        Document::read(body).map_err(|error| ProblemDetails::senseless(error.to_string()))?;
    match document {
        Document::Offers(offers) if offers.includes.is_empty() => Ok(offers.offers),
        Document::Offers(_) => Err(ProblemDetails::senseless(
            "includes of published documents are not fetched: send the offers",
        )),
        _ => Err(ProblemDetails::senseless(
            "there are no offers in the document",
        )),
    }
}

fn one(offers: Vec<Offer>) -> Result<Offer, ProblemDetails> {
    let count = offers.len();
    let [offer] = <[Offer; 1]>::try_from(offers).map_err(|_| {
        ProblemDetails::senseless(format!("{count} offers in the document: send one"))
    })?;
    Ok(offer)
}

/// Precondition of a change (RFC 9110, sections 13.1.1 and 13.1.2).
fn condition(parts: &Parts) -> Result<Condition, ProblemDetails> {
    let field = |name: HeaderName| {
        parts
            .headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default().trim())
    };
    match (field(header::IF_MATCH), field(header::IF_NONE_MATCH)) {
        (None, None) => Ok(Condition::Any),
        (Some("*"), None) => Ok(Condition::There),
        (None, Some("*")) => Ok(Condition::Absent),
        (Some(tag), None) => {
            let tag = tag.parse().map_err(|_| {
                ProblemDetails::bad(format!("If-Match is {tag:?}: send one tag, or *"))
            })?;
            Ok(Condition::Says(tag))
        }
        _ => Err(ProblemDetails::bad(
            "send either If-Match with one tag or *, or If-None-Match: *",
        )),
    }
}
