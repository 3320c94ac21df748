//! The HTTP protocol of a connection: version, transport, and end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use posthaste_units::Dscp;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::check::{Rejection, check};
use crate::connection::{Connection, InService, Peer};
use crate::counters::add_one;
use crate::incoming::Incoming;
use crate::mark::begin_reply;
use crate::replying::{Answer, Replying};
use crate::server::Handler;
use crate::stream::Stream;
use crate::transport::{Reading, Watched};
use crate::worker::Thread;

/// Maximum size of a request's header, and of the read buffer.
const MAX_HEAD: usize = 64 << 10;

/// First bytes of an HTTP/2 client with prior knowledge (RFC 9113, section 3.3). No HTTP/1.1 method begins with them.
const HTTP2_START: &[u8; 4] = b"PRI ";

/// Maximum time for reading after a rejection, in total and without data.
const LINGER: Duration = Duration::from_secs(30);
const LINGER_SILENCE: Duration = Duration::from_secs(2);

/// Maximum bytes read after a rejection. A client that sends more without reading the reply is not interested in it.
const LINGER_BYTES: usize = 1 << 30;

/// Buffer size for reading and dropping.
const LINGER_BUFFER: usize = 16 << 10;

/// Serves a connection to its end.
pub(crate) async fn run<H: Handler>(stream: TcpStream, peer: Rc<Peer>, handler: Rc<H>) {
    let connection = peer.connection.clone();
    let mut served = pin!(serve(stream, peer, handler));
    poll_fn(|cx| {
        connection.wakes(cx.waker());
        if connection.is_over() {
            return Poll::Ready(());
        }
        served.as_mut().poll(cx)
    })
    .await;
}

async fn serve<H: Handler>(stream: TcpStream, peer: Rc<Peer>, handler: Rc<H>) {
    let (thread, connection) = (&peer.thread, &peer.connection);
    // A silent connection costs no buffers. Peeks, because a new socket counts as readable until the first attempt.
    let mut start = [0; HTTP2_START.len()];
    let started = tokio::select! {
        biased;
        length = stream.peek(&mut start) => length.unwrap_or(0),
        () = draining(thread) => return,
    };
    let (stream, http2): (Stream, _) = match &thread.server.tls {
        _ if started == 0 => return,
        None => (stream.into(), start == *HTTP2_START),
        Some(tls) => {
            connection.shake_hands(thread.ticks.get());
            match Box::pin(TlsAcceptor::from(tls.config.clone()).accept(stream)).await {
                Ok(stream) => {
                    let stream = Stream::from(Box::new(stream));
                    let http2 = stream.agreed_on_http2();
                    (stream, http2)
                }
                Err(error) => {
                    tracing::debug!(%error, peer = %peer.address, "TLS handshake failed");
                    add_one(&thread.server.counters.tls_failures);
                    return;
                }
            }
        }
    };
    connection.begin(http2, thread.ticks.get());
    let stream = Watched {
        ahead: Bytes::new(),
        stream,
        connection: connection.clone(),
        thread: thread.clone(),
        reading: Reading::new(http2),
    };
    let outcome = match http2 {
        // Boxed: up to here a connection costs a few hundred bytes.
        true => Box::pin(speak_http2(stream, &peer, &handler)).await,
        false => speak_and_rest(stream, &peer, &handler).await,
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, peer = %peer.address, "connection ended");
        add_one(&thread.server.counters.protocol_errors);
    }
}

/// Serves HTTP/1.1. After some idle time, releases the protocol state and buffers, tens of KiB, and keeps the socket:
/// the connection is then as small as before its first request.
async fn speak_and_rest<H: Handler>(
    mut stream: Watched,
    peer: &Rc<Peer>,
    handler: &Rc<H>,
) -> hyper::Result<()> {
    while let Some(resting) = Box::pin(speak_http1(stream, peer, handler)).await? {
        stream = resting;
        // Bytes of a next head that came with the previous request count as received.
        if stream.ahead.is_empty() {
            tokio::select! {
                biased;
                // A closed socket is readable, too.
                _ = stream.stream.socket().readable() => {}
                () = draining(&peer.thread) => {
                    let _ = stream.shutdown().await;
                    return Ok(());
                }
            }
        }
        peer.connection.wake_up();
    }
    Ok(())
}

/// Serves HTTP/1.1 until the connection ends, or until its buffers are to be released; then returns the stream.
async fn speak_http1<H: Handler>(
    stream: Watched,
    peer: &Rc<Peer>,
    handler: &Rc<H>,
) -> hyper::Result<Option<Watched>> {
    let (thread, connection) = (&peer.thread, &peer.connection);
    let mut http = http1::Builder::new()
        .keep_alive(thread.server.keep_alive)
        .max_buf_size(MAX_HEAD)
        .max_header_size(MAX_HEAD)
        .half_close(false)
        .serve_connection(TokioIo::new(stream), Serving::of(peer, handler));
    let (mut told, mut rests) = (false, false);
    let outcome = poll_fn(|cx| {
        rests |= !told && connection.may_rest();
        if (rests || thread.draining.get()) && !std::mem::replace(&mut told, true) {
            Pin::new(&mut http).graceful_shutdown();
        }
        http.poll_without_shutdown(cx)
    })
    .await;
    let parts = http.into_parts();
    let mut stream = parts.io.into_inner();
    if rests && outcome.is_ok() {
        stream.ahead = parts.read_buf;
        return Ok(Some(stream));
    }
    if connection.is_over() {
        return outcome.map(|()| None);
    }
    // The peer may have gone already.
    let _ = stream.shutdown().await;
    if outcome.is_err() || connection.had_body() {
        connection.lingers(thread.ticks.get());
        let lingers = Box::pin(linger(stream.stream.socket()));
        tokio::select! {
            () = lingers => {}
            () = draining(thread) => {}
        }
    }
    outcome.map(|()| None)
}

