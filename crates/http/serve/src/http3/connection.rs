//! The life of a QUIC connection: handshake, control streams, requests, drain, close.

use std::cell::{OnceCell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use posthaste_http::streams::http3::server::{ClientStreams, append_goaway, opening};
use posthaste_http::streams::http3::{ErrorCode, StreamId};
use quinn::{Connecting, Connection, ReadError, RecvStream, SendStream, VarInt};
use rustls_pki_types::CertificateDer;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::PendingHandshake;
use super::closing::{code, fail};
use super::exchange::Http3Exchange;
use super::request::PIECE;
use crate::connection::peer::Peer;
use crate::counters::add_one;
use crate::handler::Handler;

/// Maximum wait for acknowledgements of the last replies when the server stops. A client may have vanished.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Serves a connection until it ends or is ended.
pub(super) async fn serve<H: Handler>(
    connecting: Connecting,
    handshake: PendingHandshake,
    peer: Rc<Peer>,
    handler: Rc<H>,
    body_limit: usize,
) {
    let state = peer.connection.clone();
    let opened = OnceCell::new();
    let mut served = pin!(serve_to_end(
        connecting, handshake, peer, handler, body_limit, &opened
    ));
    poll_fn(|cx| {
        state.ending.set_waker(cx.waker());
        if state.ending.is_over() {
            return Poll::Ready(());
        }
        served.as_mut().poll(cx)
    })
    .await;
    // Without an effect on a connection that is closed.
    if let Some(connection) = opened.get() {
        let error = if state.is_serving() && state.ending.is_over() {
            ErrorCode::H3_INTERNAL_ERROR
        } else {
            ErrorCode::H3_NO_ERROR
        };
        connection.close(code(error), b"");
    }
}

/// The stages of a connection. `opened` gets it after the handshake.
async fn serve_to_end<H: Handler>(
    connecting: Connecting,
    handshake: PendingHandshake,
    peer: Rc<Peer>,
    handler: Rc<H>,
    body_limit: usize,
    opened: &OnceCell<Connection>,
) {
    let (thread, state) = (&peer.thread, &peer.connection);
    state.begin_handshake(thread.ticks.get());
    let connection = match connecting.await {
        Ok(connection) => connection,
        Err(error) => {
            tracing::debug!(%error, peer = %peer.address, "QUIC handshake failed");
            add_one(&thread.server.counters.tls_failures);
            return;
        }
    };
    drop(handshake);
    let connection = opened.get_or_init(|| connection).clone();
    let identity = connection.peer_identity();
    let chain = identity.and_then(|chain| chain.downcast::<Vec<CertificateDer<'static>>>().ok());
    if let Some(own) = chain.as_ref().and_then(|chain| chain.first()) {
        peer.set_certificate(own);
    }
    state.begin_http(true, thread.ticks.get());
    let serving = Serving {
        connection,
        peer,
        handler,
        body_limit,
    };
    serving.serve().await;
}

/// A connection in service.
struct Serving<H> {
    connection: Connection,
    peer: Rc<Peer>,
    handler: Rc<H>,
    body_limit: usize,
}

impl<H: Handler> Serving<H> {
    /// Serves requests until the connection ends. The end drops those that are not finished.
    async fn serve(self) {
        let Ok(mut control) = self.open_control().await else {
            return;
        };
        let streams = Rc::new(RefCell::new(ClientStreams::default()));
        let (mut requests, mut others) = (JoinSet::new(), JoinSet::new());
        let stopped = control.stopped();
        let mut stopped = pin!(stopped);
        // First stream that is not processed.
        let mut next = 0;
        let mut is_draining = false;
        loop {
            tokio::select! {
                biased;
                () = self.peer.thread.draining(), if !is_draining => {
                    is_draining = true;
                    let mut goaway = Vec::new();
                    append_goaway(StreamId::new(next), &mut goaway);
                    let _ = control.write_all(&goaway).await;
                }
                _ = requests.join_next(), if !requests.is_empty() => {}
                () = sleep(LAST_WAIT), if is_draining && !self.peer.connection.is_serving() => {
                    return;
                }
                _ = others.join_next(), if !others.is_empty() => {}
                stop = &mut stopped => {
                    if matches!(stop, Ok(Some(_))) {
                        fail(&self.connection, &self.peer, ClientStreams::control_stopped());
                    }
                    return;
                }
                accepted = self.connection.accept_bi() => match accepted {
                    Ok((send, receive)) if is_draining => reject(send, receive),
                    Ok((send, receive)) => {
                        next = next.max(u64::from(VarInt::from(receive.id())) + 4);
                        requests.spawn_local(self.exchange(send, receive).run());
                    }
                    Err(error) => return self.ended(&error),
                },
                accepted = self.connection.accept_uni() => match accepted {
                    Ok(receive) => {
                        let (connection, peer) = (self.connection.clone(), self.peer.clone());
                        others.spawn_local(read_control(receive, streams.clone(), connection, peer));
                    }
                    Err(error) => return self.ended(&error),
                },
            }
            if is_draining && requests.is_empty() {
                return;
            }
        }
    }

    /// Opens our control stream, which stays open.
    async fn open_control(&self) -> Result<SendStream, quinn::WriteError> {
        let mut control = self.connection.open_uni().await?;
        control.write_all(&opening()).await?;
        Ok(control)
    }

    fn exchange(&self, send: SendStream, receive: RecvStream) -> Http3Exchange<H> {
        Http3Exchange {
            send,
            receive,
            connection: self.connection.clone(),
            peer: self.peer.clone(),
            handler: self.handler.clone(),
            body_limit: self.body_limit,
        }
    }

    /// Counts the end of the connection by its reason.
    fn ended(&self, error: &quinn::ConnectionError) {
        use quinn::ConnectionError as E;
        let counters = &self.peer.thread.server.counters;
        match error {
            // Those that are closed here were counted before.
            E::LocallyClosed => {}
            E::ApplicationClosed(close) if close.error_code == code(ErrorCode::H3_NO_ERROR) => {}
            E::TimedOut => drop(add_one(&counters.timed_out_idle)),
            error => {
                tracing::debug!(%error, peer = %self.peer.address, "connection ended");
                add_one(&counters.protocol_errors);
            }
        }
    }
}

/// Rejects a request that came after GOAWAY.
fn reject(mut send: SendStream, mut receive: RecvStream) {
    let rejected = code(ErrorCode::H3_REQUEST_REJECTED);
    // The client may have closed both already.
    let _ = send.reset(rejected);
    let _ = receive.stop(rejected);
}

/// Reads a unidirectional stream to its end.
async fn read_control(
    mut receive: RecvStream,
    streams: Rc<RefCell<ClientStreams>>,
    connection: Connection,
    peer: Rc<Peer>,
) {
    let id = StreamId::new(VarInt::from(receive.id()).into());
    loop {
        let result = match receive.read_chunk(PIECE, true).await {
            Ok(Some(chunk)) => streams.borrow_mut().receive(id, &chunk.bytes, false),
            Ok(None) => streams.borrow_mut().receive(id, b"", true),
            Err(ReadError::Reset(_)) => streams.borrow_mut().receive_reset(id),
            Err(_) => return,
        };
        if let Err(error) = result {
            return fail(&connection, &peer, error);
        }
    }
}
