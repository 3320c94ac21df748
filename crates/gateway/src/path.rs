//! The request pipeline: validate, route, read preferences, admit, queue, forward, compress, mark.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;

use hyper::body::Body;
use hyper::header::{
    CACHE_CONTROL, CONTENT_LENGTH, HeaderName, HeaderValue, IF_NONE_MATCH, TRANSFER_ENCODING,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Request, Response, StatusCode, Version};
use posthaste_compression::forbids_transform;
use posthaste_serve::{Handler, Incoming, Peer};
use posthaste_units::{Dscp, Span};

use crate::access::{Decided, Entry};
use crate::admit::admit;
use crate::body::{BodyError, Outgoing, ReplyBody, Streaming};
use crate::clock::now;
use crate::compress::Compression;
use crate::config::Watch;
use crate::decode::Decoder;
use crate::headers::{match_strongly, one_length, say_for_whom, strip_hop};
use crate::marking;
use crate::places::Places;
use crate::preference::{Wishes, lines};
use crate::refusal::Refusal;
use crate::site::Site;
use crate::traces::Trace;
use crate::upstream::{Failure, Passing, Target};
use crate::worker::CompressionWorker;

/// The gateway of one thread.
pub(crate) struct Gateway {
    /// Replaced with the configuration. A request keeps the one it started with.
    pub(crate) site: Rc<RefCell<Rc<Site>>>,
    pub(crate) worker: Rc<CompressionWorker>,
    pub(crate) places: Rc<Places>,
}

impl Handler for Gateway {
    type Body = ReplyBody;

    async fn handle(
        self: Rc<Self>,
        mut request: Request<Incoming>,
        peer: Rc<Peer>,
    ) -> Response<ReplyBody> {
        let start = now();
        let context = &self.worker.context;
        let entry = context.log.as_ref().map(|log| Entry::of(log, &request));
        let traces = context.traces.as_ref();
        let trace = traces.and_then(|traces| traces.begin(&mut request));
        let client = peer.address.ip();
        let (reply, decided) = match self.serve(request, peer, trace.as_ref()).await {
            Ok(served) => served,
            Err(refusal) => (refusal.reply(), None),
        };
        self.worker.slow_down();
        let time = now().since(start);
        context.metrics.service.add(time);
        context.metrics.replied(reply.status().as_u16());
        if let Some((preference, reason)) = decided {
            context.metrics.decided(preference, reason);
        }
        if let Some(entry) = entry {
            entry.write(client, time, reply.status(), decided);
        }
        if let Some(trace) = trace {
            trace.end(client, reply.status(), decided);
        }
        reply
    }

    fn rejected(&self, request: &Request<Incoming>, peer: &Peer, status: StatusCode) {
        let context = &self.worker.context;
        context.metrics.service.add(Span::ZERO);
        context.metrics.replied(status.as_u16());
        if let Some(log) = &context.log {
            Entry::of(log, request).write(peer.address.ip(), Span::ZERO, status, None);
        }
    }
}

/// A reply and, if it comes from an upstream, the decision about it.
type Served = (Response<ReplyBody>, Option<Decided>);

