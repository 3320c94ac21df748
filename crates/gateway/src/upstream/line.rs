//! One connection to an upstream, and the reply that comes on it.
//!
//! Nobody but the request that uses a connection drives it: there is no task per connection, so that
//! a reply wakes the request that waits for it and nothing else. While unused it is not looked at;
//! that it has been closed shows when it is next taken: then the kernel is asked ([`Probed`]).

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

/// The head of a reply at most.
const MAX_HEAD: usize = 64 << 10;

/// A connection to an upstream.
pub(super) struct Line {
    /// Of its packets, for as long as it lives.
    pub(super) mark: Dscp,
    sender: SendRequest<Outgoing>,
    connection: Driven,
    heard: Rc<Heard>,
    patience: Patience,
    /// Of the last request's body.
    progress: Option<Rc<Progress>>,
}

/// What moves the bytes, for as long as there is a connection.
struct Driven(Option<Pin<Box<Http>>>);

type Http = Connection<TokioIo<Probed>, Outgoing>;

impl Driven {
    /// Ready when the connection is over; the reply or its body says how it ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(connection) = &mut self.0 {
            // The error is the reply's, too.
            let _ = ready!(connection.as_mut().poll(cx));
            self.0 = None;
        }
        Poll::Ready(())
    }
}

impl Line {
    /// HTTP/1.1 over `stream`, which has that mark.
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

    /// Whether all of the last request has been sent: an upstream may answer before that.
    fn has_sent(&self) -> bool {
        self.progress.as_ref().is_none_or(|body| body.is_over())
    }

    /// Readiness for a request: `false` once the upstream has closed it, has not finished, or has sent what nobody
    /// asked for.
    pub(super) fn is_ready(&mut self, cx: &mut Context<'_>) -> bool {
        self.heard.probe();
        let is_open = self.connection.poll(cx).is_pending() && self.sender.is_ready();
        let is_silent = self.heard.is_silent();
        is_open && is_silent
    }

    /// True where the upstream has sent anything since the last request was.
    pub(super) fn has_heard(&self) -> bool {
        self.heard.has_come()
    }

    /// Sends `request` and waits for the head of the reply, for `limit` while neither the request nor the
    /// reply gets on by the upstream's fault.
    ///
    /// The request comes back where nothing of it was sent.
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

/// The body of an upstream's reply as it comes; its connection goes home when it has come whole.
pub(crate) struct Passing {
    body: Incoming,
    /// None once it is over.
    line: Option<Line>,
    home: Home,
    /// Its end has come: of chunks hyper knows no other sign. Without it their connections would never be used again,
    /// which costs three times the CPU time per request.
    ended: bool,
}

impl Passing {
    /// The rest may take `limit` from one piece to the next.
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
            // Nothing comes behind trailers (RFC 9112, section 7.1).
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
    /// A connection whose reply was not taken whole is closed: its rest would be the next one's head. So is
    /// one that still has some of the request to send, which nobody would any more.
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

    /// Whether a connection on which one request was answered takes another, after the upstream has done something to it
    /// of which the event loop has not heard.
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
            // From here to the question nothing lets the event loop look.
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
