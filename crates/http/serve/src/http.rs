//! The life of a connection: PROXY protocol, wait for data, TLS, HTTP/1.1 or HTTP/2, end.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use hyper::server::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;
use tokio_rustls::TlsAcceptor;

use crate::connection::peer::Peer;
use crate::connection::switch::SwitchTask;
use crate::connection::transport::Transport;
use crate::counters::add_one;
use crate::environment::is_simulated;
use crate::exchange::tunnel::run_connection;
use crate::framing::unreadable::ConnectionEnd;
use crate::handler::Handler;
use crate::handler::service::HandlerService;
use crate::listening::stated_source::{NoHeader, stated_source};
use crate::options::MAX_FIELDS;
use crate::socket::linger::linger;
use crate::socket::stream::Stream;
use crate::tls::server::is_client_certificate_refused;

/// Maximum size of a request's header, and of the read buffer.
const MAX_HEAD: usize = 64 << 10;

/// First bytes of an HTTP/2 client with prior knowledge (RFC 9113, section 3.3). No HTTP/1.1 method begins with them.
const HTTP2_START: [u8; 4] = *b"PRI ";

/// Serves a connection until it ends or is ended.
pub(crate) async fn serve<H: Handler>(stream: Stream, peer: Rc<Peer>, handler: Rc<H>) {
    let connection = peer.connection.clone();
    let mut served = pin!(serve_to_end(stream, peer, handler));
    poll_fn(|cx| {
        connection.ending.set_waker(cx.waker());
        if connection.ending.is_over() {
            return Poll::Ready(());
        }
        served.as_mut().poll(cx)
    })
    .await;
}

/// The stages of a connection.
async fn serve_to_end<H: Handler>(mut stream: Stream, mut peer: Rc<Peer>, handler: Rc<H>) {
    let proxies = &peer.thread.server.proxy_protocol;
    if proxies.contains(peer.address.ip()) {
        match Box::pin(read_proxy_header(&mut stream, &peer)).await {
            Some(client) => peer = client,
            None => return,
        }
    }
    let Some(start) = peek_start(&mut stream, &peer).await else {
        return;
    };
    let Some((stream, is_http2)) = open_stream(stream, start, &peer).await else {
        return;
    };
    peer.connection
        .begin_http(is_http2, peer.thread.ticks.get());
    let transport = Transport::new(stream, &peer, is_http2);
    let (outcome, reason): (_, fn(&hyper::Error) -> ConnectionEnd) = if is_http2 {
        // Boxed: up to here a connection costs a few hundred bytes.
        let outcome = Box::pin(serve_http2(transport, &peer, &handler)).await;
        (outcome, ConnectionEnd::of_http2)
    } else {
        let outcome = serve_http1(transport, &peer, &handler).await;
        (outcome, ConnectionEnd::of_http1)
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, peer = %peer.address, "connection ended");
        record_end(reason(&error), &peer, &*handler);
    }
}

/// Counts the end of a connection by an error, and reports an unreadable request.
fn record_end(end: ConnectionEnd, peer: &Peer, handler: &impl Handler) {
    let counters = &peer.thread.server.counters;
    match end {
        ConnectionEnd::Unreadable(request) => {
            add_one(&counters.protocol_errors);
            handler.unreadable(&request, peer);
        }
        ConnectionEnd::Violation => drop(add_one(&counters.protocol_errors)),
        ConnectionEnd::Left => drop(add_one(&counters.left)),
        ConnectionEnd::Service => {}
    }
}