impl Gateway {
    async fn serve(
        &self,
        request: Request<Incoming>,
        peer: Rc<Peer>,
        trace: Option<&Trace<'_>>,
    ) -> Result<Served, Refusal> {
        let (metrics, protection) = (
            &self.worker.context.metrics,
            &self.worker.context.protection,
        );
        let site = self.site.borrow().clone();
        let (mut head, body) = request.into_parts();
        let version = head.version;
        admit(&mut head)?;
        if let Some(told) = protection.told(&head, &peer) {
            return Ok((told, None));
        }
        let (route, rules) = site.route(head.uri.path())?;
        let mut body = receive(&site, &mut head, body, &peer)?;
        let wishes = Wishes::read(&head, &mut body, route).await?;
        metrics.heard(&wishes);
        let pass = protection.enter(&mut head, &wishes, route, &peer)?;
        let marks = site.marks.as_ref();
        let mark = marks.map(|marks| marking::decide(marks, &wishes, pass.priorities(), route));
        let onward = mark.filter(|_| site.plan.config.marking.upstream);
        let onward = onward.map_or(Dscp::DEFAULT, |mark| mark.dscp);
        let method = head.method.clone();
        let none_match = all(&head.headers, IF_NONE_MATCH);
        let no_transform = forbids_transform(lines(&head.headers, CACHE_CONTROL));
        let progress = body.progress();
        let upload = || progress.as_ref().map_or(Span::ZERO, |body| body.waited());
        let before = upload();
        let request = forward(&site, head, body, (&peer, version));
        let place = self.places.take().await;
        metrics.queued(&place);
        let asked = now();
        // Pinned here, because passing the future by value would copy it.
        let ask = pin!(route.upstreams.ask(request, onward, &peer));
        let reply = pass.attend(ask, progress.as_deref()).await;
        drop(place);
        let taken = upload().saturating_sub(before);
        metrics
            .upstream
            .add(now().since(asked).saturating_sub(taken));
        let status = reply.as_ref().ok().map(|(reply, _)| reply.status());
        if reply.as_ref().err().and_then(Failure::of_client).is_none() {
            pass.ended(status, taken);
        }
        if let Some(trace) = trace {
            trace.asked(asked, status);
        }
        let (mut reply, target) = reply?;
        take_report(&site, target, reply.headers_mut());
        let compression = Compression {
            worker: &self.worker,
            cache: &site.cache,
            route,
            method: &method,
            wishes: &wishes,
            peer: &peer,
            none_match: &none_match,
            no_transform,
            rules,
        };
        let mut reply = send(reply);
        pass.tell(reply.headers_mut());
        drop(pass);
        let (mut reply, reason) = compression.apply(reply).await?;
        if let Some(mark) = mark {
            metrics.marked(mark);
            marking::apply(mark, &mut reply, wishes.prefer.mark_reason);
        }
        Ok((reply, Some((wishes.preference, reason))))
    }
}

/// Returns all lines of a field.
fn all(headers: &HeaderMap, name: HeaderName) -> Vec<HeaderValue> {
    headers.get_all(name).iter().cloned().collect()
}

/// Returns the request's body, limited in length and without its content coding.
fn receive(
    site: &Site,
    head: &mut Parts,
    body: Incoming,
    peer: &Rc<Peer>,
) -> Result<Outgoing, Refusal> {
    if body.is_end_stream() {
        return Ok(Outgoing::Nothing);
    }
    let limit = site.plan.config.limits.body;
    if body.size_hint().lower() > limit.as_bytes() {
        let reason = format!("a request's body has {limit} at most");
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, reason));
    }
    let decoder = Decoder::of(&mut head.headers).map_err(BodyError::Coding)?;
    let body = Streaming::new(body, limit.as_bytes(), decoder, peer.clone());
    Ok(Outgoing::Streaming(Box::new(body)))
}

/// Builds the request for the upstream.
fn forward(
    site: &Site,
    mut head: Parts,
    body: Outgoing,
    (peer, version): (&Peer, Version),
) -> Request<Outgoing> {
    strip_hop(&mut head.headers);
    match_strongly(&mut head.headers);
    let https = site.plan.config.tls.is_some();
    say_for_whom(&mut head.headers, peer, https, version);
    // For a GET without a length, hyper assumes that there is no body.
    if matches!(body, Outgoing::Streaming(_)) && !head.headers.contains_key(CONTENT_LENGTH) {
        let chunked = HeaderValue::from_static("chunked");
        head.headers.insert(TRANSFER_ENCODING, chunked);
    }
    Request::from_parts(head, body)
}

/// Records and removes the upstream's report of its busy share, if configured.
fn take_report(site: &Site, target: &Target, headers: &mut HeaderMap) {
    if let Watch::Upstream(field) = &site.plan.config.demand.watch {
        let report = headers.remove(field);
        if let Some(share) = report.as_ref().and_then(|report| report.to_str().ok()) {
            target.reported.note(share, now());
        }
    }
}

/// Prepares a reply for the client: Content-Length, hop-by-hop fields, version.
fn send(mut reply: Response<Passing>) -> Response<Passing> {
    one_length(reply.headers_mut());
    strip_hop(reply.headers_mut());
    *reply.version_mut() = Version::HTTP_11;
    reply
}
