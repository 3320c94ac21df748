//! Listeners and byte streams of a simulated network, for a server in an [`Environment`](crate::Environment).
//!
//! A stream has no kernel socket. The queries that a server makes of its sockets are methods of [`SimulatedSocket`].
//! TLS needs a kernel socket, so it is outside of a simulation.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use posthaste_units::Dscp;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::socket::tcp_info::NetworkPath;

/// A listener of a simulated network. Several event loops may accept from it.
pub trait SimulatedListener: Send + Sync {
    /// The address on which it listens. The port is the real one if 0 was requested.
    fn address(&self) -> SocketAddr;

    /// Accepts the next connection, with the address of its client. A connection that arrives wakes every waiting
    /// task.
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(SimulatedStream, SocketAddr)>>;

    /// True if a connection waits to be accepted.
    fn is_awaited(&self) -> bool;
}

/// The state of a simulated connection that a kernel would know. Each method has the answer of a network without
/// queues.
pub trait SimulatedSocket: Send + Sync {
    /// Bytes written and not acknowledged by the peer.
    fn unacknowledged(&self) -> u32 {
        0
    }

    /// Received bytes that were not read.
    fn unread(&self) -> u64 {
        0
    }

    /// Marks all further packets.
    fn mark(&self, _mark: Dscp) -> io::Result<()> {
        Ok(())
    }

    /// Limits the time for which written data may stay unacknowledged.
    fn limit_unacknowledged(&self, _limit: Duration) {}

    /// The network path, if it is known.
    fn path(&self) -> Option<NetworkPath> {
        None
    }

    /// The close that follows is a reset.
    fn reset(&self) {}
}

/// The bytes of a simulated connection.
trait ByteIo: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> ByteIo for T {}

/// The byte stream of a simulated connection, in both directions.
pub struct SimulatedStream {
    bytes: Box<dyn ByteIo>,
    socket: Arc<dyn SimulatedSocket>,
    /// Data that was peeked, read first.
    peeked: BytesMut,
    /// The last read found neither data nor an end.
    is_silent: bool,
}

/// A socket with the default answers.
struct PlainSocket;

impl SimulatedSocket for PlainSocket {}

impl SimulatedStream {
    /// A connection of `bytes`, whose kernel would know `socket`.
    pub fn new(
        bytes: impl AsyncRead + AsyncWrite + Send + Sync + Unpin + 'static,
        socket: Arc<dyn SimulatedSocket>,
    ) -> Self {
        Self {
            bytes: Box::new(bytes),
            socket,
            peeked: BytesMut::new(),
            is_silent: false,
        }
    }

    /// A connection of `bytes` through a network without queues.
    pub fn plain(bytes: impl AsyncRead + AsyncWrite + Send + Sync + Unpin + 'static) -> Self {
        Self::new(bytes, Arc::new(PlainSocket))
    }

    pub(crate) fn socket(&self) -> &Arc<dyn SimulatedSocket> {
        &self.socket
    }

    /// True if there is neither data nor an end to read, as far as the last read knows.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent && self.peeked.is_empty() && self.socket.unread() == 0
    }

    /// Waits for data, and copies it without consuming it. Returns 0 at the end.
    pub(crate) async fn peek(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.peeked.is_empty() {
            let mut data = ReadBuf::new(buffer);
            poll_fn(|cx| self.poll_bytes(cx, &mut data)).await?;
            let length = data.filled().len();
            self.peeked.extend_from_slice(&buffer[..length]);
            return Ok(length);
        }
        let length = self.peeked.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.peeked[..length]);
        Ok(length)
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.bytes).poll_read(cx, buf);
        self.is_silent = outcome.is_pending();
        outcome
    }
}

impl fmt::Debug for SimulatedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedStream").finish_non_exhaustive()
    }
}

impl AsyncRead for SimulatedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.peeked.is_empty() {
            return self.poll_bytes(cx, buf);
        }
        let length = self.peeked.len().min(buf.remaining());
        buf.put_slice(&self.peeked[..length]);
        self.peeked.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SimulatedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.bytes).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.bytes).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.bytes.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_shutdown(cx)
    }
}
