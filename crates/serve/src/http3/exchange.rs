//! A request over HTTP/3: read, handle, reply.

use std::pin::pin;
use std::rc::Rc;

use bytes::{Buf as _, Bytes, BytesMut};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use posthaste_http_streams::http3::ErrorCode;
use posthaste_http_streams::http3::server::{
    RequestError, RequestHead, RequestPiece, RequestReader,
};
use quinn::{Connection, RecvStream, SendStream};
use tokio::time::timeout;

use super::connection::{PIECE, code, fail};
use super::reply::send_reply;
use crate::check::{Rejection, check};
use crate::counters::add_one;
use crate::handler::Handler;
use crate::in_service::InService;
use crate::incoming::Incoming;
use crate::peer::Peer;
use crate::reply_body::{BodySource, ReplyBody};
use crate::service::refuse;
use crate::tunnel::settle;

/// A request's stream.
pub(super) struct Exchange<H> {
    pub(super) send: SendStream,
    pub(super) receive: RecvStream,
    pub(super) connection: Connection,
    pub(super) peer: Rc<Peer>,
    pub(super) handler: Rc<H>,
    pub(super) body_limit: usize,
}

/// Reasons why a request gets no reply of a handler.
enum Failure {
    /// A reply of the server. The rest of the request is not read.
    Rejected(Rejection),
    /// The request violates the protocol.
    Invalid(RequestError),
    /// The head did not arrive in time.
    Late,
    /// The client has reset the stream, or the connection has ended.
    Gone,
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        Self::Invalid(error)
    }
}

impl<H: Handler> Exchange<H> {
    /// Serves the request. Returns after the client has acknowledged the reply, so that an end of the connection cuts
    /// nothing off.
    pub(super) async fn run(mut self) {
        let stopped = self.send.stopped();
        let mut stopped = pin!(stopped);
        let limit = self.peer.thread.server.timeouts.head.into();
        let mut stream = RequestStream::new(self.receive);
        let (connection, peer) = (self.connection, Rc::new(self.peer.of_stream()));
        let head = match timeout(limit, stream.head()).await {
            Ok(head) => head,
            Err(_) => Err(Failure::Late),
        };
        let is_head = head.as_ref().is_ok_and(RequestHead::is_head);
        let result = match head {
            Ok(head) => {
                let in_service = InService::begin(peer.clone());
                let reply = answer(
                    &mut stream,
                    head,
                    self.body_limit,
                    &self.handler,
                    in_service,
                );
                tokio::select! {
                    biased;
                    _ = &mut stopped => Err(Failure::Gone),
                    reply = reply => reply,
                }
            }
            Err(failure) => Err(failure),
        };
        let reply = match result {
            Ok(reply) => reply,
            Err(Failure::Rejected(rejection)) => {
                add_one(&peer.thread.server.counters.protocol_errors);
                let in_service = InService::begin(peer.clone());
                let reply: Response<BodySource<H::Body>> = rejection.into();
                reply.map(|body| ReplyBody { body, in_service })
            }
            Err(failure) => {
                if let Some(error) = abandon(&failure, &connection, &peer) {
                    stream.stop(error);
                    // The client may have stopped it already.
                    let _ = self.send.reset(code(error));
                }
                return;
            }
        };
        let sent = tokio::select! {
            biased;
            _ = &mut stopped => Err(ErrorCode::H3_REQUEST_CANCELLED),
            sent = send_reply(&mut self.send, reply, is_head) => sent,
        };
        stream.stop(ErrorCode::H3_NO_ERROR);
        match sent {
            // The end of the connection ends this task.
            Ok(()) => drop(stopped.await),
            Err(error) => drop(self.send.reset(code(error))),
        }
    }
}

/// Counts a request without a reply. Returns the code that ends its stream, unless the connection ends.
fn abandon(failure: &Failure, connection: &Connection, peer: &Peer) -> Option<ErrorCode> {
    let counters = &peer.thread.server.counters;
    match failure {
        Failure::Invalid(RequestError::Connection(error)) => {
            fail(connection, peer, *error);
            None
        }
        Failure::Invalid(RequestError::Stream { code, reason }) => {
            tracing::debug!(reason, peer = %peer.address, "request is malformed");
            add_one(&counters.protocol_errors);
            Some(*code)
        }
        Failure::Late => {
            add_one(&counters.timed_out_reading);
            Some(ErrorCode::H3_REQUEST_REJECTED)
        }
        Failure::Gone | Failure::Rejected(_) => Some(ErrorCode::H3_REQUEST_CANCELLED),
    }
}