/// Reads the header of a trusted load balancer, and returns the client that it states. None at the end of the connection
/// or of the server.
async fn read_proxy_header(stream: &mut Stream, peer: &Rc<Peer>) -> Option<Rc<Peer>> {
    let (thread, connection) = (&peer.thread, &peer.connection);
    connection.begin_proxy_header(thread.ticks.get());
    let source = tokio::select! {
        biased;
        source = stated_source(stream) => source,
        () = thread.draining() => return None,
    };
    connection.end_proxy_header(thread.ticks.get());
    match source {
        Ok(Some(client)) => Some(Rc::new(peer.with_address(client))),
        Ok(None) => Some(peer.clone()),
        Err(NoHeader::Silent) => None,
        Err(error) => {
            tracing::debug!(%error, sender = %peer.address, "no header of the PROXY protocol");
            add_one(&thread.server.counters.proxy_header_errors);
            None
        }
    }
}

/// Waits for the first bytes, so that a silent connection costs no buffers. None at the end of the connection or of the
/// server. Peeks, because a new socket counts as readable until the first attempt.
async fn peek_start(stream: &mut Stream, peer: &Peer) -> Option<[u8; HTTP2_START.len()]> {
    let mut start = [0; HTTP2_START.len()];
    let length = tokio::select! {
        biased;
        length = stream.peek(&mut start) => length.unwrap_or(0),
        () = peer.thread.draining() => 0,
    };
    (length > 0).then_some(start)
}

/// Does the TLS handshake, if the connection uses TLS. Returns the stream, and true for HTTP/2.
async fn open_stream(
    stream: Stream,
    start: [u8; HTTP2_START.len()],
    peer: &Peer,
) -> Option<(Stream, bool)> {
    let (thread, connection) = (&peer.thread, &peer.connection);
    let Some(tls) = thread.server.tls.as_ref().filter(|_| peer.is_encrypted()) else {
        return Some((stream, start == HTTP2_START));
    };
    connection.begin_handshake(thread.ticks.get());
    let Some(socket) = stream.into_tcp() else {
        tracing::error!("TLS is outside of a simulation");
        return None;
    };
    match Box::pin(TlsAcceptor::from(tls.config()).accept(socket)).await {
        Ok(stream) => {
            let (_, session) = stream.get_ref();
            if let Some([own, ..]) = session.peer_certificates() {
                peer.set_certificate(own);
            }
            let stream = Stream::from(Box::new(stream));
            let is_http2 = stream.agreed_on_http2();
            Some((stream, is_http2))
        }
        Err(error) => {
            tracing::debug!(%error, peer = %peer.address, "TLS handshake failed");
            let counters = &thread.server.counters;
            add_one(if is_client_certificate_refused(&error) {
                &counters.client_certificate_failures
            } else {
                &counters.tls_failures
            });
            None
        }
    }
}

/// Serves HTTP/1.1. After some idle time, sheds the protocol state and buffers, tens of KiB, and keeps the socket: the
/// connection is then as small as before its first request.
async fn serve_http1<H: Handler>(
    mut transport: Transport,
    peer: &Rc<Peer>,
    handler: &Rc<H>,
) -> hyper::Result<()> {
    while let Some(idle) = Box::pin(serve_http1_until_idle(transport, peer, handler)).await? {
        transport = idle;
        if let Some(task) = peer.take_switch() {
            Box::pin(serve_switched(transport, task, peer)).await;
            return Ok(());
        }
        // Bytes of a next head that came with the previous request count as received.
        if transport.ahead.is_empty() {
            tokio::select! {
                biased;
                // A closed socket is readable, too.
                _ = transport.stream.readable() => {}
                () = peer.thread.draining() => {
                    let _ = transport.shutdown().await;
                    return Ok(());
                }
            }
        }
        peer.connection.keep_buffers();
    }
    Ok(())
}

