//! Switches of protocol: a connection (RFC 9110, section 7.8) or an HTTP/2 stream (RFC 8441) becomes a byte stream.
//!
//! A handler leaves a task at the [`Peer`] with [`Peer::switch`] and replies: with 101 over HTTP/1.1, with a status of
//! success to the extended CONNECT of HTTP/2. After the reply head, the task gets the byte stream. [`settle`] replaces
//! replies without a task, because a client would take the bytes that follow for those of the other protocol.

use std::any::Any;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::check::Rejection;
use crate::in_service::InService;
use crate::peer::Peer;
use crate::reply_body::BodySource;
use crate::switch::{SwitchState, SwitchTask, SwitchedIo, SwitchedStream};
use crate::thread::ServerThread;
use crate::timer::ConnectionPhase;
use crate::transport::Transport;

impl Peer {
    /// Offers a task for the time after the reply. The reply has to be 101, or a success after an extended CONNECT.
    pub fn switch(&self, task: SwitchTask) {
        self.switch.set(SwitchState::Offered(task));
    }

    /// True if the server is stopping: a switch would be refused.
    pub fn is_draining(&self) -> bool {
        self.thread.is_draining.get()
    }

    /// True if the reply that switches has been sent or is on its way.
    pub(crate) fn has_switched(&self) -> bool {
        let state = self.switch.take();
        let has_switched = matches!(state, SwitchState::Accepted(_));
        self.switch.set(state);
        has_switched
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
    if !switches {
        return;
    }
    let is_possible = !peer.connection.is_http2() || stream.is_some();
    match peer.switch.take() {
        SwitchState::Offered(task) if is_possible && !peer.is_draining() => match stream {
            Some(stream) => run_stream(stream, task, peer),
            None => peer.switch.set(SwitchState::Accepted(task)),
        },
        SwitchState::Offered(_) if is_possible => {
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

/// Runs a task on a stream of HTTP/2, as a request in service without a time limit.
fn run_stream(stream: OnUpgrade, task: SwitchTask, peer: &Peer) {
    // A timer of its own: that of the request ends with its reply.
    let in_service = InService::begin(Rc::new(peer.of_stream()));
    in_service.enter(ConnectionPhase::Tunnel);
    let thread = peer.thread.clone();
    tokio::task::spawn_local(async move {
        // An error means that the client has cancelled the request.
        if let Ok(stream) = stream.await {
            let stream = TokioIo::new(stream);
            let stream = SwitchedStream(Box::new(Http2Stream { stream, thread }));
            drop(task(stream).await);
        }
        drop(in_service);
    });
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
        self.connection.end();
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A stream of HTTP/2 after an extended CONNECT.
struct Http2Stream {
    stream: TokioIo<Upgraded>,
    thread: Rc<ServerThread>,
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
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
