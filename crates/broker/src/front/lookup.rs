//! What there is, and the best of it.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::PoisonError;

use bytes::Bytes;
use hyper::header;
use hyper::http::request::Parts;
use jiff::Timestamp;
use posthaste_serve::{Incoming, Peer};
use posthaste_wsqos::index::{Found, Index};
use posthaste_wsqos::qos::{Offer, Ranking, Requirement, compare};
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::publish::read;
use super::reply::Reply;
use super::{Front, path};
use crate::change::{Key, Tag};

/// Bytes of a question at most: a requirement of the usual kind has half a thousand.
const QUESTION: usize = 256 << 10;

/// Of how many offers, the cheapest first, it is said what speaks against them.
const EXPLAINED: usize = 10;

/// Bytes of all that is said against them: a question of [`QUESTION`] may be unmet in as many ways as it has bytes, each
/// with a list as long.
const EXPLANATIONS: usize = 64 << 10;

/// Adequate offers, the cheapest first, that a ranking other than by price compares with each other.
const RANKED: usize = 1_000;

/// Offers in a list, unless asked otherwise, and at most.
pub(super) const LISTED: (usize, usize) = (100, 10_000);

/// A question for the best offer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) requirements: Requirement,
    #[serde(default)]
    pub(super) ranking: Ranking,
}

/// The best offer, or why there is none.
#[derive(Serialize)]
pub(super) struct Answer<'i> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) provider: Option<Cow<'i, str>>,
    pub(super) offer: Option<Offer>,
    /// How many offers there are for the type, where none is adequate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) considered: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) reasons: Vec<Against<'i>>,
}

/// What speaks against an offer.
#[derive(Serialize)]
pub(super) struct Against<'i> {
    pub(super) provider: &'i str,
    pub(super) name: String,
    pub(super) objections: Vec<String>,
}

#[derive(Serialize)]
struct Listed<'i> {
    provider: &'i str,
    #[serde(flatten)]
    offer: Offer,
}

impl Front {
    pub(super) async fn best_offer(
        &self,
        parts: &Parts,
        body: Incoming,
        peer: &Peer,
    ) -> Result<Reply, Problem> {
        let body = read(parts, body, QUESTION, peer).await?;
        let question: Question = from_json(&body)?;
        path::check_name(&question.kind)?;
        let fits = question.requirements.check();
        fits.map_err(|error| Problem::senseless(error.to_string()))?;
        let seen = self.house.registry.seen();
        let answer = self.find(&seen.index, &question);
        self.house.metrics.count_answer(answer.offer.is_some());
        Ok(Reply::of(&answer))
    }

    /// The best offer, by the index or by what stands in its place.
    pub(super) fn find<'i>(&self, index: &'i Index, question: &Question) -> Answer<'i> {
        self.demand(&question.kind);
        let now = Timestamp::now();
        let Some(prototype) = &self.house.prototype else {
            return answer(index, question, now);
        };
        let prototype = prototype.lock().unwrap_or_else(PoisonError::into_inner);
        let Question {
            kind, requirements, ..
        } = question;
        let best = prototype.best(kind, &requirements.qos, &index.world(now));
        match best {
            Ok(Some((provider, offer))) => Answer {
                provider: Some(provider.into()),
                offer: Some(offer),
                considered: None,
                reasons: Vec::new(),
            },
            Ok(None) => nothing(index, question, now),
            Err(error) => {
                tracing::error!(%error, "the prototype cannot answer");
                nothing(index, question, now)
            }
        }
    }

    /// Has the registry be asked for a type, whatever there is of it here: what is remembered may be old.
    pub(super) fn demand(&self, kind: &str) {
        if let Some(directory) = &self.house.directory {
            directory.demand(kind);
        }
    }

    /// One offer, as it is now.
    pub(super) fn get(&self, key: &Key) -> Result<Reply, Problem> {
        let seen = self.house.registry.seen();
        let offer = seen.index.get(&key.kind, &key.provider, &key.name);
        let offer = offer.filter(|offer| offer.expires > Timestamp::now());
        let offer = offer.ok_or_else(|| Problem::not_found("there is no such offer"))?;
        Ok(Reply::of(&offer).with(header::ETAG, &Tag::of(&offer).to_string()))
    }

    /// The offers of a type, the cheapest first, or the types there are.
    pub(super) fn list(&self, parts: &Parts) -> Result<Reply, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        let pairs = || form_urlencoded::parse(query.as_bytes());
        let value = |name| pairs().find(|(key, _)| key == name).map(|(_, value)| value);
        let number = |name, usual| match value(name) {
            None => Ok(usual),
            Some(text) => {
                let wrong = |_| Problem::bad(format!("{name} is {text:?}: write a number"));
                text.parse::<usize>().map_err(wrong)
            }
        };
        let (skip, take) = (
            number("offset", 0)?,
            number("limit", LISTED.0)?.min(LISTED.1),
        );
        let seen = self.house.registry.seen();
        let Some(kind) = value("type") else {
            let mut types: Vec<&str> = seen.index.kinds().collect();
            types.sort_unstable();
            let types: Vec<&str> = types.into_iter().skip(skip).take(take).collect();
            return Ok(Reply::of(&serde_json::json!({ "types": types })));
        };
        // What has expired within the last second may be among them.
        let offers = seen.index.offers_from(&kind, skip).take(take);
        let listed = offers.map(|Found { provider, offer }| Listed { provider, offer });
        let listed: Vec<Listed<'_>> = listed.collect();
        Ok(Reply::of(
            &serde_json::json!({ "type": kind, "offers": listed }),
        ))
    }
}

/// The best offer that is adequate, or why none is.
fn answer<'i>(index: &'i Index, question: &Question, now: Timestamp) -> Answer<'i> {
    let Question {
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
        Some(Found { provider, offer }) => Answer {
            provider: Some(provider.into()),
            offer: Some(offer),
            considered: None,
            reasons: Vec::new(),
        },
        None => nothing(index, question, now),
    }
}

fn nothing<'i>(index: &'i Index, question: &Question, now: Timestamp) -> Answer<'i> {
    Answer {
        provider: None,
        offer: None,
        considered: Some(index.len_of(&question.kind)),
        reasons: against(index, question, now),
    }
}

fn against<'i>(index: &'i Index, question: &Question, now: Timestamp) -> Vec<Against<'i>> {
    let world = index.world(now);
    let mut room = EXPLANATIONS;
    let explain = |Found { provider, offer }: Found<'i>| {
        let mut objections = Vec::new();
        let wanted = &question.requirements.qos;
        let told = compare(&offer, wanted, &world, &mut |mismatch| {
            let words = mismatch.to_string();
            match room.checked_sub(words.len()) {
                Some(left) => room = left,
                None => return ControlFlow::Break(()),
            }
            objections.push(words);
            ControlFlow::Continue(())
        });
        if told.is_break() {
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

/// What a body says in JSON.
pub(super) fn from_json<'b, T: Deserialize<'b>>(body: &'b Bytes) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => Problem::senseless(error.to_string()),
        _ => Problem::bad(format!("not JSON: {error}")),
    })
}
