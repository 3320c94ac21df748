//! The transport below hyper: a stream that reports its events to the connection.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::peer::Peer;
use crate::connection::state::ConnectionState;
use crate::connection::thread::ServerThread;
use crate::framing::{Cause, Frames, RequestFraming, Resets};
use crate::socket::stream::Stream;

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
    Http2(Box<Http2Filter>, Vec<u8>),
    /// Another protocol after HTTP/1.
    Off,
}

/// The frames of both ends of a connection of HTTP/2.
#[derive(Default)]
struct Http2Filter {
    received: Frames,
    sent: Resets,
}

impl Transport {
    pub(crate) fn new(stream: Stream, peer: &Peer, is_http2: bool) -> Self {
        Self {
            ahead: Bytes::new(),
            stream,
            connection: peer.connection.clone(),
            thread: peer.thread.clone(),
            filter: if is_http2 {
                InputFilter::Http2(Box::default(), Vec::new())
            } else {
                InputFilter::Http1(RequestFraming::default(), None)
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

    /// Reports sent frames of HTTP/2 that end malformed streams.
    fn sent(&mut self, bytes: &[u8]) {
        if let InputFilter::Http2(filter, _) = &mut self.filter {
            let opened = filter.received.opened();
            let connection = &self.connection;
            filter.sent.feed(bytes, |reset| {
                connection.requests.refused_stream(reset, opened)
            });
        }
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
                    self.connection
                        .requests
                        .reject(framing.heads(), error.cause.into());
                }
                buf.set_filled(before + error.accepted);
                if error.cause == Cause::Coding {
                    hide_coding(&mut buf.filled_mut()[before..]);
                }
                match error.accepted {
                    0 => reject(error.cause),
                    _ => Poll::Ready(Ok(())),
                }
            }
            InputFilter::Http2(filter, held) => loop {
                let frames = &mut filter.received;
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

/// Renames Transfer-Encoding in a rejected head, of which nothing is served: the parser would answer codings other than
/// `chunked` itself, with 400 in place of 501.
fn hide_coding(head: &mut [u8]) {
    const NAME: &[u8] = b"transfer-encoding";
    let mut start = 0;
    while let Some(length) = memchr::memchr(b'\n', &head[start..]) {
        start += length + 1;
        let name = head[start..].get_mut(..NAME.len());
        if let Some(name) = name.filter(|name| name.eq_ignore_ascii_case(NAME)) {
            name[0] = b'x';
        }
    }
}

/// The result of a read after a rejection. In a body, it is an error. After a head, it stays pending, because an error
/// would overtake the reply.
fn reject(cause: Cause) -> Poll<io::Result<()>> {
    if cause.is_of_head() {
        Poll::Pending
    } else {
        Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, cause)))
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
        } else if self.connection.ending.holds_input_end() {
            // It is read again after the reply.
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}

impl Transport {
    /// Writes interim replies, before anything else.
    fn poll_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let connection = self.connection.clone();
        let mut bytes = connection.interim.take();
        while !bytes.is_empty() {
            let outcome = Pin::new(&mut self.stream).poll_write(cx, &bytes);
            self.wrote(bytes.len(), &outcome);
            match outcome {
                Poll::Ready(Ok(length @ 1..)) => drop(bytes.drain(..length)),
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    connection.interim.put_back(bytes);
                    return Poll::Pending;
                }
            }
        }
        connection.interim.put_back(bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.connection.interim.has_any() {
            ready!(self.poll_interim(cx))?;
        }
        let outcome = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.wrote(buf.len(), &outcome);
        if let Poll::Ready(Ok(taken)) = &outcome {
            self.sent(&buf[..*taken]);
        }
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.connection.interim.has_any() {
            ready!(self.poll_interim(cx))?;
        }
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.wrote(bufs.iter().map(|buf| buf.len()).sum(), &outcome);
        if let Poll::Ready(Ok(taken)) = outcome
            && matches!(self.filter, InputFilter::Http2(..))
        {
            let mut left = taken;
            for buf in bufs {
                let length = left.min(buf.len());
                self.sent(&buf[..length]);
                left -= length;
            }
        }
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.connection.interim.has_any() {
            ready!(self.poll_interim(cx))?;
        }
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
            self.stream.reset_at_close();
        }
    }
}
