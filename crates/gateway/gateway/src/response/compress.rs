//! The compression stage: decides about a reply and builds the reply for the client.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;
use hyper::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    ETAG, HeaderMap, HeaderName, HeaderValue,
};
use hyper::http::response::Parts;
use hyper::{Method, Response, StatusCode};
use posthaste_compression::{
    ClientPath, Coding, Decision, Form, Media, Policy, Question, Reason, Reply, Step, Steps,
    forbids_transform, is_coded,
};
use posthaste_serve::Peer;
use posthaste_soap::Limits;
use posthaste_soap::head::EnvelopeParts;
use posthaste_units::Size;

use super::body::ReplyBody;
use super::buffered_body::BufferedBody;
use super::cache::{CompressedForms, ReplyCache};
use super::codec::WHOLE;
use super::compressed_body::CompressedBody;
use super::route_compression::RouteCompression;
use super::vary;
use super::worker::{CompressionJob, CompressionWorker};
use crate::clock::now;
use crate::idle;
use crate::request::forwarded::RequestConditions;
use crate::request::headers::{field_lines, is_sealed};
use crate::request::preferences::Preferences;
use crate::upstream::body::UpstreamBody;
use crate::upstream::error::UpstreamError;

/// Reports the reason of the decision to clients that request it.
const DECISION: HeaderName = HeaderName::from_static("compression-decision");

/// Maximum wait for the rest of a reply that fits into memory. Compressed whole, it costs less and becomes smaller. What
/// comes later is compressed as it arrives, so that a client sees each part of a slow reply.
const HOLD: Duration = Duration::from_millis(20);

/// A reply and the inputs of the decision about it.
pub(crate) struct CompressionStage<'a> {
    pub(crate) worker: &'a Rc<CompressionWorker>,
    pub(crate) cache: &'a RefCell<ReplyCache>,
    pub(crate) settings: &'a RouteCompression,
    pub(crate) preferences: &'a Preferences,
    pub(crate) peer: &'a Peer,
    pub(crate) conditions: &'a RequestConditions,
}

