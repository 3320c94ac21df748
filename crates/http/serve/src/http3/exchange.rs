//! The life of a request over HTTP/3: read, handle, reply.

use std::pin::pin;
use std::rc::Rc;

use hyper::{Response, StatusCode};
use posthaste_http::streams::http3::ErrorCode;
use posthaste_http::streams::http3::server::{RequestError, RequestHead};
use quinn::{Connection, RecvStream, SendStream};
use tokio::time::timeout;

use super::closing::{code, fail};
use super::reply::send_reply;
use super::request::{RequestFailure, RequestStream, to_request};
use crate::connection::peer::Peer;
use crate::counters::add_one;
use crate::exchange::in_service::InService;
use crate::exchange::reply_body::{BodySource, ReplyBody};
use crate::exchange::tunnel::settle;
use crate::framing::check::{Rejection, check};
use crate::handler::Handler;
use crate::handler::service::refuse;

/// A request's stream.
pub(super) struct Http3Exchange<H> {
    pub(super) send: SendStream,
    pub(super) receive: RecvStream,
    pub(super) connection: Connection,
    pub(super) peer: Rc<Peer>,
    pub(super) handler: Rc<H>,
    pub(super) body_limit: usize,
}

impl<H: Handler> Http3Exchange<H> {
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
            Err(_) => Err(RequestFailure::Late),
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
                    _ = &mut stopped => Err(RequestFailure::Gone),
                    reply = reply => reply,
                }
            }
            Err(failure) => Err(failure),
        };
        let reply = match result {
            Ok(reply) => reply,
            Err(RequestFailure::Rejected(rejection)) => {
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
fn abandon(failure: &RequestFailure, connection: &Connection, peer: &Peer) -> Option<ErrorCode> {
    let counters = &peer.thread.server.counters;
    match failure {
        RequestFailure::Invalid(RequestError::Connection(error)) => {
            fail(connection, peer, *error);
            None
        }
        RequestFailure::Invalid(RequestError::Stream { code, reason }) => {
            tracing::debug!(reason, peer = %peer.address, "request is malformed");
            add_one(&counters.protocol_errors);
            Some(*code)
        }
        RequestFailure::Late => {
            add_one(&counters.timed_out_reading);
            Some(ErrorCode::H3_REQUEST_REJECTED)
        }
        RequestFailure::Gone | RequestFailure::Rejected(_) => Some(ErrorCode::H3_REQUEST_CANCELLED),
    }
}

/// Reads the body and handles the request.
async fn answer<H: Handler>(
    stream: &mut RequestStream,
    head: RequestHead,
    body_limit: usize,
    handler: &Rc<H>,
    in_service: InService,
) -> Result<Response<ReplyBody<H::Body>>, RequestFailure> {
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
    let request = to_request(head, body).map_err(RequestFailure::Rejected)?;
    let mut reply = match check(&request, peer.thread.server.max_fields) {
        Ok(()) => {
            let reply = handler.clone().handle(request, peer.clone()).await;
            reply.map(BodySource::Handler)
        }
        Err(rejection) => refuse(&**handler, &request, &peer, rejection),
    };
    settle(&mut reply, &peer, None);
    Ok(reply.map(|body| ReplyBody { body, in_service }))
}
