//! Switches of protocol: a connection (RFC 9110, section 7.8) or an HTTP/2 stream (RFC 8441) becomes a byte stream.
//!
//! A handler leaves a task at the [`Peer`] with [`Peer::switch`] and replies: with 101 over HTTP/1.1, with a status of
//! success to the extended CONNECT of HTTP/2. After the reply head, the task gets the byte stream. [`settle`] replaces
//! replies without a task, because a client would take the bytes that follow for those of the other protocol.

use std::any::Any;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::connection::peer::Peer;
use crate::connection::state::ConnectionState;
use crate::connection::switch::{SwitchState, SwitchTask, SwitchedIo, SwitchedStream};
use crate::connection::thread::ServerThread;
use crate::connection::timer::{ConnectionPhase, PhaseTimer};
use crate::connection::transport::Transport;
use crate::counters::add_one;
use crate::exchange::reply_body::BodySource;
use crate::framing::check::Rejection;
use crate::task::spawn_task;

/// Maximum size of a write to a stream of HTTP/2. hyper copies each and keeps it until the client has space.
const MAX_WRITE: usize = 16 << 10;

impl Peer {
    /// Offers a task for the time after the reply. The reply has to be 101, or a success after an extended CONNECT. If
    /// the server is stopping already, it is replaced by 503. A stop that begins later changes nothing.
    pub fn switch(&self, task: SwitchTask) {
        self.switch.set(if self.is_draining() {
            SwitchState::TooLate
        } else {
            SwitchState::Offered(task)
        });
    }

    /// True if the server is stopping and refuses switches.
    pub fn is_draining(&self) -> bool {
        self.thread.is_draining.get()
    }

    /// True if the reply that switches has been sent or is on its way.
    pub(crate) fn has_switched(&self) -> bool {
        self.switch_is(|state| matches!(state, SwitchState::Accepted(_)))
    }

    /// True if the current reply switches, or has switched.
    pub(crate) fn is_switching(&self) -> bool {
        let switches =
            |state: &_| matches!(state, SwitchState::Offered(_) | SwitchState::Accepted(_));
        self.switch_is(switches)
    }

    fn switch_is(&self, holds: impl Fn(&SwitchState) -> bool) -> bool {
        let state = self.switch.take();
        let is_so = holds(&state);
        self.switch.set(state);
        is_so
    }

    /// Returns the task if the reply that switches has been sent.
    pub(crate) fn take_switch(&self) -> Option<SwitchTask> {
        match self.switch.take() {
            SwitchState::Accepted(task) => Some(task),
            _ => None,
        }
    }
}

/// Takes the stream that follows a CONNECT over HTTP/2. `None` for other requests.
pub(crate) fn take_stream<B>(request: &mut Request<B>) -> Option<OnUpgrade> {
    let is_connect = *request.method() == Method::CONNECT && request.version() == Version::HTTP_2;
    is_connect.then(|| hyper::upgrade::on(request))
}

/// Accepts a switch, or replaces a reply that would switch without one. `stream` follows a CONNECT over HTTP/2.
pub(crate) fn settle<B>(
    reply: &mut Response<BodySource<B>>,
    peer: &Peer,
    stream: Option<OnUpgrade>,
) {
    let switches = match &stream {
        Some(_) => reply.status().is_success(),
        None => reply.status() == StatusCode::SWITCHING_PROTOCOLS,
    };
    let offered = peer.switch.take();
    if !switches {
        return;
    }
    let is_possible = !peer.connection.is_multiplexed() || stream.is_some();
    match offered {
        SwitchState::Offered(task) if is_possible => match stream {
            Some(stream) => run_stream(stream, task, peer),
            None => peer.switch.set(SwitchState::Accepted(task)),
        },
        SwitchState::TooLate if is_possible => {
            *reply = Response::from(Rejection {
                status: StatusCode::SERVICE_UNAVAILABLE,
                reason: "the server is stopping",
            });
        }
        _ => {
            *reply = Response::from(Rejection {
                status: StatusCode::NOT_IMPLEMENTED,
                reason: "no other protocol is served here",
            });
        }
    }
}

