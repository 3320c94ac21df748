//! One connection to an upstream.
//!
//! The request that uses a connection also drives it. There is no task per connection, so a reply wakes only its own
//! request. An unused connection is not polled. At the next use, the kernel reports whether it has been closed
//! ([`ProbedStream`]).

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use posthaste_serve::{MAX_FIELDS, Stream};
use posthaste_units::Dscp;

use super::early_hints::HintReceiver;
use super::error::UpstreamError;
use super::idle_timeout::IdleTimeout;
use super::probe::{ProbedStream, ReceiveState};
use crate::request::body::RequestBody;
use crate::upload_progress::UploadProgress;

/// Maximum size of a reply's head.
const MAX_HEAD: usize = 64 << 10;

/// A connection to an upstream.
pub(super) struct UpstreamConnection {
    /// Mark of the connection's packets, fixed for its lifetime.
    pub(super) mark: Dscp,
    sender: SendRequest<RequestBody>,
    driver: Driver,
    received: Rc<ReceiveState>,
    timeout: IdleTimeout,
    /// Time for which the upstream keeps the connection unused, if it has stated that.
    pub(super) kept_for: Option<Duration>,
    /// Progress of the last request's body.
    progress: Option<Rc<UploadProgress>>,
}

/// The I/O driver of the connection, until it closes.
struct Driver {
    connection: Option<Pin<Box<Http>>>,
    /// For a request to switch protocols: the connection is not used for another request, and is kept after it.
    switches: bool,
    is_over: bool,
}

type Http = Connection<TokioIo<ProbedStream>, RequestBody>;

impl Driver {
    /// Ready when the connection has closed. The reply or its body reports the error.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(connection) = self.connection.as_mut().filter(|_| !self.is_over) {
            // The reply reports the same error.
            let _ = ready!(connection.as_mut().poll(cx));
            self.is_over = true;
            if !self.switches {
                self.connection = None;
            }
        }
        Poll::Ready(())
    }
}

impl UpstreamConnection {
    /// Starts HTTP/1.1 over `stream`, whose packets have `mark`.
    pub(super) async fn new(stream: Stream, mark: Dscp) -> hyper::Result<Self> {
        Self::with_fields(stream, mark, MAX_FIELDS).await
    }

    /// Starts HTTP/1.1 as [`UpstreamConnection::new`], for replies with at most `max_fields` fields in the head.
    pub(super) async fn with_fields(
        stream: Stream,
        mark: Dscp,
        max_fields: usize,
    ) -> hyper::Result<Self> {
        let mut builder = http1::Builder::new();
        if max_fields != MAX_FIELDS {
            // Set, it costs an allocation for each reply.
            builder.max_headers(max_fields);
        }
        builder.max_buf_size(MAX_HEAD);
        let stream = ProbedStream::new(stream);
        let received = stream.received();
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
        Ok(Self {
            mark,
            sender,
            received,
            driver: Driver {
                connection: Some(Box::pin(connection)),
                switches: false,
                is_over: false,
            },
            timeout: IdleTimeout::default(),
            kept_for: None,
            progress: None,
        })
    }

