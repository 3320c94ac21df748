//! A byte stream over TCP, plain or with TLS, for clients and servers.

use std::io;
use std::os::fd::AsRawFd as _;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use posthaste_units::Dscp;
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_user_timeout;
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use crate::socket::handle::SocketHandle;
use crate::socket::mark::set_mark;
use crate::socket::simulated::SimulatedStream;

/// The byte stream of a connection, in both directions.
#[derive(Debug)]
pub struct Stream(StreamKind);

#[derive(Debug)]
enum StreamKind {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Simulated(Box<SimulatedStream>),
}

impl Stream {
    /// Marks all further packets: differentiated services (RFC 2474), IPv4 or IPv6. For connections with a fixed mark,
    /// because retransmissions of earlier data carry the new one, too.
    pub fn mark(&self, mark: Dscp) -> io::Result<()> {
        match self.kernel_socket() {
            Ok(socket) => set_mark(socket, socket.peer_addr()?.ip(), mark),
            Err(simulated) => simulated.socket().mark(mark),
        }
    }

    /// Limits the time for which sent data may stay unacknowledged, or unsent because the peer does not read. After it,
    /// the kernel ends the connection; its own limit is about 15 minutes (TCP_USER_TIMEOUT, tcp(7)).
    pub fn limit_unacknowledged(&self, limit: Duration) -> io::Result<()> {
        match self.kernel_socket() {
            Ok(socket) => {
                let millis = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
                set_tcp_user_timeout(socket, millis)?;
            }
            Err(simulated) => simulated.socket().limit_unacknowledged(limit),
        }
        Ok(())
    }

    /// True if the kernel has neither data nor an end to read. Bytes buffered inside TLS do not count; those of a TLS
    /// record in the kernel do.
    pub fn is_silent(&self) -> bool {
        match self.kernel_socket() {
            Ok(socket) => {
                let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
                recv(socket, &mut [0_u8], flags).err() == Some(Errno::AGAIN)
            }
            Err(simulated) => simulated.is_silent(),
        }
    }

    /// Closes at once by a reset, so that the peer sees that something is missing.
    pub fn reset(self) {
        self.reset_at_close();
    }

    /// Makes the close that follows a reset.
    pub(crate) fn reset_at_close(&self) {
        match self.kernel_socket() {
            // Without it, the connection closes orderly.
            Ok(socket) => {
                let _ = socket2::SockRef::from(socket).set_linger(Some(Duration::ZERO));
            }
            Err(simulated) => simulated.socket().reset(),
        }
    }

    /// Copies the first data without consuming it, before TLS. Returns 0 at the end.
    pub(crate) async fn peek(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            StreamKind::Plain(stream) => stream.peek(buffer).await,
            StreamKind::Tls(stream) => stream.get_ref().0.peek(buffer).await,
            StreamKind::Simulated(stream) => stream.peek(buffer).await,
        }
    }

    /// Waits until there is data or an end to read.
    pub(crate) async fn readable(&mut self) -> io::Result<()> {
        match &mut self.0 {
            StreamKind::Plain(stream) => stream.readable().await,
            StreamKind::Tls(stream) => stream.get_ref().0.readable().await,
            StreamKind::Simulated(stream) => stream.peek(&mut [0]).await.map(drop),
        }
    }

    /// Reads what has arrived, also below TLS. Fails with [`io::ErrorKind::WouldBlock`] if there is nothing.
    pub(crate) fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let stream = match &mut self.0 {
            StreamKind::Plain(stream) => return stream.try_read(buffer),
            StreamKind::Tls(stream) => return stream.get_ref().0.try_read(buffer),
            StreamKind::Simulated(stream) => stream,
        };
        let mut data = ReadBuf::new(buffer);
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(stream.as_mut()).poll_read(&mut context, &mut data) {
            Poll::Ready(read) => read.map(|()| data.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// The socket for queries beside the stream.
    pub(crate) fn handle(&self) -> SocketHandle {
        match self.kernel_socket() {
            Ok(socket) => SocketHandle::Kernel(socket.as_raw_fd()),
            Err(simulated) => SocketHandle::Simulated(simulated.socket().clone()),
        }
    }

    /// Returns the socket of a connection without TLS, for its handshake. `None` for a simulated one.
    pub(crate) fn into_tcp(self) -> Option<TcpStream> {
        match self.0 {
            StreamKind::Plain(stream) => Some(stream),
            StreamKind::Tls(_) | StreamKind::Simulated(_) => None,
        }
    }

    /// The underlying socket, or the stream without one.
    fn kernel_socket(&self) -> Result<&TcpStream, &SimulatedStream> {
        match &self.0 {
            StreamKind::Plain(stream) => Ok(stream),
            StreamKind::Tls(stream) => Ok(stream.get_ref().0),
            StreamKind::Simulated(stream) => Err(stream),
        }
    }

    /// True if the TLS handshake negotiated HTTP/2 (RFC 7301).
    pub fn agreed_on_http2(&self) -> bool {
        match &self.0 {
            StreamKind::Plain(_) | StreamKind::Simulated(_) => false,
            StreamKind::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }
}

impl From<SimulatedStream> for Stream {
    fn from(stream: SimulatedStream) -> Self {
        Self(StreamKind::Simulated(Box::new(stream)))
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
            StreamKind::Simulated(stream) => Pin::new(stream.as_mut()).poll_read(cx, buf),
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
            StreamKind::Simulated(stream) => Pin::new(stream.as_mut()).poll_write(cx, buf),
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
            StreamKind::Simulated(stream) => {
                Pin::new(stream.as_mut()).poll_write_vectored(cx, bufs)
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0 {
            StreamKind::Plain(stream) => stream.is_write_vectored(),
            StreamKind::Tls(stream) => stream.is_write_vectored(),
            StreamKind::Simulated(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            StreamKind::Plain(stream) => Pin::new(stream).poll_flush(cx),
            StreamKind::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
            StreamKind::Simulated(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            StreamKind::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            StreamKind::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
            StreamKind::Simulated(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
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
            assert_eq!(
                tcp_user_timeout(stream.kernel_socket().unwrap()).unwrap(),
                20_000
            );
        });
    }
}
