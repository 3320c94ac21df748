//! The request pipeline: validate, route, receive the body, read preferences, admit, queue, forward, record, compress,
//! mark.
//!
//! [`Gateway::serve`] calls one function per stage. Each may end the request early with a [`Rejection`].

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use hyper::body::Body as _;
use hyper::header::{HeaderValue, TE};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Request, Response, Version};
use posthaste_admission::accounts::AccountHandle;
use posthaste_gateway_config::GatewayConfig;
use posthaste_serve::{Handler, Incoming, Peer, Rejection as Rejected, UnreadableRequest};
use tokio::time::Instant;

use crate::admission::admitted::AdmissionGuard;
use crate::admission::tier_rules::TierFacts;
use crate::client_address::ClientAddress;
use crate::clock::now;
use crate::context::GatewayContext;
use crate::error::Rejection;
use crate::grpc::GrpcCall;
use crate::listening::verifies_clients;
use crate::offers::Destination;
use crate::record::access_log::Decided;
use crate::record::journal::{self, Journal};
use crate::record::traces::TracedRequest;
use crate::record::unreadable;
use crate::record::upload::Upload;
use crate::recording::record;
use crate::request::account::{find, identify};
use crate::request::body::RequestBody;
use crate::request::client::ClientIdentity;
use crate::request::client_certificate::set_client_certificate;
use crate::request::forwarded::{RequestConditions, forwarded};
use crate::request::preferences::Preferences;
use crate::request::rewrite::LocationReversal;
use crate::request::validate::{is_asterisk, validate_head};
use crate::response::body::ReplyBody;
use crate::response::call_refusal::refusal;
use crate::response::compress::CompressionStage;
use crate::response::worker::CompressionWorker;
use crate::response::{head, marking, redirect, rejection};
use crate::routing::field_changes::FieldChanges;
use crate::routing::router::{Route, Router};
use crate::tunnel::Switch;
use crate::upstream::body::UpstreamBody;
use crate::upstream::concurrency_limit::ConcurrencyLimit;
use crate::upstream::error::UpstreamError;
use crate::upstream::switched::SwitchedUpstream;

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
        let (context, router) = (&self.context, self.router.borrow().clone());
        let (metrics, config) = (&context.metrics, &router.resolved.config);
        let identity = ClientIdentity::read(request.headers(), &peer, &config.trust, metrics);
        let client = identity.address;
        let log = context.log.as_ref();
        let journal = Journal::begin(metrics, log, config.log, &request, client, start);
        let traces = context.traces.as_ref();
        let trace = traces.and_then(|traces| traces.begin(&mut request));
        let mut call = GrpcCall::begin(&request, metrics);
        let exchange = Exchange {
            peer,
            identity: &identity,
            trace: trace.as_ref(),
            journal: &journal,
            is_call: call.is_some(),
            deadline: call.as_ref().and_then(GrpcCall::deadline),
            reply_fields: Cell::new(None),
            is_lost: Cell::new(false),
        };
        let served = {
            let serving = pin!(self.serve(&router, request, &exchange));
            match &mut call {
                None => serving.await,
                Some(call) => call.until_deadline(serving).await,
            }
        };
        // A refused call has status 200 for its client only.
        let status = served
            .as_ref()
            .map_or_else(|rejected| rejected.status, |(reply, _)| reply.status());
        let (mut reply, decided) = match served {
            Ok(served) => served,
            Err(rejected) if call.is_some() => (refusal(rejected), None),
            Err(rejected) => (rejection::reply(rejected), None),
        };
        if let Some(changes) = exchange.reply_fields.take() {
            changes.apply(reply.headers_mut());
        }
        let is_unanswered = exchange.is_lost.get() && exchange.peer.close_unanswered();
        let reply = match call {
            None => reply,
            Some(call) => call.finish(reply),
        };
        self.worker.slow_down();
        if let Some((preference, reason)) = decided {
            metrics.decided(preference, reason);
        }
        let entry = journal.end(status, now().since(start), decided);
        if let Some(trace) = trace {
            trace.end(client, status, decided);
        }
        let reply = reply.map(|body| body.logged(entry));
        if is_unanswered {
            drop(reply);
            return std::future::pending().await;
        }
        reply
    }

    fn rejected(&self, request: &Request<Incoming>, peer: &Peer, rejection: Rejected) {
        let (context, router) = (&self.context, self.router.borrow().clone());
        let (metrics, config) = (&context.metrics, &router.resolved.config);
        let identity = ClientIdentity::read(request.headers(), peer, &config.trust, metrics);
        let (log, client) = (context.log.as_ref(), identity.address);
        journal::reject(metrics, log, config.log, request, client, rejection);
    }

    fn unreadable(&self, request: &UnreadableRequest, peer: &Peer) {
        let (context, router) = (&self.context, self.router.borrow().clone());
        let config = &router.resolved.config;
        // A trusted proxy sent it for a client that cannot be read.
        let address = peer.address.ip().to_canonical();
        let client = if config.trust.forwarded.contains(address) {
            ClientAddress::Unknown
        } else {
            ClientAddress::Known(address)
        };
        unreadable::record(
            &context.metrics,
            context.log.as_deref(),
            config.log,
            client,
            request,
        );
    }
}

