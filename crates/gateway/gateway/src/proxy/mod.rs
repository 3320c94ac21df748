//! The request pipeline: check, route, prefer, admit, queue, forward, record, compress, mark, send.
//!
//! [`Gateway::serve`] runs one stage after the other. Each may end the request early with a [`Rejection`].

mod exchange;
mod queue;
mod recording;
mod reply_stages;
mod request_stages;

use std::cell::{Cell, OnceCell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use hyper::{Request, Response};
use posthaste_serve::{Handler, Incoming, Peer, Rejection as Rejected, UnreadableRequest};

use self::exchange::Exchange;
use self::reply_stages::ServedReply;
use self::request_stages::CheckedRequest;
use crate::client_address::ClientAddress;
use crate::clock::now;
use crate::context::GatewayContext;
use crate::error::Rejection;
use crate::grpc::GrpcCall;
use crate::record::journal::{self, Journal};
use crate::record::unreadable;
use crate::request::client::ClientIdentity;
use crate::response::body::ReplyBody;
use crate::response::call_refusal::refusal;
use crate::response::rejection;
use crate::response::worker::CompressionWorker;
use crate::routing::router::Router;
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
            gateway: &self,
            router: &router,
            peer,
            identity: &identity,
            trace: trace.as_ref(),
            journal: &journal,
            is_call: call.is_some(),
            deadline: call.as_ref().and_then(GrpcCall::deadline),
            account: OnceCell::new(),
            reply_fields: Cell::new(None),
            is_lost: Cell::new(false),
        };
        let served = {
            let serving = pin!(Self::serve(request, &exchange));
            match &mut call {
                None => serving.await,
                Some(call) => call.until_deadline(serving).await,
            }
        };
        // A refused call has status 200 for its client only.
        let status = served
            .as_ref()
            .map_or_else(|rejected| rejected.status, |served| served.reply.status());
        let (mut reply, decided) = match served {
            Ok(served) => (served.reply, served.decided),
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

impl Gateway {
    /// Runs the stages of a request. Each takes the value that the stage before gave.
    async fn serve(
        request: Request<Incoming>,
        exchange: &Exchange<'_, '_>,
    ) -> Result<ServedReply, Rejection> {
        // Check.
        let checked = CheckedRequest::check(request)?;
        if let Some(reply) = checked.own_reply(exchange)? {
            return Ok(ServedReply {
                reply,
                decided: None,
            });
        }
        // Route.
        let routed = checked.route(exchange)?;
        // Prefer.
        let mut received = routed.receive(exchange)?;
        let preferences = received.read_preferences().await?;
        let mut prepared = received.prefer(preferences, exchange)?;
        // Admit.
        let guard = prepared.admit(exchange).await?;
        let (outbound, awaited) = prepared.into_outbound(guard, exchange);
        // Queue.
        let queued = exchange.queue().await;
        // Forward.
        let outcome = {
            let (route, peer) = (awaited.terms.route, &exchange.peer);
            // Pinned here, because passing the future by value would copy it.
            let sending = pin!(route.send(outbound, peer, exchange.deadline));
            awaited.wait(sending).await
        };
        // Record.
        awaited.record(queued, &outcome, exchange);
        let received = awaited.prepare(outcome, exchange)?;
        // Compress.
        let finished = received.compress(exchange).await?;
        // Mark. The caller sends the reply.
        Ok(finished.mark(exchange))
    }
}
