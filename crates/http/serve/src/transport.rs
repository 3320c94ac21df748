//! The transport below hyper: a stream that reports its events to the connection.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::ConnectionState;
use crate::framing::{Cause, Frames, RequestFraming};
use crate::peer::Peer;
use crate::stream::Stream;
use crate::thread::ServerThread;

/// Maximum bytes held until the following bytes are known: a frame's header, and the start of its block.
const MAX_HELD: usize = 64;

/// A connection's byte stream with checks and reports.
pub(crate) struct Transport {
    /// Data read earlier, returned first.
    pub(crate) ahead: Bytes,
    pub(crate) stream: Stream,
    pub(crate) connection: Rc<ConnectionState>,
    pub(crate) thread: Rc<ServerThread>,
    filter: InputFilter,
}

/// Validation of received data before hyper reads it.
enum InputFilter {
    /// HTTP/1. Nothing is read after a rejection.
    Http1(RequestFraming, Option<Cause>),
    /// HTTP/2, with bytes held until the following bytes are known.
    Http2(Box<Frames>, Vec<u8>),
    /// Another protocol after HTTP/1.
    Off,
}

impl Transport {
    pub(crate) fn new(stream: Stream, peer: &Peer, is_http2: bool) -> Self {
        Self {
            ahead: Bytes::new(),
            stream,
            connection: peer.connection.clone(),
            thread: peer.thread.clone(),
            filter: match is_http2 {
                true => InputFilter::Http2(Box::default(), Vec::new()),
                false => InputFilter::Http1(RequestFraming::default(), None),
            },
        }
    }

    /// Passes further data unchecked, after a switch of protocol. Fails if data has been rejected, because bytes are
    /// missing then.
    pub(crate) fn stop_checks(&mut self) -> Result<(), Cause> {
        if let InputFilter::Http1(_, Some(cause)) = &self.filter {
            return Err(*cause);
        }
        debug_assert!(matches!(self.filter, InputFilter::Http1(..)));
        self.filter = InputFilter::Off;
        Ok(())
    }

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
        match &mut self.filter {
            InputFilter::Off => Pin::new(&mut self.stream).poll_read(cx, buf),
            InputFilter::Http1(_, Some(cause)) => reject(*cause),
            InputFilter::Http1(framing, rejection) => {
                ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
                let Err(error) = framing.feed(&buf.filled()[before..]) else {
                    return Poll::Ready(Ok(()));
                };
                *rejection = Some(error.cause);
                if error.cause.is_of_head() {
                    self.connection.reject(framing.heads(), error.cause.into());
                }
                buf.set_filled(before + error.accepted);
                match error.accepted {
                    0 => reject(error.cause),
                    _ => Poll::Ready(Ok(())),
                }
            }
            InputFilter::Http2(frames, held) => loop {
                ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
                let length = buf.filled().len() - before;
                if length > 0 && held.is_empty() {
                    let admitted = frames.feed(&mut buf.filled_mut()[before..]);
                    held.extend_from_slice(&buf.filled()[before + admitted..]);
                    buf.set_filled(before + admitted);
                    debug_assert!(held.len() <= MAX_HELD, "{} bytes are held", held.len());
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
                    debug_assert!(held.len() <= MAX_HELD, "{} bytes are held", held.len());
                    if admitted.is_empty() {
                        continue;
                    }
                    buf.put_slice(&admitted.split_to(admitted.len().min(buf.remaining())));
                    debug_assert!(self.ahead.is_empty(), "data read earlier is returned first");
                    self.ahead = admitted;
                }
                return Poll::Ready(Ok(()));
            },
        }
    }
}

/// The result of a read after a rejection. In a body, it is an error. After a head, it stays pending, because an error
/// would overtake the reply.
fn reject(cause: Cause) -> Poll<io::Result<()>> {
    match cause.is_of_head() {
        true => Poll::Pending,
        false => Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, cause))),
    }
}

impl AsyncRead for Transport {
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

impl AsyncWrite for Transport {
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

impl Drop for Transport {
    /// Resets a connection that was ended rather than finished, so that the kernel keeps nothing of it.
    fn drop(&mut self) {
        if self.connection.closed() {
            let _ = socket2::SockRef::from(self.stream.socket())
                .set_linger(Some(std::time::Duration::ZERO));
        }
    }
}