/// Reads and drops data from a peer that already has its reply, until it closes its side. An earlier close would reset
/// the connection, and the reply could be lost (RFC 9112, section 9.6).
async fn linger(socket: &TcpStream) {
    let mut dropped = vec![0; LINGER_BUFFER];
    let drained = async {
        let mut left = LINGER_BYTES;
        while timeout(LINGER_SILENCE, socket.readable())
            .await
            .is_ok_and(|is| is.is_ok())
        {
            match socket.try_read(&mut dropped) {
                Ok(length @ 1..) if length < left => {
                    left -= length;
                    // Gives other connections their turn if a client sends without end.
                    yield_now().await;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                _ => return,
            }
        }
    };
    // After this time a lost reply is accepted.
    let _ = timeout(LINGER, drained).await;
}

async fn speak_http2<H: Handler>(
    stream: Watched,
    peer: &Rc<Peer>,
    handler: &Rc<H>,
) -> hyper::Result<()> {
    let mut builder = http2::Builder::new(OnThisThread);
    builder.max_header_list_size(MAX_HEAD as u32);
    let mut http = pin!(builder.serve_connection(TokioIo::new(stream), Serving::of(peer, handler)));
    let mut told = false;
    poll_fn(|cx| {
        if peer.thread.draining.get() && !std::mem::replace(&mut told, true) {
            http.as_mut().graceful_shutdown();
        }
        http.as_mut().poll(cx)
    })
    .await
}

/// The handler as a hyper service.
struct Serving<H> {
    peer: Rc<Peer>,
    handler: Rc<H>,
}

impl<H: Handler> Serving<H> {
    fn of(peer: &Rc<Peer>, handler: &Rc<H>) -> Self {
        let (peer, handler) = (peer.clone(), handler.clone());
        Self { peer, handler }
    }
}

impl<H: Handler> Service<Request<hyper::body::Incoming>> for Serving<H> {
    type Response = Response<Replying<H::Body>>;
    type Error = Infallible;
    /// Boxed: hyper would reserve space for it in every connection, even without a request.
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn call(&self, request: Request<hyper::body::Incoming>) -> Self::Future {
        let connection = &self.peer.connection;
        let (peer, framed) = match connection.is_http2() {
            true => (Rc::new(self.peer.of_stream()), Ok(())),
            false => (self.peer.clone(), connection.next_request()),
        };
        let request = request.map(|body| Incoming::new(body, connection));
        let checked = framed.and_then(|()| check(&request));
        let in_service = InService::begin(peer.clone());
        let handler = self.handler.clone();
        // The handler's future is created inside. Passed in, it would be stored twice and moved.
        Box::pin(async move {
            let mut request = request;
            let checked = match checked {
                Ok(()) => come_empty(&mut request, &peer).await,
                refused => refused,
            };
            let mut reply = match checked {
                Ok(()) => handler.handle(request, peer).await.map(Answer::Handler),
                Err(rejection) => {
                    add_one(&peer.thread.server.counters.protocol_errors);
                    handler.rejected(&request, &peer, rejection.status);
                    rejection.into()
                }
            };
            say_close(&mut reply, &in_service.peer().connection, checked.is_err());
            let mark = reply.extensions_mut().remove::<Dscp>();
            begin_reply(&in_service, mark.unwrap_or_default()).await;
            Ok(reply.map(|body| Replying { body, in_service }))
        })
    }
}

/// Waits for the end of an HTTP/2 request that declares no content but has not ended. If content follows, the request
/// is malformed and its stream is reset (RFC 9113, section 8.1.1).
async fn come_empty(request: &mut Request<Incoming>, peer: &Peer) -> Result<(), Rejection> {
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
                reason: "a request that says that it has no content has some",
            });
        }
    }
    peer.reading(false);
    Ok(())
}

/// Adds `Connection: close` if the request's body was not read completely or the request was rejected. The bytes that
/// follow are then not the next request (RFC 9112, section 9.6).
fn say_close<B>(reply: &mut Response<B>, connection: &Connection, is_refusal: bool) {
    if !connection.is_http2() && (is_refusal || connection.has_body_left()) {
        let close = HeaderValue::from_static("close");
        reply.headers_mut().insert(CONNECTION, close);
    }
}

/// Ready when the server drains. The drain wakes every connection.
async fn draining(thread: &Thread) {
    poll_fn(|_| match thread.draining.get() {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

/// Runs the streams of an HTTP/2 connection on the thread that accepted it.
#[derive(Clone, Copy)]
struct OnThisThread;

impl<F: Future<Output: 'static> + 'static> hyper::rt::Executor<F> for OnThisThread {
    fn execute(&self, stream: F) {
        tokio::task::spawn_local(stream);
    }
}
