//! Received bytes, from the cut into frames to the stage that handles each frame.

use super::Http2StreamClient;
use crate::streams::event::EventSink;
use crate::streams::http2::block_assembly::INTERRUPTED;
use crate::streams::http2::error::ConnectionError;
use crate::streams::http2::frame::{FrameHead, flag, kind};
use crate::streams::http2::reader::{FrameError, FrameReader, ReceivedPiece};

impl Http2StreamClient {
    /// Takes bytes of the socket, and reports the events in them to `sink`.
    ///
    /// An error ends the connection: the output ends with GOAWAY, and each later call returns the same error.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ConnectionError> {
        self.state.check()?;
        let mut reader = std::mem::take(&mut self.reader);
        let result = self.receive_pieces(&mut reader, bytes, sink);
        self.reader = reader;
        debug_assert!(self.streams.add_up(), "a stream is open or has ended");
        result.inspect_err(|error| {
            let output = &mut self.sender.output;
            output.goaway(error.code, error.reason.as_bytes());
            self.state.fail(*error);
        })
    }

    fn receive_pieces(
        &mut self,
        reader: &mut FrameReader,
        mut bytes: &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ConnectionError> {
        loop {
            let (stream, result) = match reader.next(&mut bytes) {
                Ok(None) => return Ok(()),
                Ok(Some(ReceivedPiece::Frame(head, payload))) => {
                    (head.stream, self.frame(head, payload, sink))
                }
                Ok(Some(ReceivedPiece::Data(piece))) => (piece.stream, self.data(&piece, sink)),
                Err(FrameError { head, error }) => (head.stream, Err(error)),
            };
            result.map_err(|error| ConnectionError {
                token: self.streams.open.get(stream).map(|stream| stream.token),
                ..error
            })?;
        }
    }

    fn frame(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ConnectionError> {
        if !self.sender.has_settings() && (head.kind != kind::SETTINGS || head.has(flag::ACK)) {
            return Err(ConnectionError::protocol("the first frame is not SETTINGS"));
        }
        if self.blocks.is_pending() != (head.kind == kind::CONTINUATION) {
            return Err(INTERRUPTED);
        }
        match head.kind {
            kind::HEADERS => self.headers(head, payload, sink),
            kind::CONTINUATION => self.continuation(head, payload, sink),
            kind::SETTINGS => self.settings(head, payload, sink),
            kind::PING => self.pinged(head, payload),
            kind::RST_STREAM => self.stream_reset(head, payload, sink),
            kind::WINDOW_UPDATE => self.window_update(head, payload, sink),
            kind::GOAWAY => self.goaway(head, payload, sink),
            kind::PRIORITY => self.priority(head, sink),
            kind::PUSH_PROMISE => Err(ConnectionError::protocol("push, which was refused")),
            // RFC 9113, section 5.5.
            _ => Ok(()),
        }
    }
}
