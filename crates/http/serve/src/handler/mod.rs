//! Handlers: the interface of a service.

pub(crate) mod any_handler;
pub(crate) mod service;
pub(crate) mod slow;

use std::rc::Rc;

use bytes::Bytes;
use hyper::body::Body;
use hyper::{Request, Response};

use crate::connection::peer::Peer;
use crate::exchange::incoming::Incoming;
use crate::framing::check::Rejection;
use crate::framing::unreadable::UnreadableRequest;

/// Handles the requests of one thread. It stays on that thread, so it may hold `Rc` and `Cell`.
pub trait Handler: 'static {
    /// The body of replies.
    type Body: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Unpin + 'static;

    /// Handles one request. The handler decides to what extent it reads the body.
    ///
    /// A [`Dscp`](posthaste_units::Dscp) in the reply's extensions is the mark of its packets. It is set before the
    /// first byte, after the previous reply is acknowledged. An HTTP/2 connection keeps the mark of its first reply.
    /// Replies over HTTP/3 are not marked.
    fn handle(
        self: Rc<Self>,
        request: Request<Incoming>,
        peer: Rc<Peer>,
    ) -> impl Future<Output = Response<Self::Body>> + 'static;

    /// Observes a request that was rejected before any handler got it, because its head or framing is ambiguous.
    fn rejected(&self, _request: &Request<Incoming>, _peer: &Peer, _rejection: Rejection) {}

    /// Observes a request that the parser refused.
    fn unreadable(&self, _request: &UnreadableRequest, _peer: &Peer) {}
}