impl CompressionStage<'_> {
    /// Decides about a reply and carries out the decision.
    pub(crate) async fn apply(
        &self,
        reply: Response<UpstreamBody>,
    ) -> Result<(Response<ReplyBody>, Reason), UpstreamError> {
        let (mut head, body) = reply.into_parts();
        let mut facts = facts(&head, body.size_hint().exact(), &self.conditions.method);
        facts.no_transform |= self.conditions.no_transform;
        let (reason, body) = match facts.obstacle(&self.settings.rules) {
            Some(reason) => {
                self.adjust_uncompressed(facts, &mut head.headers);
                (reason, ReplyBody::Upstream(body))
            }
            None => {
                self.vary(&mut head.headers);
                let mut buffered = BufferedBody::new(body);
                if facts.length.is_none_or(|length| length.as_bytes() <= WHOLE) {
                    buffered.gather_ready(WHOLE).await?;
                    let length = || buffered.whole_length().map(Size::from_bytes);
                    facts.length = facts.length.or_else(length);
                }
                let (decision, known) = self.decide(facts, &mut buffered);
                match decision.step {
                    None => (decision.reason, ReplyBody::Buffered(Box::new(buffered))),
                    Some(_) if self.settings.dry_run => {
                        self.worker.metrics.would_compress(decision.reason);
                        (Reason::DryRun, ReplyBody::Buffered(Box::new(buffered)))
                    }
                    Some(step) => {
                        let headers = &mut head.headers;
                        let compressed =
                            self.compress(headers, step, facts.length, decision, buffered, known);
                        // Boxed, so that replies that are not compressed do not carry space for this future.
                        Box::pin(compressed).await?
                    }
                }
            }
        };
        if self.preferences.prefer.reason {
            let reason = HeaderValue::from_static(reason.name());
            head.headers.insert(DECISION, reason);
        }
        Ok((Response::from_parts(head, body), reason))
    }

    /// Adjusts the head of a 304 reply or a reply to HEAD. Caches apply it to their stored reply, possibly one that was
    /// compressed here (RFC 9110, sections 9.3.2 and 15.4.5).
    fn adjust_uncompressed(&self, reply: Reply, headers: &mut HeaderMap) {
        let rules = &self.settings.rules;
        let got = Reply {
            to_head: false,
            length: None,
            ..reply
        };
        if reply.status == StatusCode::NOT_MODIFIED && self.settings.is_possible() {
            self.vary(headers);
            let as_weak = |list| knows_as_weak(list, headers);
            if self.conditions.none_match.iter().any(as_weak) {
                weaken(headers);
            }
        } else if reply.to_head && got.obstacle(rules).is_none() {
            self.vary(headers);
        }
    }

    /// Adds Vary, if the reply's form depends on the request.
    fn vary(&self, headers: &mut HeaderMap) {
        if self.settings.is_possible() {
            vary::extend(headers, self.settings.varies.union(self.preferences.stated));
        }
    }

    /// Decides, and looks up compressed forms of the same content. `None` if no lookup took place, because the reply
    /// has not arrived completely or must not be compressed.
    fn decide(
        &self,
        reply: Reply,
        buffered: &mut BufferedBody,
    ) -> (Decision, Option<CompressedForms>) {
        let (now, mut known) = (now(), None);
        let mut question = Question {
            now,
            preference: self.preferences.preference,
            form: self.preferences.seen.unwrap_or_default().form(),
            accept: self.preferences.accept,
            reply,
            rules: &self.settings.rules,
            menu: &self.settings.menu,
            at_hand: Steps::default(),
            estimate: self.worker.estimate.get(),
            line: self.client_path(),
            backlog: idle::since(now),
            costs: &self.worker.costs.borrow(),
        };
        let (policy, dry_run) = (self.settings.policy, self.settings.dry_run);
        if !dry_run && policy != Policy::Never && question.obstacle().is_none() {
            known = buffered.whole().map(|message| self.find(&message));
        }
        question.at_hand = known
            .as_ref()
            .map(CompressedForms::steps)
            .unwrap_or_default();
        // A dry run reserves from a bucket of its own, and settles nothing.
        let bucket = if dry_run {
            &self.worker.dry_bucket
        } else {
            &self.worker.bucket
        };
        let mut bucket = bucket.borrow_mut();
        let decision = policy.decide(&question, &mut bucket);
        drop(bucket);
        self.worker.publish();
        (decision, known)
    }

    /// Returns the cached compressed forms of `message`.
    fn find(&self, message: &[u8]) -> CompressedForms {
        let cache = self.cache.borrow();
        cache.find(message).cloned().unwrap_or_default()
    }

    /// Returns the kernel's data about the client's path. Queried only for the policy that uses it.
    fn client_path(&self) -> Option<ClientPath> {
        let path = (self.settings.policy == Policy::Link).then(|| self.peer.path())??;
        Some(ClientPath {
            rate: path.rate,
            rtt: path.rtt,
            window: path.window,
        })
    }

    /// Compresses a body as decided: short bodies that are there whole, others as they arrive.
    async fn compress(
        &self,
        headers: &mut HeaderMap,
        step: Step,
        length: Option<Size>,
        decision: Decision,
        mut buffered: BufferedBody,
        known: Option<CompressedForms>,
    ) -> Result<(Reason, ReplyBody), UpstreamError> {
        if decision.form == Form::Body {
            return self
                .compress_soap_body(headers, step, decision, buffered)
                .await;
        }
        let job = CompressionJob::new(self.worker, step, decision.reservation);
        if length.is_some_and(|length| length.as_bytes() <= WHOLE) {
            buffered.gather_for(HOLD, WHOLE).await?;
        } else {
            buffered.gather_ready(0).await?;
        }
        if buffered.is_compressed() {
            return Ok((
                Reason::AlreadyCoded,
                ReplyBody::Buffered(Box::new(buffered)),
            ));
        }
        let body = match buffered.whole() {
            Some(message) => match self.compress_whole(job, &message, known)? {
                Some(compressed) => ReplyBody::Whole(compressed),
                None => return Ok((Reason::TooSmall, ReplyBody::Whole(message))),
            },
            None => {
                let compressed = CompressedBody::new(job, buffered);
                ReplyBody::Compressed(Box::new(compressed.map_err(UpstreamError::Codec)?))
            }
        };
        become_coded(headers, step.coding());
        Ok((decision.reason, body))
    }

    /// Returns the message compressed, now or from the cache. `None` if compression does not make it smaller.
    fn compress_whole(
        &self,
        job: CompressionJob,
        message: &Bytes,
        known: Option<CompressedForms>,
    ) -> Result<Option<Bytes>, UpstreamError> {
        let step = job.step;
        let known = known.unwrap_or_else(|| self.find(message));
        if let Some(compressed) = known.by(step) {
            let metrics = &self.worker.metrics;
            metrics.cached(message.len(), compressed.len());
            return Ok(Some(compressed.clone()));
        }
        let compressed = job.compress(message)?;
        if compressed.len() >= message.len() {
            return Ok(None);
        }
        self.cache.borrow_mut().keep(message, step, &compressed);
        Ok(Some(compressed))
    }

    /// Compresses the content of the SOAP Body. An envelope that is incomplete or cannot be parsed stays unchanged.
    async fn compress_soap_body(
        &self,
        headers: &mut HeaderMap,
        step: Step,
        decision: Decision,
        mut buffered: BufferedBody,
    ) -> Result<(Reason, ReplyBody), UpstreamError> {
        let job = CompressionJob::new(self.worker, step, decision.reservation);
        buffered.gather(WHOLE).await?;
        let Some(message) = buffered.whole() else {
            return Ok((Reason::NoEnvelope, ReplyBody::Buffered(Box::new(buffered))));
        };
        let Some(parts) = EnvelopeParts::split(&message, &Limits::default()) else {
            return Ok((Reason::NoEnvelope, ReplyBody::Whole(message)));
        };
        let coded = job.compress(parts.content)?;
        let compressed = posthaste_compression::packed(&parts, step.coding(), &coded);
        if compressed.len() >= message.len() {
            return Ok((Reason::TooSmall, ReplyBody::Whole(message)));
        }
        become_another(headers);
        Ok((decision.reason, ReplyBody::Whole(compressed.into())))
    }
}