/// Reads the body and handles the request.
async fn answer<H: Handler>(
    stream: &mut RequestStream,
    head: RequestHead,
    body_limit: usize,
    handler: &Rc<H>,
    in_service: InService,
) -> Result<Response<ReplyBody<H::Body>>, Failure> {
    let peer = in_service.shared_peer();
    let mut body = None;
    if head
        .content_length
        .is_none_or(|length| length <= body_limit as u64)
    {
        peer.reading(true);
        body = stream.body(body_limit).await?;
        peer.reading(false);
    }
    let Some(body) = body else {
        let reply: Response<BodySource<H::Body>> = Response::from(Rejection {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            reason: "the body is longer than this server reads",
        });
        return Ok(reply.map(|body| ReplyBody { body, in_service }));
    };
    let request = to_request(head, body).map_err(Failure::Rejected)?;
    let mut reply = match check(&request) {
        Ok(()) => {
            let reply = handler.clone().handle(request, peer.clone()).await;
            reply.map(BodySource::Handler)
        }
        Err(rejection) => refuse(&**handler, &request, &peer, rejection),
    };
    settle(&mut reply, &peer, None);
    Ok(reply.map(|body| ReplyBody { body, in_service }))
}

/// The request for handlers.
fn to_request(head: RequestHead, body: Bytes) -> Result<Request<Incoming>, Rejection> {
    let invalid = |reason| Rejection {
        status: StatusCode::BAD_REQUEST,
        reason,
    };
    let mut target = Uri::builder();
    if let Some(authority) = head.authority {
        if let Some(scheme) = head.scheme {
            target = target.scheme(&scheme[..]);
        }
        target = target.authority(&authority[..]);
    }
    if let Some(path) = head.path {
        target = target.path_and_query(&path[..]);
    }
    let target = target.build();
    let mut request = Request::new(Incoming::whole(body));
    *request.version_mut() = Version::HTTP_3;
    *request.uri_mut() = target.map_err(|_| invalid("the target is no URL"))?;
    *request.method_mut() =
        Method::from_bytes(&head.method).map_err(|_| invalid("the method is no token"))?;
    for (name, value) in &head.fields {
        let name = HeaderName::from_bytes(name);
        let name = name.map_err(|_| invalid("a field's name has letters, digits and few signs"))?;
        let value = HeaderValue::from_bytes(value);
        let value = value.map_err(|_| invalid("a field's value has a control character"))?;
        request.headers_mut().append(name, value);
    }
    Ok(request)
}

/// The received part of a request's stream.
struct RequestStream {
    receive: RecvStream,
    reader: RequestReader,
    /// Received bytes that have not been read.
    chunk: Bytes,
    has_ended: bool,
}

/// A part of a request that is passed on.
enum Part {
    Head(RequestHead),
    Content(Bytes),
}

impl RequestStream {
    fn new(receive: RecvStream) -> Self {
        Self {
            receive,
            reader: RequestReader::default(),
            chunk: Bytes::new(),
            has_ended: false,
        }
    }

    async fn head(&mut self) -> Result<RequestHead, Failure> {
        match self.next().await {
            Ok(Some(Part::Head(head))) => Ok(head),
            Ok(_) => unreachable!("a head comes first, and a stream without one is invalid"),
            Err(Failure::Invalid(RequestError::Stream {
                code: ErrorCode::H3_EXCESSIVE_LOAD,
                reason,
            })) => Err(Failure::Rejected(Rejection {
                status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                reason,
            })),
            Err(failure) => Err(failure),
        }
    }

    /// Reads the body, at most `limit` bytes. `None` if it is longer.
    async fn body(&mut self, limit: usize) -> Result<Option<Bytes>, Failure> {
        let mut all = BytesMut::new();
        while let Some(part) = self.next().await? {
            let Part::Content(content) = part else {
                unreachable!("a request has one head");
            };
            if all.len() + content.len() > limit {
                return Ok(None);
            }
            all.extend_from_slice(&content);
        }
        debug_assert!(all.len() <= limit, "the limit holds");
        Ok(Some(all.freeze()))
    }

    /// The next part, or `None` at the end of the request.
    async fn next(&mut self) -> Result<Option<Part>, Failure> {
        loop {
            let mut input = &self.chunk[..];
            let part = match self.reader.next(&mut input)? {
                Some(RequestPiece::Head(head)) => Some(Part::Head(head)),
                Some(RequestPiece::Content(piece)) => {
                    Some(Part::Content(self.chunk.slice_ref(piece)))
                }
                Some(RequestPiece::Trailers) | None => None,
            };
            let left = input.len();
            self.chunk.advance(self.chunk.len() - left);
            if part.is_some() {
                return Ok(part);
            }
            if !self.chunk.is_empty() {
                continue;
            }
            match self.receive.read_chunk(PIECE, true).await {
                Ok(Some(chunk)) => self.chunk = chunk.bytes,
                Ok(None) => {
                    self.has_ended = true;
                    self.reader.end()?;
                    return Ok(None);
                }
                Err(_) => {
                    self.has_ended = true;
                    return Err(Failure::Gone);
                }
            }
        }
    }

    /// States that the rest of the stream is not read.
    fn stop(&mut self, error: ErrorCode) {
        if !self.has_ended {
            // The client may have closed it already.
            let _ = self.receive.stop(code(error));
        }
    }
}