/// A reply and, if it comes from an upstream, the decision about it.
type Served = (Response<ReplyBody>, Option<Decided>);

/// Facts about a request that stay the same in all stages, and the record of them.
struct Exchange<'e, 'r> {
    peer: Rc<Peer>,
    identity: &'e ClientIdentity,
    trace: Option<&'e TracedRequest<'e>>,
    journal: &'e Journal<'r>,
    is_call: bool,
    /// The deadline of a gRPC call.
    deadline: Option<Instant>,
    /// The route's changes of the reply's fields. They apply to rejections, too.
    reply_fields: Cell<Option<Rc<FieldChanges>>>,
    /// The upstream has closed a kept connection under the request.
    is_lost: Cell<bool>,
}

impl Exchange<'_, '_> {
    /// Turns a failure into a rejection.
    fn reject(&self, route: &Route, failure: UpstreamError) -> Rejection {
        self.is_lost
            .set(matches!(failure, UpstreamError::Closed(_)));
        route.rejection(failure)
    }
}

impl Gateway {
    async fn serve<'r>(
        &self,
        router: &'r Router,
        request: Request<Incoming>,
        exchange: &Exchange<'_, 'r>,
    ) -> Result<Served, Rejection> {
        let metrics = &self.context.metrics;
        let (config, journal) = (&router.resolved.config, exchange.journal);
        let peer = &exchange.peer;
        let (mut head, body) = request.into_parts();
        let (version, has_body) = (head.version, !body.is_end_stream());

        validate_head(&mut head)?;
        if let Some(reply) = self.own_reply(&head, config, exchange)? {
            return Ok((reply, None));
        }
        let (route, switch) = self.route(router, &mut head, (has_body, version), exchange)?;
        let mut body = receive(body, route, exchange)?;
        let account = self.identify(&mut head, config, exchange)?;
        let preferences = Preferences::read(&head, &mut body, &route.described, route.wish).await?;
        metrics.preferences(preferences.seen, preferences.unread);
        let selection = route.select_offer(&head, &preferences, journal)?;
        let payer = (&preferences, account.as_ref());
        let guard = self.admit(router, route, &mut head, payer, exchange);
        let guard = guard.await?;
        let (marks, promised) = (router.marks.as_ref(), guard.priorities());
        let mark = marking::decide(marks, &preferences, promised, route.mark);
        let conditions = RequestConditions::read(&mut head, route.compression.is_possible());
        let upload = Upload::new(body.progress());
        let parts = (head, body, version);
        let (request, reversal) =
            upstream_request(parts, route, exchange, switch.as_deref(), config);

        let permit = self.limit.acquire().await;
        metrics.queued(permit.waited);
        let sent = now();
        journal.sent(sent);
        let upstream_mark = marking::for_upstream(mark, &config.marking);
        // Pinned here, because passing the future by value would copy it.
        let deadline = exchange.deadline;
        let sending = pin!(route.send(selection, request, upstream_mark, peer, deadline));
        let outcome = guard.run(sending, upload.progress()).await;
        drop(permit);
        let received = outcome.as_ref().map(|(reply, _)| reply);
        let (trace, waited) = (exchange.trace, upload.waited());
        record(metrics, &guard, trace, (sent, waited), received);

        if let (Err(_), Some(switch)) = (&outcome, &switch) {
            switch.failed();
        }
        let (mut reply, destination) =
            outcome.map_err(|failure| exchange.reject(route, failure))?;
        note_reply(journal, config, &destination, reply.headers_mut());
        let switched = accepted(switch.as_deref(), &mut reply)?;
        head::prepare(&mut reply, &route.removed_reply_trailers);
        if let Some(reversal) = reversal {
            reversal.apply(reply.headers_mut());
        }
        destination.add_fields(reply.headers_mut());
        guard.add_fields(reply.headers_mut());
        drop(guard);
        let explains = preferences.prefer.mark_reason;
        if let (Some(switch), Some(switched)) = (switch, switched) {
            let mut reply = switch.begin(reply, switched, peer)?;
            marking::apply(mark, &mut reply, explains, metrics);
            return Ok((reply, None));
        }
        let compression = CompressionStage {
            worker: &self.worker,
            cache: &router.cache,
            settings: &route.compression,
            preferences: &preferences,
            peer,
            conditions: &conditions,
        };
        let (mut reply, reason) = compression.apply(reply).await?;
        marking::apply(mark, &mut reply, explains, metrics);
        Ok((reply, Some((preferences.preference, reason))))
    }

    /// Selects the route, rewrites the path, and reads a request for another protocol.
    fn route<'r>(
        &self,
        router: &'r Router,
        head: &mut Parts,
        (has_body, version): (bool, Version),
        exchange: &Exchange<'_, 'r>,
    ) -> Result<(&'r Route, Option<Box<Switch>>), Rejection> {
        // OPTIONS for the server as a whole has the route of its root.
        let is_asterisk = is_asterisk(&head.uri);
        let path = if is_asterisk { "/" } else { head.uri.path() };
        let route = router.route(&head.headers, path)?;
        exchange.journal.routed(&route.times);
        exchange.reply_fields.set(route.reply_fields.clone());
        if exchange.is_call {
            route.check_call()?;
        }
        if let Some(rewrite) = route.rewrite.as_ref().filter(|_| !is_asterisk) {
            head.uri = rewrite.apply(&head.uri)?;
        }
        let (rules, metrics) = (&route.switches, &self.context.metrics);
        let switch = Switch::requested(head, has_body, version, rules, &exchange.peer, metrics)?;
        Ok((route, switch))
    }

    /// Finds the account of the request.
    fn identify(
        &self,
        head: &mut Parts,
        config: &GatewayConfig,
        exchange: &Exchange<'_, '_>,
    ) -> Result<Option<AccountHandle>, Rejection> {
        let accounts = &self.context.accounts;
        let client = || {
            exchange
                .identity
                .address
                .name(config.protection.ipv6_prefix)
        };
        let accounts_config = config.accounts.as_ref();
        let account = identify(head, &exchange.peer, client, accounts_config, accounts)?;
        exchange.journal.identified(account.as_ref());
        Ok(account)
    }

    /// Admits the request in its tier.
    async fn admit<'p>(
        &'p self,
        router: &'p Router,
        route: &'p Route,
        head: &mut Parts,
        (preferences, account): (&Preferences, Option<&'p AccountHandle>),
        exchange: &'p Exchange<'_, '_>,
    ) -> Result<AdmissionGuard<'p>, Rejection> {
        let (identity, journal, config) =
            (exchange.identity, exchange.journal, &router.resolved.config);
        let tier = router.tiers.tier(&TierFacts {
            route: &route.times.name,
            headers: &head.headers,
            identity,
            account: account.map(|account| &*account.name),
            subject: exchange.peer.subject(),
        });
        journal.tier(router.tiers.name(tier));
        let (context, is_configured) = (&self.context, config.accounts.is_some());
        let paying = context.accounts.paying(is_configured, account);
        let subject = route.subject(identity, tier, paying);
        let admission = &context.admission;
        let guard = admission.admit(&config.protection, head, preferences, subject);
        let guard = guard.await;
        match &guard {
            Ok(guard) => journal.admitted(guard.would_reject()),
            Err(_) => journal.refused(),
        }
        guard
    }

    /// The reply to a request that needs no route: a redirect to HTTPS, or the page with the current offer.
    fn own_reply(
        &self,
        head: &Parts,
        config: &GatewayConfig,
        exchange: &Exchange<'_, '_>,
    ) -> Result<Option<Response<ReplyBody>>, Rejection> {
        let (context, identity) = (&self.context, exchange.identity);
        match context.redirect {
            Some(port) if !exchange.peer.is_encrypted() => {
                let reply = redirect::to_https(head, port)?;
                context.metrics.redirected();
                Ok(Some(reply))
            }
            _ => context
                .admission
                .offer_page(&config.protection, head, identity, || {
                    let accounts = config.accounts.as_ref();
                    let client = || identity.address.name(config.protection.ipv6_prefix);
                    find(head, &exchange.peer, client, accounts, &context.accounts)
                }),
        }
    }
}

