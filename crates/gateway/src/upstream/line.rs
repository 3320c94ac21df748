//! One connection to an upstream, and the reply on it.
//!
//! The request that uses a connection also drives it. There is no task per connection, so a reply wakes only its own
//! request. An unused connection is not polled. At the next use, the kernel reports whether it has been closed
//! ([`Probed`]).

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use posthaste_serve::Stream;
use posthaste_units::Dscp;

use super::Failure;
use super::patience::Patience;
use super::pool::Home;
use super::probe::{Heard, Probed};
use crate::body::{Outgoing, Progress};

/// Maximum size of a reply's head.
const MAX_HEAD: usize = 64 << 10;

/// A connection to an upstream.
pub(super) struct Line {
    /// Mark of the connection's packets, fixed for its lifetime.
    pub(super) mark: Dscp,
    sender: SendRequest<Outgoing>,
    connection: Driven,
    heard: Rc<Heard>,
    patience: Patience,
    /// Progress of the last request's body.
    progress: Option<Rc<Progress>>,
}

/// The I/O driver of the connection, until it closes.
struct Driven(Option<Pin<Box<Http>>>);

type Http = Connection<TokioIo<Probed>, Outgoing>;

impl Driven {
    /// Ready when the connection has closed. The reply or its body reports the error.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(connection) = &mut self.0 {
            // The reply reports the same error.
            let _ = ready!(connection.as_mut().poll(cx));
            self.0 = None;
        }
        Poll::Ready(())
    }
}

impl Line {
    /// Starts HTTP/1.1 over `stream`, whose packets have `mark`.
    pub(super) async fn new(stream: Stream, mark: Dscp) -> hyper::Result<Self> {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(MAX_HEAD);
        let stream = Probed::new(stream);
        let heard = stream.heard();
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
        Ok(Self {
            mark,
            sender,
            heard,
            connection: Driven(Some(Box::pin(connection))),
            patience: Patience::default(),
            progress: None,
        })
    }

    /// True if the last request has been sent completely. An upstream may reply earlier.
    fn has_sent(&self) -> bool {
        self.progress.as_ref().is_none_or(|body| body.is_over())
    }

    /// Readiness for a request. False if the upstream has closed the connection, has not finished, or has sent
    /// unsolicited data.
    pub(super) fn is_ready(&mut self, cx: &mut Context<'_>) -> bool {
        self.heard.probe();
        let is_open = self.connection.poll(cx).is_pending() && self.sender.is_ready();
        let is_silent = self.heard.is_silent();
        is_open && is_silent
    }

    /// True if the upstream has sent data since the last request.
    pub(super) fn has_heard(&self) -> bool {
        self.heard.has_come()
    }

    /// Sends `request` and waits for the head of the reply. `limit` bounds the time without progress that the upstream
    /// is responsible for.
    ///
    /// Returns the request if nothing of it was sent.
    pub(super) async fn send(
        &mut self,
        request: Request<Outgoing>,
        limit: Duration,
    ) -> Result<Response<Incoming>, (Failure, Option<Request<Outgoing>>)> {
        self.progress = request.body().progress();
        self.heard.forget();
        let progress = &self.progress;
        let mut sent = 0;
        let mut reply = std::pin::pin!(self.sender.try_send_request(request));
        let (connection, patience) = (&mut self.connection, &mut self.patience);
        patience.begin(limit);
        std::future::poll_fn(|cx| {
            let _ = connection.poll(cx);
            if let Poll::Ready(reply) = reply.as_mut().poll(cx) {
                return Poll::Ready(reply.map_err(|mut error| {
                    let request = error.take_message();
                    (Failure::Broken(error.into_error()), request)
                }));
            }
            if let Some(progress) = progress {
                if progress.waits_for_client() || progress.pieces() != sent {
                    sent = progress.pieces();
                    patience.renew();
                }
                if progress.waits_for_client() {
                    return Poll::Pending;
                }
            }
            ready!(patience.poll(cx));
            Poll::Ready(Err((Failure::ReplyTimeout, None)))
        })
        .await
    }
}

/// The body of an upstream's reply. Its connection returns to the pool after the whole body.
pub(crate) struct Passing {
    body: Incoming,
    /// `None` after a timeout.
    line: Option<Line>,
    home: Home,
    /// The end has arrived. hyper gives no other sign after chunks. Without it such connections would never be reused,
    /// at three times the CPU time per request.
    ended: bool,
}

impl Passing {
    /// Starts the body. `limit` bounds the time between two pieces.
    pub(super) fn new(body: Incoming, mut line: Line, home: Home, limit: Duration) -> Self {
        line.patience.begin(limit);
        Self {
            body,
            line: Some(line),
            home,
            ended: false,
        }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        if let Some(line) = &mut self.line {
            let _ = line.connection.poll(cx);
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }
}

impl Body for Passing {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let this = &mut *self;
        let outcome = match this.poll_body(cx) {
            Poll::Ready(frame) => frame.map(|frame| frame.map_err(Failure::Broken)),
            Poll::Pending => {
                if let Some(line) = &mut this.line {
                    ready!(line.patience.poll(cx));
                }
                this.line = None;
                Some(Err(Failure::Stalled))
            }
        };
        if let Some(line) = &mut this.line {
            line.patience.renew();
        }
        match &outcome {
            None => this.ended = true,
            // Trailers end a message (RFC 9112, section 7.1).
            Some(Ok(frame)) => this.ended |= frame.is_trailers(),
            Some(Err(failure)) => this.home.count(failure),
        }
        Poll::Ready(outcome)
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Passing {
    /// Closes a connection if its reply was not read completely, because the rest would look like the next head, or if
    /// the request was not sent completely.
    fn drop(&mut self) {
        let is_over = self.is_end_stream();
        if let Some(line) = self.line.take().filter(|line| is_over && line.has_sent()) {
            self.home.keep(line);
        }
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
            let mut line = Line::new(stream.into(), Dscp::DEFAULT).await.unwrap();
            let answering = std::thread::spawn(move || {
                let _ = upstream.read(&mut [0; 1024]).unwrap();
                upstream.write_all(OK).unwrap();
                upstream
            });
            let request = Request::new(Outgoing::Nothing);
            let limit = Duration::from_secs(10);
            let reply = line.send(request, limit).await;
            let mut body = reply.map_err(|(failure, _)| failure).unwrap().into_body();
            while let Some(frame) = body.frame().await {
                frame.unwrap();
            }
            let upstream = answering.join().unwrap();
            let is_ready = poll_fn(|cx| Poll::Ready(line.is_ready(cx))).await;
            assert!(is_ready, "nothing has happened to it");
            // From here on the event loop does not run before the probe.
            act(upstream);
            let mut context = Context::from_waker(std::task::Waker::noop());
            line.is_ready(&mut context)
        })
    }

    #[test]
    fn a_connection_is_asked_about_what_the_event_loop_has_not_heard() {
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