/// Properties of a reply's head that the decision needs.
fn facts(head: &Parts, length: Option<u64>, method: &Method) -> Reply {
    let headers = &head.headers;
    Reply {
        to_head: method == Method::HEAD,
        status: head.status.as_u16(),
        length: length.map(Size::from_bytes),
        media: Media::from_content_type(headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes)),
        is_coded: is_coded(field_lines(headers, CONTENT_ENCODING)),
        no_transform: forbids_transform(field_lines(headers, CACHE_CONTROL)),
        is_range: headers.contains_key(CONTENT_RANGE),
        is_sealed: is_sealed(headers),
    }
}

/// Adjusts the head of a reply whose content now has a coding.
fn become_coded(headers: &mut HeaderMap, coding: Coding) {
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.token()));
    become_another(headers);
}

/// Adjusts the head of a reply that is now a different representation: a strong validator becomes weak, and byte ranges
/// no longer apply (RFC 9110, section 8.8.1).
fn become_another(headers: &mut HeaderMap) {
    headers.remove(CONTENT_LENGTH);
    headers.remove(ACCEPT_RANGES);
    weaken(headers);
}

/// Turns a strong validator into a weak one.
fn weaken(headers: &mut HeaderMap) {
    let strong = headers
        .get(ETAG)
        .filter(|tag| tag.as_bytes().starts_with(b"\""));
    let weak =
        strong.and_then(|tag| HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()).ok());
    if let Some(weak) = weak {
        headers.insert(ETAG, weak);
    }
}

/// True if an If-None-Match list holds the reply's validator only in its weak form, as replies compressed here carry
/// it.
fn knows_as_weak(list: &HeaderValue, headers: &HeaderMap) -> bool {
    let tag = headers.get(ETAG).and_then(|tag| tag.to_str().ok());
    let (Some(tag), Ok(list)) = (tag, list.to_str()) else {
        return false;
    };
    let weak = list.matches(&format!("W/{tag}")).count();
    weak > 0 && list.matches(tag).count() == weak
}
