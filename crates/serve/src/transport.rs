//! What hyper reads from and writes to: a stream that tells its connection what happens.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::Connection;
use crate::stream::Stream;
use crate::worker::Thread;

/// A connection's bytes, watched.
pub(crate) struct Watched {
    /// What was read before and belongs in front.
    pub(crate) ahead: Bytes,
    pub(crate) stream: Stream,
    pub(crate) connection: Rc<Connection>,
    pub(crate) thread: Rc<Thread>,
}

impl Watched {
    fn wrote(&self, offered: usize, outcome: &Poll<io::Result<usize>>) {
        let taken = match outcome {
            Poll::Ready(Ok(taken)) => *taken,
            // Nobody waits for a stream that has failed.
            Poll::Ready(Err(_)) => offered,
            Poll::Pending => 0,
        };
        self.connection
            .wrote(offered, taken, self.thread.ticks.get());
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        if self.ahead.is_empty() {
            ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        } else {
            let length = self.ahead.len().min(buf.remaining());
            buf.put_slice(&self.ahead.split_to(length));
        }
        if buf.filled().len() > before {
            self.connection.received(self.thread.ticks.get());
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.wrote(buf.len(), &outcome);
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.wrote(bufs.iter().map(|buf| buf.len()).sum(), &outcome);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Drop for Watched {
    /// A connection that was ended rather than finished is reset: the kernel keeps nothing of it.
    fn drop(&mut self) {
        if self.connection.closed() {
            let _ = socket2::SockRef::from(self.stream.socket())
                .set_linger(Some(std::time::Duration::ZERO));
        }
    }
}