    /// Drives the connection. Its reply reports the errors.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        let _ = self.driver.poll(cx);
    }

    /// Keeps the stream after a reply that switches protocols. The connection carries no other request.
    pub(super) fn keep_for_switch(&mut self) {
        self.driver.switches = true;
    }

    /// True if the request asks to switch protocols.
    pub(super) fn switches(&self) -> bool {
        self.driver.switches
    }

    /// Returns the stream and the bytes read ahead, after a reply that switches protocols. `None` if the request has
    /// not been sent completely.
    pub(super) fn into_stream(mut self) -> Option<(Stream, Bytes)> {
        debug_assert!(self.switches(), "a switch was requested");
        let mut context = Context::from_waker(Waker::noop());
        if self.driver.poll(&mut context).is_pending() {
            return None;
        }
        let connection = Pin::into_inner(self.driver.connection?);
        let parts = connection.into_parts();
        Some((parts.io.into_inner().into_stream(), parts.read_buf))
    }

    /// Starts the wait for progress of the reply's body.
    pub(super) fn begin_wait(&mut self, limit: Duration) {
        self.timeout.begin(limit);
    }

    /// Records progress of the reply's body.
    pub(super) fn progressed(&mut self) {
        self.timeout.renew();
    }

    /// Ready if the reply's body made no progress within the limit.
    pub(super) fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.timeout.poll(cx)
    }

    /// True if the last request has been sent completely. An upstream may reply earlier. False for a switch, and for an
    /// upstream that took no more, after which the connection is not reused.
    pub(super) fn has_sent(&self) -> bool {
        let is_kept = !self.switches() && !self.received.is_deaf();
        is_kept && self.progress.as_ref().is_none_or(|body| body.is_over())
    }

    /// Readiness for a request. False if the upstream has closed the connection, has not finished, or has sent
    /// unsolicited data.
    pub(super) fn is_ready(&mut self, cx: &mut Context<'_>) -> bool {
        self.received.probe();
        let is_open = self.driver.poll(cx).is_pending() && self.sender.is_ready();
        let is_silent = self.received.is_silent();
        is_open && is_silent
    }

    /// True if the upstream has sent data since the last request.
    pub(super) fn has_received(&self) -> bool {
        self.received.has_received()
    }

    /// Sends `request` as [`UpstreamConnection::send_with_hints`], without hints.
    pub(super) async fn send(
        &mut self,
        request: Request<RequestBody>,
        limit: Duration,
    ) -> Result<Response<Incoming>, (UpstreamError, Option<Request<RequestBody>>)> {
        self.send_with_hints(request, limit, None).await
    }

    /// Sends `request` and waits for the head of the reply. `limit` bounds the time without progress that the upstream
    /// is responsible for.
    ///
    /// Returns the request if nothing of it was sent.
    pub(super) async fn send_with_hints(
        &mut self,
        request: Request<RequestBody>,
        limit: Duration,
        hints: Option<&HintReceiver<'_>>,
    ) -> Result<Response<Incoming>, (UpstreamError, Option<Request<RequestBody>>)> {
        self.progress = request.body().progress();
        self.received.begin_request();
        let progress = &self.progress;
        let mut sent = 0;
        let mut reply = std::pin::pin!(self.sender.try_send_request(request));
        let (driver, timeout) = (&mut self.driver, &mut self.timeout);
        let received = &self.received;
        timeout.begin(limit);
        std::future::poll_fn(|cx| {
            let _ = driver.poll(cx);
            if let Some(hints) = hints
                && let Some(fields) = received.hints.take()
            {
                hints.send(fields);
            }
            if let Poll::Ready(reply) = reply.as_mut().poll(cx) {
                received.end_head();
                return Poll::Ready(reply.map_err(|mut error| {
                    let request = error.take_message();
                    (UpstreamError::Broken(error.into_error()), request)
                }));
            }
            if let Some(progress) = progress {
                if progress.waits_for_client() || progress.pieces() != sent {
                    sent = progress.pieces();
                    timeout.renew();
                }
                if progress.waits_for_client() {
                    return Poll::Pending;
                }
            }
            ready!(timeout.poll(cx));
            Poll::Ready(Err((UpstreamError::ReplyTimeout, None)))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use http_body_util::BodyExt as _;

    use super::*;

    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

    /// True if a connection that has served one request accepts another, after the upstream did `act` unnoticed by the
    /// event loop.
    fn is_ready_after(act: impl FnOnce(TcpStream)) -> bool {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let (mut upstream, _) = listener.accept().unwrap();
            let mut connection = UpstreamConnection::new(stream.into(), Dscp::DEFAULT)
                .await
                .unwrap();
            let answering = std::thread::spawn(move || {
                let _ = upstream.read(&mut [0; 1024]).unwrap();
                upstream.write_all(OK).unwrap();
                upstream
            });
            let request = Request::new(RequestBody::Nothing);
            let limit = Duration::from_secs(10);
            let reply = connection.send(request, limit).await;
            let mut body = reply.map_err(|(failure, _)| failure).unwrap().into_body();
            while let Some(frame) = body.frame().await {
                frame.unwrap();
            }
            let upstream = answering.join().unwrap();
            let is_ready = poll_fn(|cx| Poll::Ready(connection.is_ready(cx))).await;
            assert!(is_ready, "nothing has happened to it");
            // From here on the event loop does not run before the probe.
            act(upstream);
            let mut context = Context::from_waker(std::task::Waker::noop());
            connection.is_ready(&mut context)
        })
    }

    #[test]
    fn readiness_includes_events_that_the_loop_has_not_seen() {
        assert!(is_ready_after(std::mem::forget), "it is open");
        assert!(!is_ready_after(drop), "it is closed");
        assert!(!is_ready_after(|mut upstream| {
            upstream
                .write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
                .unwrap();
            std::mem::forget(upstream);
        }));
    }
}
