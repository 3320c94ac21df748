//! HTTP/3 (RFC 9114): a QUIC endpoint on one serving thread.
//!
//! | module | content |
//! |---|---|
//! | this one | The endpoint: settings, and the accept of connections |
//! | `closing` | Codes, and the end of a connection by a violation |
//! | `connection` | A connection: its control streams, the accept of requests, drain |
//! | `exchange` | The life of a request: read, handle, reply |
//! | `request` | A received request: its stream, and the form for handlers |
//! | `reply` | Frames of a reply |
//! | `local_runtime` | QUIC's own tasks on the serving thread |
//!
//! `quinn` has the packets, `posthaste_http::streams::http3::server` the frames. One socket belongs to one thread, the
//! first, which therefore serves all QUIC connections. A handler gets a request after its whole body was read.
//!
//! Absent: switches of protocol, marks of packets, and the PROXY protocol.

mod closing;
mod connection;
mod exchange;
mod local_runtime;
mod reply;
mod request;

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::connection::open_connection::OpenConnection;
use crate::connection::peer::Peer;
use crate::connection::state::ConnectionState;
use crate::connection::thread::ServerThread;
use crate::counters::add_one;
use crate::handler::Handler;
use crate::http3_settings::Http3;
use crate::options::{HttpServer, Timeouts};
use crate::task::spawn_task;
use local_runtime::LocalRuntime;

/// Requests of a connection at once, as hyper has it for HTTP/2.
const STREAMS: u32 = 100;

/// Unidirectional streams of a client at once: a control stream, two of QPACK, and some of unknown types.
const UNIDIRECTIONAL: u32 = 16;

/// Bytes of a connection that a client has not acknowledged. Further ones wait in the handler's body.
const SEND_WINDOW: u64 = 1 << 20;

/// Bytes of a stream, and of a connection, that may arrive before they are read.
const RECEIVE_WINDOWS: (u32, u32) = (256 << 10, 1 << 20);

/// Maximum wait for the packets that close the last connections.
const CLOSING: Duration = Duration::from_millis(100);

/// Creates the endpoint on the calling thread.
pub(crate) fn endpoint(http3: &Http3, server: &HttpServer) -> io::Result<Endpoint> {
    let tls = server.tls.as_ref().expect("checked before the start");
    let mut tls = rustls::ServerConfig::clone(&tls.config());
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = QuicServerConfig::try_from(tls).map_err(io::Error::other)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    let mut transport = transport(&server.timeouts);
    transport.enable_segmentation_offload(http3.segmentation_offload);
    if !http3.probes_size {
        transport.mtu_discovery_config(None);
    }
    config.transport_config(Arc::new(transport));
    Endpoint::new(
        EndpointConfig::default(),
        Some(config),
        http3.socket.try_clone()?,
        Arc::new(LocalRuntime),
    )
}

fn transport(limits: &Timeouts) -> TransportConfig {
    let mut transport = TransportConfig::default();
    // Keeps a stream of rare events open, and finds clients that have vanished.
    let idle = Duration::from(limits.idle).max(Duration::from_secs(1));
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS))
        .max_concurrent_uni_streams(VarInt::from_u32(UNIDIRECTIONAL))
        .stream_receive_window(VarInt::from_u32(RECEIVE_WINDOWS.0))
        .receive_window(VarInt::from_u32(RECEIVE_WINDOWS.1))
        .send_window(SEND_WINDOW)
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(IdleTimeout::try_from(idle).ok())
        .keep_alive_interval(Some(idle / 3));
    transport
}

/// The accepting part of HTTP/3.
pub(crate) struct QuicAcceptor {
    pub(crate) thread: Rc<ServerThread>,
    pub(crate) endpoint: Endpoint,
    pub(crate) slots: Option<Arc<Semaphore>>,
    pub(crate) body_limit: usize,
    pub(crate) unproved: usize,
    /// Handshakes in progress.
    pub(crate) handshakes: Rc<Cell<usize>>,
}

impl QuicAcceptor {
    /// Accepts until the endpoint is closed. Refuses connections without a slot, and while the server drains.
    pub(crate) async fn accept<H: Handler>(self, handler: Rc<H>) {
        while let Some(incoming) = self.endpoint.accept().await {
            let slot = match &self.slots {
                Some(slots) => match slots.clone().try_acquire_owned() {
                    Ok(slot) => Some(slot),
                    Err(_) => {
                        incoming.refuse();
                        continue;
                    }
                },
                None => None,
            };
            if self.thread.is_draining.get() {
                incoming.refuse();
                continue;
            }
            if self.handshakes.get() >= self.unproved && incoming.may_retry() {
                // An error would state that a retry is not possible.
                let _ = incoming.retry();
                continue;
            }
            let address = incoming.remote_address();
            let Ok(connecting) = incoming.accept() else {
                add_one(&self.thread.server.counters.tls_failures);
                continue;
            };
            let thread = &self.thread;
            let (number, now) = (thread.next_number(), thread.ticks.get());
            let connection = Rc::new(ConnectionState::without_socket(now));
            thread.open(number, &connection);
            let peer = Rc::new(Peer::new(address, true, number, connection, thread.clone()));
            let open = OpenConnection::new(peer.clone(), slot);
            let (handler, body_limit) = (handler.clone(), self.body_limit);
            let handshake = PendingHandshake::begin(&self.handshakes);
            spawn_task(async move {
                // Dropped last.
                let _open = open;
                connection::serve(connecting, handshake, peer, handler, body_limit).await;
            });
        }
    }
}

/// Waits until the last connections have closed, for a short time.
pub(crate) async fn finish(endpoint: &Endpoint) {
    endpoint.close(VarInt::from_u32(0x100), b"");
    let _ = timeout(CLOSING, endpoint.wait_idle()).await;
}

/// A handshake in progress.
pub(crate) struct PendingHandshake(Rc<Cell<usize>>);

impl PendingHandshake {
    fn begin(count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(count.clone())
    }
}

impl Drop for PendingHandshake {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
