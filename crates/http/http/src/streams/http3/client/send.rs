//! Opening of streams, bodies of requests, and output for the transport.

use super::Http3StreamClient;
use crate::streams::http3::frame::StreamId;
use crate::streams::http3::output::OutputAction;
use crate::streams::http3::qpack;
use crate::streams::request::{OpenError, StreamRequest};

/// Longest field section whose memory is kept, in bytes.
const KEPT: usize = 16 << 10;

impl Http3StreamClient {
    /// Opens a stream for a request. `token` returns with each event of the stream.
    pub fn open(&mut self, token: u32, request: &StreamRequest<'_>) -> Result<StreamId, OpenError> {
        self.check_open()?;
        request.check()?;
        qpack::encode(&self.plan, request.fields, &mut self.section);
        let id = self.streams.add(token, request, &self.section);
        self.section.clear();
        self.section.shrink_to(KEPT);
        Ok(StreamId::new(id))
    }

    /// Sends the next bytes of a request's body, as far as the output permits. `is_last` states that the body ends after
    /// `bytes`.
    ///
    /// Returns the number of bytes taken. The caller keeps the others until [`Self::next_writable`] returns the
    /// stream. Returns 0 if the stream or the connection has ended, or if the server does not want the body.
    pub fn send_body(&mut self, stream: StreamId, bytes: &[u8], is_last: bool) -> usize {
        if self.state.has_failed() {
            return 0;
        }
        self.streams.send_body(stream.number(), bytes, is_last)
    }

    /// The next stream that takes more of its body, with its token. Each stream is returned once after a call of
    /// [`Self::send_body`] that left bytes over.
    ///
    /// The output gets free in [`Self::sent`].
    pub fn next_writable(&mut self) -> Option<(StreamId, u32)> {
        if self.state.has_failed() {
            return None;
        }
        self.streams.next_writable()
    }

    /// The next action for the transport.
    ///
    /// A write is returned until [`Self::sent`] or [`Self::blocked`]; other actions are returned once. `None` after
    /// an error.
    pub fn output(&mut self) -> Option<OutputAction<'_>> {
        if self.state.has_failed() {
            return None;
        }
        self.streams.output()
    }

    /// True if [`Self::output`] would return an action.
    pub fn has_output(&mut self) -> bool {
        !self.state.has_failed() && self.streams.has_output()
    }

    /// Removes the first `count` bytes of a stream's output, because the transport has accepted them. If these are all
    /// bytes of a write with `fin`, the transport has accepted the end as well.
    ///
    /// Afterwards, [`Self::room`] and [`Self::next_writable`] can have changed. Streams that have ended are ignored.
    pub fn sent(&mut self, stream: StreamId, count: usize) {
        if stream == StreamId::CONTROL {
            self.streams.order.advance_control(count);
        } else {
            self.streams.advance(stream.number(), count);
        }
    }

    /// States that the transport accepts no more bytes of a stream for now.
    pub fn blocked(&mut self, stream: StreamId) {
        if stream == StreamId::CONTROL {
            self.streams.order.block_control(true);
        } else {
            self.streams.block(stream.number());
        }
    }

    /// States that the transport accepts bytes of a blocked stream again.
    pub fn writable(&mut self, stream: StreamId) {
        if stream == StreamId::CONTROL {
            self.streams.order.block_control(false);
        } else {
            self.streams.unblock(stream.number());
        }
    }
}
