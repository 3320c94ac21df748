//! One connection: hyper's HTTP/1.1 over a socket that knows which phase it is in.
//!
//! The phase and the tick at which it began are two cells; the thread's sweep reads them. Nothing is
//! armed or disarmed per request, which is why this is used and not hyper's own timer.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::counters::add_one;
use crate::server::Handler;
use crate::worker::{Thread, in_ticks};

/// The header of a request, and the read buffer, at most.
const MAX_HEAD: usize = 64 << 10;

/// Who sent a request, and the connection it came on.
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// The connection's number on this thread, from 0.
    pub number: u64,
    /// For the handler to keep something with the connection; 0 at first.
    pub note: Cell<u64>,
    pub(crate) connection: Rc<Connection>,
    pub(crate) thread: Rc<Thread>,
}

impl Peer {
    /// Starts or ends the time in which a request's body must arrive.
    pub(crate) fn reading(&self, reading: bool) {
        self.connection
            .enter(Phase::Service { reading }, self.thread.ticks.get());
    }
}

/// What the sweep knows of a connection.
pub(crate) struct Connection {
    phase: Cell<Phase>,
    since: Cell<u32>,
    /// The tick at which the peer stopped taking what was to be written.
    blocked: Cell<Option<u32>>,
    over: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Waiting for a request.
    Idle,
    /// A request has begun and its header is not complete.
    Head,
    /// The handler has it; `reading` while it waits for the body.
    Service { reading: bool },
}

impl Connection {
    pub(crate) fn new(now: u32) -> Self {
        Self {
            phase: Cell::new(Phase::Idle),
            since: Cell::new(now),
            blocked: Cell::new(None),
            over: Cell::new(false),
            waker: RefCell::new(None),
        }
    }

    /// Ends the connection if it has been in its phase for too long.
    pub(crate) fn judge(&self, thread: &Thread) {
        if self.over.get() {
            return;
        }
        let (now, limits, counters) = (
            thread.ticks.get(),
            &thread.server.timeouts,
            &thread.server.counters,
        );
        let passed = |since: u32, limit| now.saturating_sub(since) > in_ticks(limit);
        let ended = if self
            .blocked
            .get()
            .is_some_and(|since| passed(since, limits.write))
        {
            &counters.timed_out_writing
        } else {
            match self.phase.get() {
                Phase::Idle if passed(self.since.get(), limits.idle) => &counters.timed_out_idle,
                Phase::Head if passed(self.since.get(), limits.head) => &counters.timed_out_reading,
                Phase::Service { reading: true } if passed(self.since.get(), limits.body) => {
                    &counters.timed_out_reading
                }
                _ => return,
            }
        };
        add_one(ended);
        self.end();
    }

    /// Has the connection closed at its next poll, whatever it is doing.
    pub(crate) fn end(&self) {
        self.over.set(true);
        self.wake();
    }

    /// Has the connection polled, so that it sees what has changed.
    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    fn enter(&self, phase: Phase, now: u32) {
        self.phase.set(phase);
        self.since.set(now);
    }
}

/// Serves a connection to its end.
pub(crate) async fn run<H: Handler>(stream: TcpStream, peer: Rc<Peer>, handler: Rc<H>) {
    let connection = peer.connection.clone();
    let mut served = pin!(serve(stream, peer, handler));
    poll_fn(|cx| {
        if connection.waker.borrow().is_none() {
            *connection.waker.borrow_mut() = Some(cx.waker().clone());
        }
        if connection.over.get() {
            return Poll::Ready(());
        }
        served.as_mut().poll(cx)
    })
    .await;
}

async fn serve<H: Handler>(stream: TcpStream, peer: Rc<Peer>, handler: Rc<H>) {
    let (thread, connection) = (&peer.thread, &peer.connection);
    // A connection that sends nothing costs no buffers. Peeking, since a new socket counts as readable
    // until it has been tried.
    let draining = poll_fn(|_| {
        if thread.draining.get() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    });
    let mut byte = [0];
    tokio::select! {
        biased;
        first = stream.peek(&mut byte) => if first.is_err() { return },
        () = draining => return,
    }
    let transport = match &thread.server.tls {
        None => Transport::Plain(stream),
        Some(config) => {
            connection.enter(Phase::Head, thread.ticks.get());
            match Box::pin(TlsAcceptor::from(config.clone()).accept(stream)).await {
                Ok(stream) => Transport::Tls(Box::new(stream)),
                Err(error) => {
                    tracing::debug!(%error, peer = %peer.address, "TLS handshake failed");
                    return add_one(&thread.server.counters.tls_failures);
                }
            }
        }
    };
    // In a box: until here a connection costs a few hundred bytes.
    Box::pin(speak_http(transport, peer, handler)).await;
}

async fn speak_http<H: Handler>(transport: Transport, peer: Rc<Peer>, handler: Rc<H>) {
    let (thread, connection) = (&peer.thread, &peer.connection);
    connection.enter(Phase::Idle, thread.ticks.get());
    let io = Watched {
        transport,
        connection: connection.clone(),
        thread: thread.clone(),
    };
    let service = service_fn(|request| {
        connection.enter(Phase::Service { reading: false }, thread.ticks.get());
        let reply = handler.clone().handle(request, peer.clone());
        async {
            let reply = reply.await;
            connection.enter(Phase::Idle, thread.ticks.get());
            Ok::<_, Infallible>(reply)
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .keep_alive(thread.server.keep_alive)
        .max_buf_size(MAX_HEAD)
        .half_close(false);
    let mut http = pin!(builder.serve_connection(TokioIo::new(io), service));
    let mut told = false;
    let outcome = poll_fn(|cx| {
        if thread.draining.get() && !std::mem::replace(&mut told, true) {
            http.as_mut().graceful_shutdown();
        }
        http.as_mut().poll(cx)
    })
    .await;
    if let Err(error) = outcome {
        tracing::debug!(%error, peer = %peer.address, "connection ended");
        add_one(&thread.server.counters.protocol_errors);
    }
}

enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A transport that notes what it is waiting for.
struct Watched {
    transport: Transport,
    connection: Rc<Connection>,
    thread: Rc<Thread>,
}

impl Watched {
    fn wrote(&self, offered: usize, outcome: &Poll<io::Result<usize>>) {
        match outcome {
            Poll::Ready(Ok(taken)) if *taken == offered => self.connection.blocked.set(None),
            Poll::Ready(Err(_)) => self.connection.blocked.set(None),
            _ if self.connection.blocked.get().is_none() => {
                self.connection.blocked.set(Some(self.thread.ticks.get()));
            }
            _ => {}
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let outcome = match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Transport::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
        };
        let (connection, now) = (&self.connection, self.thread.ticks.get());
        if connection.phase.get() == Phase::Idle && buf.filled().len() > before {
            connection.enter(Phase::Head, now);
        }
        outcome
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Transport::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, buf),
        };
        self.wrote(buf.len(), &outcome);
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Transport::Tls(stream) => Pin::new(stream.as_mut()).poll_write_vectored(cx, bufs),
        };
        self.wrote(bufs.iter().map(|buf| buf.len()).sum(), &outcome);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            Transport::Plain(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Transport::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Transport::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}

impl Drop for Watched {
    /// A connection that was ended rather than finished is reset: the kernel keeps nothing of it.
    fn drop(&mut self) {
        if self.connection.over.get() {
            let stream = match &self.transport {
                Transport::Plain(stream) => stream,
                Transport::Tls(stream) => stream.get_ref().0,
            };
            let _ = socket2::SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO));
        }
    }
}
