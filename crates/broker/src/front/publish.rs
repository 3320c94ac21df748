//! Publishing: authentication, validation, and the outcome of the write.

use std::time::Instant;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{self, HeaderName};
use hyper::http::request::Parts;
use jiff::Timestamp;
use posthaste_qos::{Document, Offer, bounds};
use posthaste_serve::{BodyError, Incoming, Peer, read_body};
use serde::Deserialize;

use super::BrokerHandler;
use super::lookup::from_json;
use super::problem::{Also, Problem};
use super::reply::Reply;
use crate::change::{Key, Of, Tag};
use crate::keeper::{Keeper, WriteError};
use crate::offered::{all, check, fault};
use crate::quota::Exceeded;
use crate::store::{Condition, Made, Outcome, Write};

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
        key: Key,
        parts: &Parts,
        body: Incoming,
        peer: &Peer,
    ) -> Result<Reply, Problem> {
        let by = self.allow(parts, &key.provider)?;
        let only_if = condition(parts)?;
        let body = read(parts, body, bounds::BYTES, peer).await?;
        let offer = if is_xml(parts) {
            one(read_xml(&body)?)?
        } else {
            from_json(&body)?
        };
        if offer.name != key.name {
            let (named, path) = (offer.name, key.name);
            return Err(Problem::senseless(format!(
                "the offer is called {named:?}, and {path:?} in the path"
            )));
        }
        if let Some(words) = fault(&self.context.registry, &offer, Timestamp::now()) {
            return Err(Problem::senseless(words));
        }
        self.spend(by, 1)?;
        let tag = Tag::of(&offer);
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
        Ok(Reply::json(Bytes::new())
            .with_status(status)
            .with(header::ETAG, &tag.to_string()))
    }

    /// Replaces all offers of a provider for a type.
    pub(super) async fn put_all(
        &self,
        of: Of,
        parts: &Parts,
        body: Incoming,
        peer: &Peer,
    ) -> Result<Reply, Problem> {
        let by = self.allow(parts, &of.provider)?;
        let body = read(parts, body, bounds::BYTES, peer).await?;
        let offers = if is_xml(parts) {
            read_xml(&body)?
        } else {
            from_json::<Several>(&body)?.offers
        };
        let kept = offers.len();
        let registry = &self.context.registry;
        check(registry, &offers).map_err(Problem::senseless)?;
        self.spend(by, kept.max(1))?;
        let Made { withdrawn, .. } = self.write(all(of, offers, by)).await?;
        Ok(Reply::of(
            &serde_json::json!({ "offers": kept, "withdrawn": withdrawn }),
        ))
    }

    /// Withdraws an offer.
    pub(super) async fn withdraw(&self, key: Key, parts: &Parts) -> Result<Reply, Problem> {
        let by = self.allow(parts, &key.provider)?;
        let only_if = match condition(parts)? {
            Condition::Any => Condition::There,
            stated => stated,
        };
        self.spend(by, 1)?;
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
                Err(Problem::not_found("there is no such offer"))
            }
            outcome => {
                outcome.map(|_| Reply::json(Bytes::new()).with_status(StatusCode::NO_CONTENT))
            }
        }
    }

    /// The store writer. A broker that follows another has none and rejects with 403.
    fn keeper(&self) -> Result<&Keeper, Problem> {
        self.context.keeper.as_ref().ok_or_else(|| {
            let upstream = self.context.follows.as_deref().unwrap_or_default();
            let words = format!("this broker follows {upstream}: publish there");
            Problem::new(StatusCode::FORBIDDEN, words)
        })
    }

    /// Authenticates `provider` by its bearer token (RFC 6750). Returns the number of the token.
    fn allow(&self, parts: &Parts, provider: &str) -> Result<u64, Problem> {
        self.keeper()?;
        let refuse = |words: &str, challenge| {
            self.context.metrics.count_refused_token();
            Problem::new(StatusCode::UNAUTHORIZED, words).with(Also::Authenticate(challenge))
        };
        let field = parts
            .headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let token = field.and_then(|field| {
            let (scheme, token) = field.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let token = token.ok_or_else(|| {
            refuse(
                "publishing needs a provider's token: send Authorization: Bearer TOKEN",
                "Bearer",
            )
        })?;
        let grant = self.context.registry.grant(token).ok_or_else(|| {
            refuse(
                "nobody has this token, or no longer",
                "Bearer error=\"invalid_token\"",
            )
        })?;
        if grant.provider != provider {
            let words = format!(
                "this token is of {:?}, the offer would be of {provider:?}",
                grant.provider
            );
            return Err(Problem::new(StatusCode::FORBIDDEN, words));
        }
        Ok(grant.number)
    }

    /// Charges changes to the token's quota. Rejects with 429 when the quota is used up (RFC 6585, section 4).
    fn spend(&self, token: u64, changes: usize) -> Result<(), Problem> {
        let quota = &self.context.quota;
        let spent = quota.take(token, changes, Instant::now());
        spent.map_err(|exceeded| {
            let most = quota.per_minute();
            let words = format!(
                "a token may change {most} offers within a minute (limits.changes_per_minute)"
            );
            match exceeded {
                Exceeded::Always => Problem::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    format!("{changes} offers at once: {words}"),
                ),
                Exceeded::Until(wait) => {
                    Problem::new(StatusCode::TOO_MANY_REQUESTS, words).with(Also::RetryAfter(wait))
                }
            }
        })
    }

    /// Stores a change durably through the store writer.
    async fn write(&self, write: Write) -> Result<Made, Problem> {
        match self.keeper()?.write(write).await {
            Ok(Outcome::Made(made)) => Ok(made),
            Ok(Outcome::Refused) => {
                let words = "the offer is not as the request demands (If-Match, If-None-Match): get it and look";
                Err(Problem::new(StatusCode::PRECONDITION_FAILED, words))
            }
            Ok(Outcome::Full(full)) => Err(Problem::new(
                StatusCode::INSUFFICIENT_STORAGE,
                format!("{full} (limits.{})", full.limit()),
            )),
            Err(WriteError::Busy) => Err(Problem::later("too many providers publish at once")),
            Err(WriteError::Store(error)) => Err(Problem::later(format!(
                "nothing can be kept at the moment: {error}"
            ))),
        }
    }
}

