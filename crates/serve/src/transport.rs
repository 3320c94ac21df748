//! The transport below hyper: a stream that reports its events to the connection.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::Connection;
use crate::framing::{Cause, Frames, Framing};
use crate::stream::Stream;
use crate::worker::Thread;

/// A connection's byte stream with checks and reports.
pub(crate) struct Watched {
    /// Data read earlier, returned first.
    pub(crate) ahead: Bytes,
    pub(crate) stream: Stream,
    pub(crate) connection: Rc<Connection>,
    pub(crate) thread: Rc<Thread>,
    pub(crate) reading: Reading,
}

/// Validation of received data before hyper reads it.
pub(crate) enum Reading {
    /// HTTP/1. Nothing is read after a rejection.
    Http1(Framing, Option<Cause>),
    /// HTTP/2, with bytes held until the following bytes are known.
    Http2(Box<Frames>, Vec<u8>),
}

impl Reading {
    pub(crate) fn new(http2: bool) -> Self {
        match http2 {
            true => Self::Http2(Box::default(), Vec::new()),
            false => Self::Http1(Framing::default(), None),
        }
    }
}

impl Watched {
    fn wrote(&self, offered: usize, outcome: &Poll<io::Result<usize>>) {
        let taken = match outcome {
            Poll::Ready(Ok(taken)) => *taken,
            // No data waits on a failed stream.
            Poll::Ready(Err(_)) => offered,
            Poll::Pending => 0,
        };
        self.connection
            .wrote(offered, taken, self.thread.ticks.get());
    }

    /// Reads admissible data from the stream. Zero bytes mean the end.
    fn poll_admitted(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        match &mut self.reading {
            Reading::Http1(_, Some(cause)) => refuse(*cause),
            Reading::Http1(framing, refusal) => {
                ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
                let Err(refused) = framing.feed(&buf.filled()[before..]) else {
                    return Poll::Ready(Ok(()));
                };
                *refusal = Some(refused.cause);
                if refused.cause.is_of_head() {
                    self.connection
                        .reject(framing.heads(), refused.cause.into());
                }
                buf.set_filled(before + refused.accepted);
                match refused.accepted {
                    0 => refuse(refused.cause),
                    _ => Poll::Ready(Ok(())),
                }
            }
            Reading::Http2(frames, held) => loop {
                ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
                let length = buf.filled().len() - before;
                if length > 0 && held.is_empty() {
                    let admitted = frames.feed(&mut buf.filled_mut()[before..]);
                    held.extend_from_slice(&buf.filled()[before + admitted..]);
                    buf.set_filled(before + admitted);
                    if admitted == 0 {
                        continue;
                    }
                } else if !held.is_empty() {
                    held.extend_from_slice(&buf.filled()[before..]);
                    buf.set_filled(before);
                    let admitted = match length {
                        0 => held.len(),
                        _ => frames.feed(held),
                    };
                    let mut admitted: Bytes = held.drain(..admitted).collect();
                    if admitted.is_empty() {
                        continue;
                    }
                    buf.put_slice(&admitted.split_to(admitted.len().min(buf.remaining())));
                    self.ahead = admitted;
                }
                return Poll::Ready(Ok(()));
            },
        }
    }
}

/// The result of a read after a rejection. In a body, it is an error. After a head, it stays pending, because an error
/// would overtake the reply.
fn refuse(cause: Cause) -> Poll<io::Result<()>> {
    match cause.is_of_head() {
        true => Poll::Pending,
        false => Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, cause))),
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        if !self.ahead.is_empty() {
            let length = self.ahead.len().min(buf.remaining());
            buf.put_slice(&self.ahead.split_to(length));
        } else {
            ready!(self.poll_admitted(cx, buf))?;
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
    /// Resets a connection that was ended rather than finished, so that the kernel keeps nothing of it.
    fn drop(&mut self) {
        if self.connection.closed() {
            let _ = socket2::SockRef::from(self.stream.socket())
                .set_linger(Some(std::time::Duration::ZERO));
        }
    }
}
