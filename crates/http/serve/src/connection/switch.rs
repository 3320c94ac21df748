//! The byte stream of a client after a switch of protocol, and the task that gets it.
//!
//! `tunnel` decides about switches and runs the tasks.

use std::any::Any;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The rest of a switched connection. Returns the stream for an orderly end; otherwise the task has dropped it.
pub type SwitchTask =
    Box<dyn FnOnce(SwitchedStream) -> Pin<Box<dyn Future<Output = Option<SwitchedStream>>>>>;

/// The bytes of a client after a switch of protocol, in both directions.
///
/// Bytes that arrived together with the request are read first. The time limit of writes still applies. It ends an
/// HTTP/1.1 connection, and fails the writes of an HTTP/2 stream with [`io::ErrorKind::TimedOut`].
pub struct SwitchedStream(pub(crate) Box<dyn SwitchedIo>);

/// The connection or stream below.
pub(crate) trait SwitchedIo: AsyncRead + AsyncWrite + Unpin {
    /// True if the server is stopping.
    fn is_draining(&self) -> bool;

    /// Closes at once.
    fn reset(self: Box<Self>);

    /// Returns the value for its owner.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// The switch of a peer's connection or stream.
#[derive(Default)]
pub(crate) enum SwitchState {
    #[default]
    None,
    /// The handler offers this task.
    Offered(SwitchTask),
    /// The handler has offered a task while the server was stopping.
    TooLate,
    /// The reply that switches is on its way.
    Accepted(SwitchTask),
}

impl SwitchedStream {
    /// True if the server is stopping.
    pub fn is_draining(&self) -> bool {
        self.0.is_draining()
    }

    /// Closes at once, so that the client sees that something is missing: resets an HTTP/1.1 connection. A stream of
    /// HTTP/2 only ends.
    pub fn reset(self) {
        self.0.reset();
    }
}

impl AsyncRead for SwitchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for SwitchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
