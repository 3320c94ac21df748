//! Field blocks: joined, decoded, checked, and applied to their streams.

use super::Http2StreamClient;
use crate::streams::event::{EventSink, StreamEnd};
use crate::streams::head::{BlockKind, ReplyHead};
use crate::streams::http2::ErrorCode;
use crate::streams::http2::error::{ConnectionError, StreamFault};
use crate::streams::http2::frame::{FrameHead, flag};
use crate::streams::http2::hpack::HpackError;
use crate::streams::http2::reader::TOO_MUCH_PADDING;
use crate::streams::http2::streams::OpenStream;

impl Http2StreamClient {
    /// Handles HEADERS (RFC 9113, section 6.2).
    pub(super) fn headers(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ConnectionError> {
        if head.stream == 0 {
            return Err(ConnectionError::protocol("HEADERS without a stream"));
        }
        let fragment = fragment(head, payload)?;
        let end_stream = head.has(flag::END_STREAM);
        if head.has(flag::END_HEADERS) {
            return self.field_block(head.stream, end_stream, fragment, sink);
        }
        self.blocks.begin(head.stream, end_stream, fragment);
        Ok(())
    }

    /// Handles CONTINUATION (RFC 9113, section 6.10).
    pub(super) fn continuation(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ConnectionError> {
        let Some(block) = self.blocks.extend(head, payload)? else {
            return Ok(());
        };
        let result = self.field_block(head.stream, block.end_stream, &block.bytes, sink);
        self.blocks.recycle(block);
        result
    }

    /// Handles a whole field block.
    fn field_block(
        &mut self,
        id: u32,
        end_stream: bool,
        block: &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ConnectionError> {
        let Some(stream) = self.streams.open.get_mut(id) else {
            self.streams.check_closed(id)?;
            self.streams.counters.late_frames += 1;
            return self.decoder.skip(block).map_err(compression_error);
        };
        let kind = stream.reply.next_block();
        let decoded = match kind {
            BlockKind::Head => self.decoder.head(block, stream.token, sink),
            BlockKind::Trailers => self.decoder.trailers(block, stream.token, sink),
        };
        let head = decoded.map_err(compression_error)?;
        let head = head.map_err(StreamFault::from);
        let applied = head.and_then(|head| apply(stream, kind, end_stream, head));
        let is_interim = |head: ReplyHead| kind == BlockKind::Head && head.is_interim();
        self.streams.counters.interim += u64::from(head.is_ok_and(is_interim));
        match applied {
            Ok(()) if end_stream => self.end(id, StreamEnd::Complete, sink),
            Ok(()) => {}
            Err(fault) => self.fail(id, fault, end_stream, sink),
        }
        Ok(())
    }
}

/// The field block fragment of HEADERS: the payload without padding and priority.
fn fragment(head: FrameHead, payload: &[u8]) -> Result<&[u8], ConnectionError> {
    const CUT: ConnectionError = ConnectionError::size("HEADERS end inside their first bytes");
    let mut rest = payload;
    let mut padding = 0;
    if head.has(flag::PADDED) {
        let (length, after) = rest.split_first().ok_or(CUT)?;
        (padding, rest) = (usize::from(*length), after);
    }
    if head.has(flag::PRIORITY) {
        rest = rest.get(5..).ok_or(CUT)?;
    }
    let length = rest.len().checked_sub(padding).ok_or(TOO_MUCH_PADDING)?;
    Ok(&rest[..length])
}

fn compression_error(error: HpackError) -> ConnectionError {
    ConnectionError::new(ErrorCode::COMPRESSION_ERROR, error.reason())
}

/// Applies a valid head or valid trailers to their stream.
fn apply(
    stream: &mut OpenStream,
    kind: BlockKind,
    end_stream: bool,
    head: ReplyHead,
) -> Result<(), StreamFault> {
    if kind == BlockKind::Trailers && !end_stream {
        return Err(StreamFault::malformed("trailers do not end the stream"));
    }
    if kind == BlockKind::Head {
        if head.is_interim() && end_stream {
            return Err(StreamFault::malformed("an interim reply ends the stream"));
        }
        stream.reply.head(head)?;
    }
    if end_stream {
        stream.reply.content_complete()?;
    }
    Ok(())
}
