//! Handlers behind pointers, so that the serving code is compiled once and not again for each service.
//!
//! hyper's connections are generic over the service. A server that is started with [`AnyHandler`] uses the instances in
//! this crate. The price for each request is two allocations and a call through a pointer for each poll; the gateway,
//! whose cost per request decides, is compiled on its own ([`HttpServer::start_specialised`]).
//!
//! [`HttpServer::start_specialised`]: crate::HttpServer::start_specialised

use std::pin::Pin;
use std::rc::Rc;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body;
use hyper::{Request, Response};
use thiserror::Error;

use crate::connection::peer::Peer;
use crate::exchange::incoming::Incoming;
use crate::framing::check::Rejection;
use crate::framing::unreadable::UnreadableRequest;
use crate::handler::Handler;

/// A handler of any type.
pub(crate) struct AnyHandler(Rc<dyn DynHandler>);

/// The body of its replies.
pub(crate) type AnyBody = Pin<Box<dyn Body<Data = Bytes, Error = AnyBodyError>>>;

/// The future of its reply.
type AnyReply = Pin<Box<dyn Future<Output = Response<AnyBody>>>>;

/// The error of a handler's body.
#[derive(Debug, Error)]
#[error(transparent)]
pub(crate) struct AnyBodyError(Box<dyn std::error::Error + Send + Sync>);

/// [`Handler`] without types of its own.
trait DynHandler {
    fn handle(self: Rc<Self>, request: Request<Incoming>, peer: Rc<Peer>) -> AnyReply;

    fn rejected(&self, request: &Request<Incoming>, peer: &Peer, rejection: Rejection);

    fn unreadable(&self, request: &UnreadableRequest, peer: &Peer);
}

impl AnyHandler {
    pub(crate) fn new(handler: impl Handler) -> Self {
        Self(Rc::new(handler))
    }
}

impl<H: Handler> DynHandler for H {
    fn handle(self: Rc<Self>, request: Request<Incoming>, peer: Rc<Peer>) -> AnyReply {
        Box::pin(async move {
            let reply = Handler::handle(self, request, peer).await;
            reply.map(|body| Box::pin(body.map_err(|error| AnyBodyError(error.into()))) as AnyBody)
        })
    }

    fn rejected(&self, request: &Request<Incoming>, peer: &Peer, rejection: Rejection) {
        Handler::rejected(self, request, peer, rejection);
    }

    fn unreadable(&self, request: &UnreadableRequest, peer: &Peer) {
        Handler::unreadable(self, request, peer);
    }
}

impl Handler for AnyHandler {
    type Body = AnyBody;

    fn handle(
        self: Rc<Self>,
        request: Request<Incoming>,
        peer: Rc<Peer>,
    ) -> impl Future<Output = Response<AnyBody>> + 'static {
        self.0.clone().handle(request, peer)
    }

    fn rejected(&self, request: &Request<Incoming>, peer: &Peer, rejection: Rejection) {
        self.0.rejected(request, peer, rejection);
    }

    fn unreadable(&self, request: &UnreadableRequest, peer: &Peer) {
        self.0.unreadable(request, peer);
    }
}
