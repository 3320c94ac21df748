//! A byte stream over TCP, plain or with TLS, for clients and servers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use posthaste_units::Dscp;
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_user_timeout;
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use crate::socket_mark::set_mark;

/// The byte stream of a connection, in both directions.
#[derive(Debug)]
pub struct Stream(StreamKind);

#[derive(Debug)]
enum StreamKind {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Marks all further packets: differentiated services (RFC 2474), IPv4 or IPv6. For connections with a fixed mark,
    /// because retransmissions of earlier data carry the new one, too.
    pub fn mark(&self, mark: Dscp) -> io::Result<()> {
        let socket = self.socket();
        set_mark(socket, socket.peer_addr()?.ip(), mark)
    }

    /// Limits the time for which sent data may stay unacknowledged, or unsent because the peer does not read. After it,
    /// the kernel ends the connection; its own limit is about 15 minutes (TCP_USER_TIMEOUT, tcp(7)).
    pub fn limit_unacknowledged(&self, limit: Duration) -> io::Result<()> {
        let millis = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
        Ok(set_tcp_user_timeout(self.socket(), millis)?)
    }

    /// True if the kernel has neither data nor an end to read. Bytes buffered inside TLS do not count; those of a TLS
    /// record in the kernel do.
    pub fn is_silent(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        recv(self.socket(), &mut [0_u8], flags).err() == Some(Errno::AGAIN)
    }

    /// Closes at once by a reset, so that the peer sees that something is missing.
    pub fn reset(self) {
        // Without it, the connection closes orderly.
        let _ = socket2::SockRef::from(self.socket()).set_linger(Some(Duration::ZERO));
    }

    /// The underlying socket.
    pub(crate) fn socket(&self) -> &TcpStream {
        match &self.0 {
            StreamKind::Plain(stream) => stream,
            StreamKind::Tls(stream) => stream.get_ref().0,
        }
    }

    /// True if the TLS handshake negotiated HTTP/2 (RFC 7301).
    pub fn agreed_on_http2(&self) -> bool {
        match &self.0 {
            StreamKind::Plain(_) => false,
            StreamKind::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        Self(StreamKind::Plain(stream))
    }
}

impl<T: Into<TlsStream<TcpStream>>> From<Box<T>> for Stream {
    fn from(stream: Box<T>) -> Self {
        Self(StreamKind::Tls(Box::new((*stream).into())))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            StreamKind::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            StreamKind::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            StreamKind::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            StreamKind::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            StreamKind::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            StreamKind::Tls(stream) => Pin::new(stream.as_mut()).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0 {
            StreamKind::Plain(stream) => stream.is_write_vectored(),
            StreamKind::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            StreamKind::Plain(stream) => Pin::new(stream).poll_flush(cx),
            StreamKind::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            StreamKind::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            StreamKind::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::sockopt::tcp_user_timeout;

    use super::*;

    #[test]
    fn the_kernel_has_the_limit_for_unacknowledged_data() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let socket = TcpStream::connect(listener.local_addr().unwrap()).await;
            let stream = Stream::from(socket.unwrap());
            let limit = Duration::from_secs(20);
            stream.limit_unacknowledged(limit).unwrap();
            assert_eq!(tcp_user_timeout(stream.socket()).unwrap(), 20_000);
        });
    }
}
