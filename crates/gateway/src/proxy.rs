//! The request pipeline: validate, route, receive the body, read preferences, admit, queue, forward, record, compress,
//! mark.
//!
//! [`Gateway::serve`] calls one function per stage. Each may end the request early with a [`Rejection`].

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use hyper::body::Body as _;
use hyper::header::{HeaderValue, TE};
use hyper::{HeaderMap, Request, Response, StatusCode};
use posthaste_serve::{Handler, Incoming, Peer};
use posthaste_units::Span;

use crate::clock::now;
use crate::context::GatewayContext;
use crate::error::Rejection;
use crate::grpc::{self, GrpcCall};
use crate::listening::verifies_clients;
use crate::observe::access_log::{AccessEntry, Decided};
use crate::observe::record::record;
use crate::observe::traces::TracedRequest;
use crate::request::body::RequestBody;
use crate::request::client::ClientIdentity;
use crate::request::client_certificate::set_client_certificate;
use crate::request::forwarded::{RequestConditions, forwarded};
use crate::request::preferences::Preferences;
use crate::request::progress::Upload;
use crate::request::validate::validate_head;
use crate::response::body::ReplyBody;
use crate::response::compress::CompressionStage;
use crate::response::worker::CompressionWorker;
use crate::response::{head, marking, redirect, rejection};
use crate::routing::field_changes::FieldChanges;
use crate::routing::router::Router;
use crate::tunnel::Switch;
use crate::upstream::concurrency_limit::ConcurrencyLimit;

/// The gateway of one thread.
pub(crate) struct Gateway {
    pub(crate) context: Arc<GatewayContext>,
    /// Replaced with the configuration. A request keeps the one it started with.
    pub(crate) router: Rc<RefCell<Rc<Router>>>,
    pub(crate) worker: Rc<CompressionWorker>,
    pub(crate) limit: Rc<ConcurrencyLimit>,
}

impl Handler for Gateway {
    type Body = ReplyBody;

    async fn handle(
        self: Rc<Self>,
        mut request: Request<Incoming>,
        peer: Rc<Peer>,
    ) -> Response<ReplyBody> {
        let start = now();
        let context = &self.context;
        let entry = context.log.as_ref();
        let entry = entry.map(|log| AccessEntry::of(log, &request));
        let traces = context.traces.as_ref();
        let trace = traces.and_then(|traces| traces.begin(&mut request));
        let identity = self.client(request.headers(), &peer);
        let client = identity.address;
        let mut changes = None;
        let mut call = GrpcCall::begin(&request, &context.metrics);
        let served = {
            let serving = pin!(self.serve(request, peer, &identity, trace.as_ref(), &mut changes));
            match &mut call {
                None => serving.await,
                Some(call) => call.until_deadline(serving).await,
            }
        };
        // A refused call has status 200 for its client only.
        let status = served
            .as_ref()
            .map_or_else(|r| r.status, |(reply, _)| reply.status());
        let (mut reply, decided) = match served {
            Ok(served) => served,
            Err(rejected) if call.is_some() => (grpc::refusal(rejected), None),
            Err(rejected) => (rejection::reply(rejected), None),
        };
        if let Some(changes) = changes {
            changes.apply(reply.headers_mut());
        }
        let reply = match call {
            None => reply,
            Some(call) => call.finish(reply),
        };
        self.worker.slow_down();
        let time = now().since(start);
        context.metrics.service.add(time);
        context.metrics.replied(status.as_u16());
        if let Some((preference, reason)) = decided {
            context.metrics.decided(preference, reason);
        }
        if let Some(entry) = entry {
            entry.write(client, time, status, decided);
        }
        if let Some(trace) = trace {
            trace.end(client, status, decided);
        }
        reply
    }

    fn rejected(&self, request: &Request<Incoming>, peer: &Peer, status: StatusCode) {
        let context = &self.context;
        context.metrics.service.add(Span::ZERO);
        context.metrics.replied(status.as_u16());
        if let Some(log) = &context.log {
            let client = self.client(request.headers(), peer).address;
            AccessEntry::of(log, request).write(client, Span::ZERO, status, None);
        }
    }
}

/// A reply and, if it comes from an upstream, the decision about it.
type Served = (Response<ReplyBody>, Option<Decided>);

impl Gateway {
    fn client(&self, headers: &HeaderMap, peer: &Peer) -> ClientIdentity {
        let router = self.router.borrow();
        let trusted = &router.resolved.config.trust.forwarded;
        ClientIdentity::read(headers, peer, trusted, &self.context.metrics)
    }

