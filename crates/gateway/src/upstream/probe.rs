//! A connection to an upstream that can be asked whether anything has come.
//!
//! An event loop learns of a FIN when it next waits, and until then an unused connection that the upstream has closed looks
//! open: a request that is sent on it is lost. So before a connection is used again, the kernel is asked. That is one
//! system call, and none where the event loop has been told already.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use posthaste_serve::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection's bytes.
pub(super) struct Probed {
    stream: Stream,
    heard: Rc<Heard>,
}

/// What has come on a connection, for whoever uses it: the parser holds the connection itself.
#[derive(Debug, Default)]
pub(super) struct Heard {
    probe: Cell<Probe>,
    came: Cell<bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Probe {
    #[default]
    Idle,
    /// At the next read that has nothing.
    Wanted,
    /// There was nothing.
    Silent,
}

impl Heard {
    /// Has the next read that finds nothing ask the kernel.
    pub(super) fn probe(&self) {
        self.probe.set(Probe::Wanted);
    }

    /// Whether that read has found nothing, and the kernel had nothing either.
    pub(super) fn is_silent(&self) -> bool {
        self.probe.replace(Probe::Idle) == Probe::Silent
    }

    /// Takes what has come so far for read.
    pub(super) fn forget(&self) {
        self.came.set(false);
    }

    /// Whether anything has come since.
    pub(super) fn has_come(&self) -> bool {
        self.came.get()
    }
}

impl Probed {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            heard: Rc::default(),
        }
    }

    pub(super) fn heard(&self) -> Rc<Heard> {
        self.heard.clone()
    }
}

impl AsyncRead for Probed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.heard.came.set(true);
        }
        if outcome.is_pending()
            && self.heard.probe.get() == Probe::Wanted
            && self.stream.is_silent()
        {
            self.heard.probe.set(Probe::Silent);
        }
        outcome
    }
}

impl AsyncWrite for Probed {
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
