//! A connection to an upstream that can be probed for received data.
//!
//! An event loop learns of a FIN only at its next wait. Until then a closed connection looks open, and a request sent
//! on it is lost. So the kernel is queried before a connection is reused. This costs one system call, or none if the
//! event loop already knows.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use posthaste_serve::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::early_hints::HintScan;

/// Maximum number of bytes before the head of a reply is complete. More than the longest head and one buffer.
const MOST_BEFORE_HEAD: usize = 256 << 10;

/// The byte stream of a connection.
pub(super) struct ProbedStream {
    stream: Stream,
    received: Rc<ReceiveState>,
}

/// Receive state of a connection, shared with its user because the parser owns the connection.
#[derive(Debug, Default)]
pub(super) struct ReceiveState {
    probe: Cell<Probe>,
    /// Bytes received since the last request.
    received: Cell<usize>,
    /// The head of its reply has not come.
    awaits_head: Cell<bool>,
    /// The upstream takes no more data.
    is_deaf: Cell<bool>,
    pub(super) hints: HintScan,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Probe {
    #[default]
    Idle,
    /// At the next read without data.
    Wanted,
    /// There was no data.
    Silent,
}

impl ReceiveState {
    /// Requests a query of the kernel at the next read without data.
    pub(super) fn probe(&self) {
        self.probe.set(Probe::Wanted);
    }

    /// True if the query found neither data nor a close. Resets the state.
    pub(super) fn is_silent(&self) -> bool {
        self.probe.replace(Probe::Idle) == Probe::Silent
    }

    /// A request is sent.
    pub(super) fn begin_request(&self) {
        self.received.set(0);
        self.awaits_head.set(true);
        self.hints.begin();
    }

    /// The head of the reply has come.
    pub(super) fn end_head(&self) {
        self.awaits_head.set(false);
    }

    /// True if the upstream has closed its side for reading, so that the rest of a request was discarded.
    pub(super) fn is_deaf(&self) -> bool {
        self.is_deaf.get()
    }

    /// True if data has been received since the last request.
    pub(super) fn has_received(&self) -> bool {
        self.received.get() > 0
    }

    /// Counts bytes. Fails if too many of them came before the head of the reply: they are interim replies (1xx), and
    /// the parser skips any number of them.
    fn count(&self, bytes: &[u8]) -> io::Result<()> {
        let received = self.received.get() + bytes.len();
        self.received.set(received);
        if self.awaits_head.get() {
            if received > MOST_BEFORE_HEAD {
                return Err(io::Error::other("too many interim replies (1xx)"));
            }
            self.hints.feed(bytes);
        }
        Ok(())
    }
}

impl ProbedStream {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            received: Rc::default(),
        }
    }

    pub(super) fn into_stream(self) -> Stream {
        self.stream
    }

    pub(super) fn received(&self) -> Rc<ReceiveState> {
        self.received.clone()
    }
}

/// Writes are discarded once the upstream takes no more. It may have replied first, for example with 401 or 413, and
/// closed with the rest of the request unread: the parser would report the failed write and never read the reply.
impl ProbedStream {
    fn write(
        &mut self,
        length: usize,
        write: impl FnOnce(Pin<&mut Stream>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if self.received.is_deaf() {
            return Poll::Ready(Ok(length));
        }
        match write(Pin::new(&mut self.stream)) {
            Poll::Ready(Err(error)) if is_closed(&error) => {
                self.received.is_deaf.set(true);
                Poll::Ready(Ok(length))
            }
            outcome => outcome,
        }
    }
}

fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset
    )
}

impl AsyncRead for ProbedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buf);
        let bytes = &buf.filled()[before..];
        if !bytes.is_empty() {
            self.received.count(bytes)?;
        }
        if outcome.is_pending()
            && self.received.probe.get() == Probe::Wanted
            && self.stream.is_silent()
        {
            self.received.probe.set(Probe::Silent);
        }
        outcome
    }
}

impl AsyncWrite for ProbedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(buf.len(), |stream| stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = bufs.iter().map(|buf| buf.len()).sum();
        self.write(length, |stream| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.received.is_deaf() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