/// Runs a task on a stream of HTTP/2.
fn run_stream(stream: OnUpgrade, task: SwitchTask, peer: &Peer) {
    let in_use = SwitchedUse::begin(peer);
    let thread = peer.thread.clone();
    spawn_task(async move {
        // An error means that the client has cancelled the request.
        if let Ok(stream) = stream.await {
            let stream = Http2Stream {
                stream: TokioIo::new(stream),
                thread,
                waits_since: None,
                timer: None,
            };
            drop(task(SwitchedStream(Box::new(stream))).await);
        }
        drop(in_use);
    });
}

/// The use of an HTTP/2 connection by a switched stream. The connection is not idle while it exists. As over HTTP/1.1,
/// it is not counted as a request in service.
struct SwitchedUse {
    connection: Rc<ConnectionState>,
    thread: Rc<ServerThread>,
    /// Another one than the request's: that ends with the reply.
    timer: Rc<PhaseTimer>,
}

impl SwitchedUse {
    fn begin(peer: &Peer) -> Self {
        let switched = Self {
            connection: peer.connection.clone(),
            thread: peer.thread.clone(),
            timer: Rc::default(),
        };
        let (timer, now) = (&switched.timer, peer.thread.ticks.get());
        let is_first = switched.connection.begin_request(timer, now);
        debug_assert!(!is_first, "the request of the switch is open");
        timer.enter(ConnectionPhase::Tunnel, now);
        switched
    }
}

impl Drop for SwitchedUse {
    fn drop(&mut self) {
        let now = self.thread.ticks.get();
        self.connection.end_request(&self.timer, now);
    }
}

/// Runs the task of an HTTP/1.1 connection after its reply. Returns the transport for an orderly end.
pub(crate) async fn run_connection(
    mut transport: Transport,
    task: SwitchTask,
    peer: &Peer,
) -> Option<Box<Transport>> {
    transport.stop_checks().ok()?;
    peer.connection.begin_tunnel(peer.thread.ticks.get());
    let running = task(SwitchedStream(Box::new(transport)));
    running.await?.0.into_any().downcast().ok()
}

impl SwitchedIo for Transport {
    fn is_draining(&self) -> bool {
        self.thread.is_draining.get()
    }

    fn reset(self: Box<Self>) {
        // Dropped as one that was ended rather than finished.
        self.connection.ending.end();
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A stream of HTTP/2 after an extended CONNECT.
struct Http2Stream {
    stream: TokioIo<Upgraded>,
    thread: Rc<ServerThread>,
    /// While a write waits: its start.
    waits_since: Option<Instant>,
    /// Reset only when it expires.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Http2Stream {
    /// Passes the outcome of a write. Fails it if it has waited for the client longer than the limit.
    fn limited<T>(
        &mut self,
        outcome: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.waits_since = None;
            return outcome;
        }
        let server = &self.thread.server;
        let limit = Duration::from(server.timeouts.write);
        let end = *self.waits_since.get_or_insert_with(Instant::now) + limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
        loop {
            ready!(timer.as_mut().poll(cx));
            if end <= Instant::now() {
                add_one(&server.counters.timed_out_writing);
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            timer.as_mut().reset(end);
        }
    }
}

impl SwitchedIo for Http2Stream {
    fn is_draining(&self) -> bool {
        self.thread.is_draining.get()
    }

    fn reset(self: Box<Self>) {}

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl AsyncRead for Http2Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Http2Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let offered = &buf[..buf.len().min(MAX_WRITE)];
        let written = Pin::new(&mut self.stream).poll_write(cx, offered);
        self.limited(written, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.limited(flushed, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.limited(ended, cx)
    }
}