/// Serves HTTP/1.1 until the connection ends, switches to another protocol, or is to shed its buffers. Returns the
/// transport in the last two cases.
async fn serve_http1_until_idle<H: Handler>(
    transport: Transport,
    peer: &Rc<Peer>,
    handler: &Rc<H>,
) -> hyper::Result<Option<Transport>> {
    let (thread, connection) = (&peer.thread, &peer.connection);
    let mut builder = http1::Builder::new();
    if thread.server.max_fields != MAX_FIELDS {
        // Set, it costs an allocation for each request.
        builder.max_headers(thread.server.max_fields);
    }
    let mut http = builder
        .keep_alive(thread.server.keep_alive)
        .max_buf_size(MAX_HEAD)
        .max_header_size(MAX_HEAD)
        .half_close(false)
        .auto_date_header(!is_simulated())
        .serve_connection(TokioIo::new(transport), HandlerService::new(peer, handler));
    let (mut is_stopped, mut sheds) = (false, false);
    let outcome = poll_fn(|cx| {
        if connection.ending.is_unanswered() {
            return Poll::Ready(Ok(()));
        }
        sheds |= !is_stopped && connection.may_shed_buffers();
        // A stop would change the reply that switches; the connection carries no further request in any case.
        let stops = sheds || (thread.is_draining.get() && !peer.is_switching());
        if stops && !std::mem::replace(&mut is_stopped, true) {
            Pin::new(&mut http).graceful_shutdown();
        }
        http.poll_without_shutdown(cx)
    })
    .await;
    let parts = http.into_parts();
    let mut transport = parts.io.into_inner();
    let switches = peer.has_switched() && !connection.is_blocked();
    if (sheds || switches) && outcome.is_ok() {
        if !parts.read_buf.is_empty() {
            // An empty one would keep its buffer.
            transport.ahead = parts.read_buf;
        }
        return Ok(Some(transport));
    }
    if !connection.ending.is_over() {
        let has_failed = outcome.is_err() || connection.ending.is_unanswered();
        close(transport, peer, has_failed).await;
    }
    outcome.map(|()| None)
}

/// Runs the task of a connection that has switched to another protocol, then closes the connection.
async fn serve_switched(transport: Transport, task: SwitchTask, peer: &Peer) {
    if let Some(transport) = run_connection(transport, task, peer).await {
        // The limits of the task have ended with it.
        peer.connection.begin_linger(peer.thread.ticks.get());
        close(*transport, peer, true).await;
    }
}

/// Closes an HTTP/1.1 connection, after reading what a peer may still be sending.
async fn close(mut transport: Transport, peer: &Peer, has_failed: bool) {
    // The peer may have gone already.
    let _ = transport.shutdown().await;
    if has_failed || peer.connection.requests.had_body() {
        peer.connection.begin_linger(peer.thread.ticks.get());
        let lingers = Box::pin(linger(&mut transport.stream));
        tokio::select! {
            biased;
            () = lingers => {}
            () = peer.thread.draining() => {}
        }
    }
}

async fn serve_http2<H: Handler>(
    transport: Transport,
    peer: &Rc<Peer>,
    handler: &Rc<H>,
) -> hyper::Result<()> {
    let mut builder = http2::Builder::new(OnThisThread);
    builder.max_header_list_size(MAX_HEAD as u32);
    builder.auto_date_header(!is_simulated());
    if peer.thread.server.switches {
        builder.enable_connect_protocol();
    }
    let service = HandlerService::new(peer, handler);
    let mut http = pin!(builder.serve_connection(TokioIo::new(transport), service));
    let mut is_stopped = false;
    poll_fn(|cx| {
        if peer.thread.is_draining.get() && !std::mem::replace(&mut is_stopped, true) {
            http.as_mut().graceful_shutdown();
        }
        let outcome = http.as_mut().poll(cx);
        for refused in peer.connection.requests.take_refused() {
            add_one(&peer.thread.server.counters.protocol_errors);
            handler.unreadable(&refused.into(), peer);
        }
        outcome
    })
    .await
}

/// Runs the streams of an HTTP/2 connection on the thread that accepted it.
#[derive(Clone, Copy)]
struct OnThisThread;

impl<F: Future<Output: 'static> + 'static> hyper::rt::Executor<F> for OnThisThread {
    fn execute(&self, stream: F) {
        tokio::task::spawn_local(stream);
    }
}
