//! Requests over HTTP/2: selection of a connection, and repetition of unprocessed requests.

use std::io;
use std::rc::Rc;

use hyper::header::TE;
use hyper::{HeaderMap, Request, Response, StatusCode};
use posthaste_gateway_config::UpstreamProtocol;
use posthaste_http::fields::split;
use posthaste_serve::{Peer, Stream, lacks_common_protocol};
use posthaste_units::Dscp;

use super::body::{Http1Body, UpstreamBody};
use super::connection::UpstreamConnection;
use super::endpoint::UpstreamEndpoint;
use super::error::{UpstreamError, lacks_descriptors};
use super::http1_fields::Http1Fields;
use super::http2::body::{Http2Body, WaitLimits};
use super::http2::connection::{Http2Connection, Lease};
use super::http2::exchange::{FailedExchange, Received, exchange, head_for_http2};
use super::in_use::InUseGuard;
use super::members::Member;
use super::pool::{Pool, PooledGuard};
use super::retry::is_safe;
use super::target::UpstreamTarget;
use super::{SendError, Upstreams};
use crate::request::body::RequestBody;
use crate::upload_progress::UploadProgress;

/// A connection for a request, by the protocol that the upstream has selected.
enum Connected {
    Http2(Lease),
    Http1(Box<UpstreamConnection>),
}

impl UpstreamTarget {
    /// True if HTTP/2 is possible.
    pub(super) fn may_speak_http2(&self) -> bool {
        match self.protocol {
            UpstreamProtocol::Http1 => false,
            UpstreamProtocol::Http2 => true,
            UpstreamProtocol::Auto => self.is_https(),
        }
    }

    /// True if requests are to be sent by HTTP/2, or by the protocol that the next connection negotiates.
    pub(super) fn speaks_http2(&self, pool: &Pool) -> bool {
        match self.protocol {
            UpstreamProtocol::Http1 => false,
            UpstreamProtocol::Http2 => true,
            UpstreamProtocol::Auto => self.is_https() && !pool.http2.selects_http1(),
        }
    }
}

impl Upstreams {
    /// True if a client's `TE: trailers` goes to the upstream. Over HTTP/1.1 the field is for one hop.
    pub(crate) fn forwards_te(&self, headers: &HeaderMap) -> bool {
        self.may_speak_http2
            && headers
                .get_all(TE)
                .into_iter()
                .flat_map(|line| split(line.as_bytes(), b','))
                .any(|coding| coding.eq_ignore_ascii_case(b"trailers"))
    }

    /// Sends the request to one upstream. An error includes the request if the upstream has not processed it.
    ///
    /// Repeats it once, on another connection, if the upstream has refused it, or if a reused connection has closed
    /// before any part of the reply and the request is GET, HEAD or OPTIONS without a body.
    pub(super) async fn send_by_http2(
        &self,
        member: &Member,
        request: Request<RequestBody>,
        mark: Dscp,
        peer: &Peer,
    ) -> Result<Response<UpstreamBody>, SendError> {
        let (target, endpoint, pool) = member.parts();
        let (pooled, hints) = (pool.begin_use(), self.hints(peer));
        let (head, mut body) = request.into_parts();
        let mut refused: Option<Rc<Http2Connection>> = None;
        loop {
            let taken = pool.http2.take(mark, refused.as_ref());
            let is_reused = taken.is_some();
            let connected = match taken {
                Some(lease) => Ok(Connected::Http2(lease)),
                None => {
                    self.connect_http2(member, mark, peer, refused.as_ref())
                        .await
                }
            };
            let mut lease = match connected {
                Ok(Connected::Http2(lease)) => lease,
                Ok(Connected::Http1(connection)) => {
                    let request = Request::from_parts(head, body);
                    return self
                        .send_by_http1(target, *connection, request, pooled, peer)
                        .await;
                }
                Err(failure) => return Err((failure, Some(Request::from_parts(head, body)))),
            };
            let sent = head_for_http2(&head, &target.host, target.is_https());
            let sent = sent.map_err(|error| (error, None))?;
            let (progress, is_safe) = (body.progress(), is_safe(&head.method, &body));
            let failed = match exchange(
                &mut lease,
                sent,
                body,
                self.head_limit(&head.headers),
                Some(&hints),
            )
            .await
            {
                Ok(received) => {
                    endpoint.health.connected();
                    let reply = self.http2_reply(received, lease, progress, pooled.in_use);
                    return reply.map_err(|failure| (failure, None));
                }
                Err(failed) => failed,
            };
            let FailedExchange {
                error,
                unprocessed,
                is_closed,
            } = failed;
            if matches!(error, UpstreamError::ReplyTimeout) {
                lease.retire();
            }
            let again = match unprocessed {
                Some(body) => Some(body),
                None => (is_reused && is_closed && is_safe).then_some(RequestBody::Nothing),
            };
            let Some(unsent) = again else {
                return Err((error, None));
            };
            if refused.replace(lease.connection().clone()).is_some() {
                return Err((error, Some(Request::from_parts(head, unsent))));
            }
            body = unsent;
        }
    }