/// Reads a body of at most `limit` bytes.
pub(super) async fn read(
    parts: &Parts,
    body: Incoming,
    limit: usize,
    peer: &Peer,
) -> Result<Bytes, Problem> {
    if parts.headers.contains_key(header::CONTENT_ENCODING) {
        let words = "a body in a content coding is not read: send it as it is";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, words));
    }
    read_body(body, limit, peer)
        .await
        .map_err(|error| match error {
            BodyError::TooLong(_) => Problem::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string()),
            BodyError::Broken(_) => Problem::bad(error.to_string()),
        })
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

fn read_xml(body: &[u8]) -> Result<Vec<Offer>, Problem> {
    let document = Document::read(body).map_err(|error| Problem::senseless(error.to_string()))?;
    match document {
        Document::Offers(offers) if offers.includes.is_empty() => Ok(offers.offers),
        Document::Offers(_) => Err(Problem::senseless(
            "includes are not fetched for what is published: send the offers",
        )),
        _ => Err(Problem::senseless("there are no offers in the document")),
    }
}

fn one(offers: Vec<Offer>) -> Result<Offer, Problem> {
    let count = offers.len();
    let [offer] = <[Offer; 1]>::try_from(offers).map_err(|_| {
        Problem::senseless(format!("{count} offers in the document: one belongs here"))
    })?;
    Ok(offer)
}

/// Precondition of a change (RFC 9110, sections 13.1.1 and 13.1.2).
fn condition(parts: &Parts) -> Result<Condition, Problem> {
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
            let tag = tag
                .parse()
                .map_err(|_| Problem::bad(format!("If-Match is {tag:?}: send one tag, or *")))?;
            Ok(Condition::Says(tag))
        }
        _ => Err(Problem::bad(
            "send either If-Match with one tag or *, or If-None-Match: *",
        )),
    }
}
