//! Switches of protocol: a connection (RFC 9110, section 7.8) or an HTTP/2 stream (RFC 8441) becomes a byte stream.
//!
//! A handler leaves a task at the [`Peer`] with [`Peer::switch`] and replies: with 101 over HTTP/1.1, with a status of
//! success to the extended CONNECT of HTTP/2. After the reply head, the task gets the byte stream. [`settle`] replaces
//! replies without a task, because a client would take the bytes that follow for those of the other protocol.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::ext::Protocol;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::check::Rejection;
use crate::in_service::InService;
use crate::peer::Peer;
use crate::reply_body::BodySource;
use crate::thread::ServerThread;
use crate::timer::ConnectionPhase;
use crate::transport::Transport;

/// The rest of a switched connection. Returns the stream for an orderly end; otherwise the task has dropped it.
pub type SwitchTask =
    Box<dyn FnOnce(SwitchedStream) -> Pin<Box<dyn Future<Output = Option<SwitchedStream>>>>>;

/// The bytes of a client after a switch of protocol, in both directions.
///
/// Bytes that arrived together with the request are read first. The time limit of writes still applies to HTTP/1.1.
pub struct SwitchedStream {
    kind: SwitchedKind,
    thread: Rc<ServerThread>,
}

enum SwitchedKind {
    Connection(Transport),
    Stream(TokioIo<Upgraded>),
}

/// The switch of a peer's connection or stream.
#[derive(Default)]
pub(crate) enum SwitchState {
    #[default]
    None,
    /// The handler offers this task.
    Offered(SwitchTask),
    /// The reply that switches is on its way.
    Accepted(SwitchTask),
}

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

/// True for the extended CONNECT of HTTP/2 (RFC 8441, section 4).
pub(crate) fn is_extended_connect<B>(request: &Request<B>) -> bool {
    *request.method() == Method::CONNECT && request.extensions().get::<Protocol>().is_some()
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
    let switches = match (peer.connection.is_http2(), &stream) {
        (true, Some(_)) => reply.status().is_success(),
        _ => reply.status() == StatusCode::SWITCHING_PROTOCOLS,
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
        SwitchState::Offered(_) => {
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
            let kind = SwitchedKind::Stream(TokioIo::new(stream));
            let stream = SwitchedStream { kind, thread };
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
) -> Option<Transport> {
    transport.stop_checks().ok()?;
    peer.connection.begin_tunnel(peer.thread.ticks.get());
    // The box alone is kept while it runs.
    let kind = SwitchedKind::Connection(transport);
    let thread = peer.thread.clone();
    let running = task(SwitchedStream { kind, thread });
    match running.await?.kind {
        SwitchedKind::Connection(transport) => Some(transport),
        SwitchedKind::Stream(_) => None,
    }
}

impl SwitchedStream {
    /// True if the server is stopping.
    pub fn is_draining(&self) -> bool {
        self.thread.is_draining.get()
    }

    /// Closes at once, so that the client sees that something is missing: resets an HTTP/1.1 connection. A stream of
    /// HTTP/2 only ends.
    pub fn reset(self) {
        if let SwitchedKind::Connection(transport) = self.kind {
            transport.reset();
        }
    }
}

impl AsyncRead for SwitchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.kind {
            SwitchedKind::Connection(stream) => Pin::new(stream).poll_read(cx, buf),
            SwitchedKind::Stream(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for SwitchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.kind {
            SwitchedKind::Connection(stream) => Pin::new(stream).poll_write(cx, buf),
            SwitchedKind::Stream(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.kind {
            SwitchedKind::Connection(stream) => Pin::new(stream).poll_flush(cx),
            SwitchedKind::Stream(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.kind {
            SwitchedKind::Connection(stream) => Pin::new(stream).poll_shutdown(cx),
            SwitchedKind::Stream(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
