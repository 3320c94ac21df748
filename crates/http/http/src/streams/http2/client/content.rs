//! Content of replies: windows, length, and the end of the stream.

use super::Http2StreamClient;
use crate::streams::event::{EventSink, StreamEnd};
use crate::streams::http2::ErrorCode;
use crate::streams::http2::block_assembly::INTERRUPTED;
use crate::streams::http2::error::{ConnectionError, StreamFault};
use crate::streams::http2::reader::DataPiece;
use crate::streams::http2::streams::OpenStream;

impl Http2StreamClient {
    /// Handles a part of a DATA frame (RFC 9113, section 6.1).
    pub(super) fn data(
        &mut self,
        piece: &DataPiece<'_>,
        sink: &mut impl EventSink,
    ) -> Result<(), ConnectionError> {
        if !self.sender.has_settings() {
            return Err(ConnectionError::protocol("the first frame is not SETTINGS"));
        }
        if self.blocks.is_pending() {
            return Err(INTERRUPTED);
        }
        if let Some(length) = piece.frame {
            self.take_from_window(length)?;
        }
        let Some(stream) = self.streams.open.get_mut(piece.stream) else {
            if piece.frame.is_some() {
                self.streams.check_closed(piece.stream)?;
                self.streams.counters.late_frames += 1;
            }
            return Ok(());
        };
        let begun = begin(stream, piece);
        let (content, taken) = match begun {
            Ok(_) => take(stream, piece),
            Err(fault) => (&[][..], Err(fault)),
        };
        // Permitted content is passed on before a fault, so that cuts between reads change nothing.
        if !content.is_empty() {
            sink.body(stream.token, content);
        }
        if let Err(fault) = taken {
            self.fail(piece.stream, fault, piece.has_end, sink);
            return Ok(());
        }
        self.streams.counters.windows_exhausted += u64::from(begun == Ok(true));
        if piece.end_stream {
            self.end(piece.stream, StreamEnd::Complete, sink);
        } else if let Some(increment) = stream.receive.grant() {
            self.sender.output.window_update(piece.stream, increment);
        }
        Ok(())
    }

    /// Subtracts a frame from the window of the connection, and grants more. Frames of closed streams count as well.
    fn take_from_window(&mut self, length: u32) -> Result<(), ConnectionError> {
        let Ok(exhausted) = self.window.receive(length) else {
            let reason = "more content than the window of the connection";
            return Err(ConnectionError::new(ErrorCode::FLOW_CONTROL_ERROR, reason));
        };
        self.streams.counters.windows_exhausted += u64::from(exhausted);
        if let Some(increment) = self.window.grant() {
            self.sender.output.window_update(0, increment);
        }
        Ok(())
    }
}

/// Checks the beginning of a frame. Returns true if the frame used up the window of the stream.
fn begin(stream: &mut OpenStream, piece: &DataPiece<'_>) -> Result<bool, StreamFault> {
    let Some(length) = piece.frame else {
        return Ok(false);
    };
    if !stream.reply.has_head() {
        return Err(StreamFault::malformed(
            "content before the head of the reply",
        ));
    }
    stream.receive.receive(length).map_err(|_| {
        let reason = "more content than the window of the stream";
        StreamFault::new(ErrorCode::FLOW_CONTROL_ERROR, reason)
    })
}

/// Takes the permitted part of a piece of content, and checks its length.
fn take<'a>(stream: &mut OpenStream, piece: &DataPiece<'a>) -> (&'a [u8], Result<(), StreamFault>) {
    let (content, result) = stream.reply.content(piece.content);
    let result = match result {
        Ok(()) if piece.end_stream => stream.reply.content_complete(),
        result => result,
    };
    (content, result.map_err(StreamFault::from))
}
