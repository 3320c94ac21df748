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

/// The byte stream of a connection.
pub(super) struct ProbedStream {
    stream: Stream,
    received: Rc<ReceiveState>,
}

/// Receive state of a connection, shared with its user because the parser owns the connection.
#[derive(Debug, Default)]
pub(super) struct ReceiveState {
    probe: Cell<Probe>,
    has_received: Cell<bool>,
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

    /// Resets the record of received data.
    pub(super) fn forget(&self) {
        self.has_received.set(false);
    }

    /// True if data has been received since the last reset.
    pub(super) fn has_received(&self) -> bool {
        self.has_received.get()
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

impl AsyncRead for ProbedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.received.has_received.set(true);
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
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
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