    /// Sets `changes` to the route's changes of the reply's fields. They apply to rejections, too.
    async fn serve(
        &self,
        request: Request<Incoming>,
        peer: Rc<Peer>,
        identity: &ClientIdentity,
        trace: Option<&TracedRequest<'_>>,
        changes: &mut Option<Rc<FieldChanges>>,
    ) -> Result<Served, Rejection> {
        let (metrics, admission) = (&self.context.metrics, &*self.context.admission);
        let router = self.router.borrow().clone();
        let config = &router.resolved.config;
        let (mut head, body) = request.into_parts();
        let version = head.version;

        validate_head(&mut head)?;
        if let Some(port) = self.context.redirect
            && !peer.is_encrypted()
        {
            let reply = redirect::to_https(&head, port)?;
            metrics.redirected();
            return Ok((reply, None));
        }
        if let Some(page) = admission.offer_page(&config.protection, &head, identity) {
            return Ok((page, None));
        }
        let route = router.route(&head.headers, head.uri.path())?;
        changes.clone_from(&route.reply_fields);
        if let Some(rewrite) = &route.rewrite {
            head.uri = rewrite.apply(&head.uri)?;
        }
        let has_body = !body.is_end_stream();
        let rules = &route.switches;
        let switch = Switch::requested(&mut head, has_body, version, rules, &peer, metrics)?;
        let mut body = RequestBody::receive(&mut head, body, route.body_limit, &peer)?;
        let preferences = Preferences::read(&head, &mut body, &route.described, route.wish).await?;
        metrics.preferences(preferences.seen, preferences.unread);
        let codings = route.menu.codings();
        let guard =
            admission.admit(&config.protection, &mut head, &preferences, codings, identity)?;
        let (marks, promised) = (router.marks.as_ref(), guard.priorities());
        let mark = marking::decide(marks, &preferences, promised, route.mark);
        let conditions = RequestConditions::read(&head);
        let upload = Upload::new(body.progress());
        let forwards_te = route.upstreams.forwards_te(&head.headers);
        let is_https = peer.is_encrypted();
        let mut request = forwarded(head, body, (&peer, identity), version, is_https);
        if forwards_te {
            request
                .headers_mut()
                .insert(TE, HeaderValue::from_static("trailers"));
        }
        set_client_certificate(request.headers_mut(), &peer, verifies_clients(config));
        if let Some(switch) = &switch {
            switch.announce(&mut request);
        }
        let reversal = route.change_request(request.headers_mut());

        let permit = self.limit.acquire().await;
        metrics.queued(permit.waited);
        let sent = now();
        let upstream_mark = marking::for_upstream(mark, &config.marking);
        // Pinned here, because passing the future by value would copy it.
        let sending = pin!(route.upstreams.send(request, upstream_mark, &peer));
        let outcome = guard.run(sending, upload.progress()).await;
        drop(permit);
        let status = outcome.as_ref().map(|(reply, _)| reply.status());
        record(metrics, &guard, trace, (sent, upload.waited()), status);

        let (mut reply, target) = outcome.map_err(|failure| route.upstreams.rejection(failure))?;
        head::take_report(&config.demand.watch, &target.reported, reply.headers_mut());
        let switched = match &switch {
            Some(switch) => switch.accepted(&mut reply)?,
            None => None,
        };
        head::prepare(&mut reply);
        if let Some(reversal) = reversal {
            reversal.apply(reply.headers_mut());
        }
        guard.add_fields(reply.headers_mut());
        drop(guard);
        if let (Some(switch), Some(switched)) = (switch, switched) {
            let mut reply = switch.begin(reply, switched, &peer)?;
            if let Some(mark) = mark {
                metrics.marked(mark);
                marking::apply(mark, &mut reply, preferences.prefer.mark_reason);
            }
            return Ok((reply, None));
        }
        let compression = CompressionStage {
            worker: &self.worker,
            cache: &router.cache,
            route,
            preferences: &preferences,
            peer: &peer,
            conditions: &conditions,
        };
        let (mut reply, reason) = compression.apply(reply).await?;
        if let Some(mark) = mark {
            metrics.marked(mark);
            marking::apply(mark, &mut reply, preferences.prefer.mark_reason);
        }
        Ok((reply, Some((preferences.preference, reason))))
    }
}