/// Takes the body of a request, with its limits.
fn receive(
    body: Incoming,
    route: &Route,
    exchange: &Exchange<'_, '_>,
) -> Result<RequestBody, Rejection> {
    let mut body = RequestBody::receive(body, route.body_limit, &exchange.peer)?;
    body.remove_trailers(&route.removed_request_trailers);
    if exchange.is_call {
        body.limit_pauses(route.switches.idle);
    }
    exchange.journal.receives(|| body.progress());
    Ok(body)
}

/// Records the upstream that has replied, and takes its report of its load.
fn note_reply(
    journal: &Journal<'_>,
    config: &GatewayConfig,
    destination: &Destination<'_>,
    headers: &mut HeaderMap,
) {
    let target = destination.target();
    journal.replied(&target.name, destination.offer());
    head::take_report(&config.demand.watch, &target.reported, headers);
}

/// Takes the upstream's stream, if a switch was requested and it has accepted.
fn accepted(
    switch: Option<&Switch>,
    reply: &mut Response<UpstreamBody>,
) -> Result<Option<SwitchedUpstream>, Rejection> {
    match switch {
        Some(switch) => switch.accepted(reply),
        None => Ok(None),
    }
}

/// Builds the request for the upstream. If its path was rewritten, returns the reversal for the reply, too.
fn upstream_request<'a>(
    (head, body, version): (Parts, RequestBody, Version),
    route: &'a Route,
    exchange: &Exchange<'_, '_>,
    switch: Option<&Switch>,
    config: &GatewayConfig,
) -> (Request<RequestBody>, Option<Box<LocationReversal<'a>>>) {
    let peer = &exchange.peer;
    let forwards_te = route.upstreams.forwards_te(&head.headers);
    let mut request = forwarded(head, body, (peer, exchange.identity), version);
    let headers = request.headers_mut();
    if forwards_te {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    set_client_certificate(headers, peer, verifies_clients(config));
    if let Some(switch) = switch {
        switch.announce(&mut request);
    }
    let reversal = route.change_request(request.headers_mut());
    (request, reversal)
}
