//! Opening of streams, and bodies of requests under flow control.

use super::Http2StreamClient;
use crate::streams::http2::frame::StreamId;
use crate::streams::http2::streams::OpenStream;
use crate::streams::request::{OpenError, StreamRequest};

impl Http2StreamClient {
    /// Opens a stream for a request. `token` returns with each event of the stream.
    pub fn open(&mut self, token: u32, request: &StreamRequest<'_>) -> Result<StreamId, OpenError> {
        self.check_open()?;
        request.check()?;
        let stream = OpenStream::new(token, request, self.sender.stream_window());
        let id = self.streams.add(stream);
        self.sender.head(id, request);
        Ok(StreamId(id))
    }

    /// Sends the next bytes of a request's body, as far as the windows of the server and the output permit. `is_last`
    /// states that the body ends after `bytes`.
    ///
    /// Returns the number of bytes taken. The caller keeps the others until [`Self::next_writable`] returns the
    /// stream. Returns 0 if the stream or the connection has ended.
    pub fn send_body(&mut self, stream: StreamId, bytes: &[u8], is_last: bool) -> usize {
        if self.state.has_failed() {
            return 0;
        }
        self.streams
            .send_body(stream.0, &mut self.sender, bytes, is_last)
    }

    /// The next stream that takes more of its body, with its token. Each stream is returned once after a call of
    /// [`Self::send_body`] that left bytes over.
    ///
    /// Windows open in [`Self::receive`], and the output gets free in [`Self::sent`].
    pub fn next_writable(&mut self) -> Option<(StreamId, u32)> {
        if self.state.has_failed() || self.sender.is_stopped() || self.sender.is_full() {
            return None;
        }
        self.streams.next_writable()
    }
}