    /// Makes the reply whose head has arrived.
    fn http2_reply(
        &self,
        received: Received,
        lease: Lease,
        progress: Option<Rc<UploadProgress>>,
        in_use: InUseGuard,
    ) -> Result<Response<UpstreamBody>, UpstreamError> {
        let (reply, stream) = received.reply.into_parts();
        // HTTP/2 has no such status (RFC 9113, section 8.6).
        if reply.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(UpstreamError::Switched);
        }
        let limit = self.body_limit(&reply.headers);
        let waits = WaitLimits::new(limit, self.tunnel, progress);
        let upload = received.upload;
        let body = Http2Body::new(stream, &reply.headers, lease, upload, waits, in_use);
        Ok(Response::from_parts(
            reply,
            UpstreamBody::Http2(Box::new(body)),
        ))
    }

    /// Opens a connection, or waits for one that another request opens.
    async fn connect_http2(
        &self,
        member: &Member,
        mark: Dscp,
        peer: &Peer,
        refused: Option<&Rc<Http2Connection>>,
    ) -> Result<Connected, UpstreamError> {
        let (target, endpoint, pool) = member.parts();
        let opening = pool.http2.begin_opening(self.connect).await?;
        if let Some(lease) = pool.http2.take(mark, refused) {
            return Ok(Connected::Http2(lease));
        }
        if pool.http2.selects_http1() {
            // Another request has learned it meanwhile.
            drop(opening);
            let connection = self.connect(target, endpoint, mark, peer).await?;
            return Ok(Connected::Http1(Box::new(connection)));
        }
        let opened = match self.open_stream(target, endpoint, mark, peer).await {
            Ok(stream) => {
                let limit = pool.http2.limit();
                start(target, stream, mark, limit, self.max_fields).await
            }
            Err(error) => Err(error),
        };
        match opened {
            Ok(Ok(connection)) => {
                endpoint.health.connected();
                Ok(Connected::Http2(opening.opened(connection)))
            }
            Ok(Err(connection)) => {
                endpoint.health.connected();
                pool.http2.remember_http1();
                Ok(Connected::Http1(Box::new(connection)))
            }
            Err(failure) => {
                opening.failed(&failure);
                if !failure.is_ours() && endpoint.health.failed() {
                    let (upstream, address) = (&target.name, endpoint.address);
                    tracing::warn!(upstream, %address, %failure, "excluded for a while");
                }
                Err(failure)
            }
        }
    }

    /// Connects, with this mark.
    async fn open_stream(
        &self,
        target: &UpstreamTarget,
        endpoint: &UpstreamEndpoint,
        mark: Dscp,
        peer: &Peer,
    ) -> Result<Stream, UpstreamError> {
        let mut connected = target.connect_for_http2(endpoint, self.connect).await;
        if connected.as_ref().is_err_and(lacks_descriptors) && peer.evict_unused().await {
            connected = target.connect_for_http2(endpoint, self.connect).await;
        }
        let stream = connected.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => UpstreamError::ConnectTimeout,
            _ if lacks_common_protocol(&error) => UpstreamError::NotHttp2,
            _ => UpstreamError::Connect(error),
        })?;
        if mark != Dscp::DEFAULT
            && let Err(error) = stream.mark(mark)
        {
            self.metrics.mark_refused(&error);
        }
        Ok(stream)
    }

    /// Sends the request on a new connection whose upstream has selected HTTP/1.1.
    async fn send_by_http1(
        &self,
        target: &UpstreamTarget,
        mut connection: UpstreamConnection,
        mut request: Request<RequestBody>,
        pooled: PooledGuard,
        peer: &Peer,
    ) -> Result<Response<UpstreamBody>, SendError> {
        let fields = Http1Fields::apply(request.headers_mut(), target);
        let reply = connection
            .send_with_hints(request, self.reply, Some(&self.hints(peer)))
            .await;
        let reply = reply.map_err(|(failure, unsent)| {
            let unsent = unsent.map(|mut unsent| {
                fields.undo(unsent.headers_mut());
                unsent
            });
            (failure, unsent)
        })?;
        if reply.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err((UpstreamError::Switched, None));
        }
        let limit = self.body_limit(reply.headers());
        Ok(reply.map(|body| UpstreamBody::Http1(Http1Body::new(body, connection, pooled, limit))))
    }
}

/// Starts the protocol that the upstream has selected: HTTP/2, or as inner error HTTP/1.1.
async fn start(
    target: &UpstreamTarget,
    stream: Stream,
    mark: Dscp,
    limit: usize,
    max_fields: usize,
) -> Result<Result<Http2Connection, UpstreamConnection>, UpstreamError> {
    if !target.is_https() || stream.agreed_on_http2() {
        let connection = Http2Connection::new(stream, mark, limit).await;
        return connection.map(Ok).map_err(UpstreamError::Http2);
    }
    if target.protocol == UpstreamProtocol::Http2 {
        return Err(UpstreamError::NotHttp2);
    }
    let connection = UpstreamConnection::with_fields(stream, mark, max_fields).await;
    connection.map(Err).map_err(UpstreamError::Broken)
}
