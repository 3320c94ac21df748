//! The handler as a hyper service: check, handle, mark.

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;

use http_body_util::BodyExt as _;
use hyper::body::Body as _;
#[cfg(feature = "http3")]
use hyper::header::ALT_SVC;
use hyper::header::{CONNECTION, CONTENT_LENGTH, DATE, HeaderValue};
use hyper::service::Service;
use hyper::{Request, Response, StatusCode, Version};
use posthaste_units::Dscp;

use crate::connection::peer::Peer;
use crate::connection::state::ConnectionState;
use crate::counters::add_one;
use crate::environment::{is_simulated, wall_clock};
use crate::exchange::in_service::InService;
use crate::exchange::incoming::Incoming;
use crate::exchange::mark::begin_reply;
use crate::exchange::reply_body::{BodySource, ReplyBody};
use crate::exchange::tunnel::{settle, take_stream};
use crate::framing::check::{Rejection, check};
use crate::handler::Handler;

/// The handler as a hyper service.
pub(crate) struct HandlerService<H> {
    peer: Rc<Peer>,
    handler: Rc<H>,
}

impl<H: Handler> HandlerService<H> {
    pub(crate) fn new(peer: &Rc<Peer>, handler: &Rc<H>) -> Self {
        let (peer, handler) = (peer.clone(), handler.clone());
        Self { peer, handler }
    }
}

impl<H: Handler> Service<Request<hyper::body::Incoming>> for HandlerService<H> {
    type Response = Response<ReplyBody<H::Body>>;
    type Error = Infallible;
    /// Boxed: hyper would reserve space for it in every connection, even without a request.
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn call(&self, request: Request<hyper::body::Incoming>) -> Self::Future {
        let connection = &self.peer.connection;
        let (peer, framed) = if connection.is_multiplexed() {
            connection.requests.next_stream();
            (Rc::new(self.peer.of_stream()), Ok(()))
        } else {
            let allows_interim = request.version() == Version::HTTP_11;
            connection.interim.are_allowed.set(allows_interim);
            // Present if the request has Upgrade. The end of the data may belong to the other protocol.
            let may_switch = !request.extensions().is_empty();
            connection
                .ending
                .hold_input_end(may_switch && self.peer.thread.server.switches);
            (self.peer.clone(), connection.requests.next_request())
        };
        let request = request.map(|body| Incoming::new(body, connection));
        let checked = framed.and_then(|()| check(&request, self.peer.thread.server.max_fields));
        let in_service = InService::begin(peer.clone());
        let handler = self.handler.clone();
        // The handler's future is created inside. Passed in, it would be stored twice and moved.
        Box::pin(async move {
            let mut request = request;
            let checked = match checked {
                Ok(()) => wait_for_empty_end(&mut request, &peer).await,
                rejected => rejected,
            };
            let stream = take_stream(&mut request);
            let mut reply = match checked {
                Ok(()) => handler.handle(request, peer).await.map(BodySource::Handler),
                Err(rejection) => refuse(&*handler, &request, &peer, rejection),
            };
            in_service.peer().connection.ending.hold_input_end(false);
            if is_simulated() {
                add_date(&mut reply);
            }
            #[cfg(feature = "http3")]
            announce_http3(&mut reply, in_service.peer());
            announce_close(&mut reply, &in_service.peer().connection, checked.is_err());
            let mark = reply.extensions_mut().remove::<Dscp>();
            begin_reply(&in_service, mark.unwrap_or_default()).await;
            // Last, so that nothing is between it and the reply.
            settle(&mut reply, in_service.peer(), stream);
            Ok(reply.map(|body| ReplyBody { body, in_service }))
        })
    }
}

/// Counts a request that no handler gets, and returns the reply to it.
pub(crate) fn refuse<H: Handler>(
    handler: &H,
    request: &Request<Incoming>,
    peer: &Peer,
    rejection: Rejection,
) -> Response<BodySource<H::Body>> {
    add_one(&peer.thread.server.counters.protocol_errors);
    handler.rejected(request, peer, rejection);
    rejection.into()
}

/// Adds the date as hyper does, whose clock is the operating system's (RFC 9110, section 6.6.1).
fn add_date<B>(reply: &mut Response<B>) {
    let date = || HeaderValue::try_from(httpdate::fmt_http_date(wall_clock()));
    let fields = reply.headers_mut().entry(DATE);
    fields.or_insert_with(|| date().expect("a date has no control characters"));
}

/// Adds `Alt-Svc` if the server has HTTP/3 (RFC 7838). A client ignores it on a connection that is not encrypted.
#[cfg(feature = "http3")]
fn announce_http3<B>(reply: &mut Response<B>, peer: &Peer) {
    let announcement = peer.thread.http3.as_ref();
    if let Some(announcement) = announcement.filter(|_| peer.is_encrypted()) {
        reply.headers_mut().insert(ALT_SVC, announcement.clone());
    }
}

/// Waits for the end of an HTTP/2 request that declares no content but has not ended. If content follows, the request
/// is malformed and its stream is reset (RFC 9113, section 8.1.1).
async fn wait_for_empty_end(request: &mut Request<Incoming>, peer: &Peer) -> Result<(), Rejection> {
    let is_empty = |value: &HeaderValue| value.as_bytes().iter().all(|byte| *byte == b'0');
    let says_so = || request.headers().get(CONTENT_LENGTH).is_some_and(is_empty);
    if request.version() != Version::HTTP_2 || request.body().is_end_stream() || !says_so() {
        return Ok(());
    }
    peer.reading(true);
    while let Some(frame) = request.body_mut().frame().await {
        if frame.is_err() {
            return Err(Rejection {
                status: StatusCode::BAD_REQUEST,
                reason: "the request declares no content, but content follows",
            });
        }
    }
    peer.reading(false);
    Ok(())
}

/// Adds `Connection: close` if the request's body was not read completely or the request was rejected. The bytes that
/// follow are then not the next request (RFC 9112, section 9.6).
fn announce_close<B>(reply: &mut Response<B>, connection: &ConnectionState, is_rejected: bool) {
    if !connection.is_multiplexed() && (is_rejected || connection.requests.has_body_left()) {
        let close = HeaderValue::from_static("close");
        reply.headers_mut().insert(CONNECTION, close);
    }
}
