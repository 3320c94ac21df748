//! Field blocks: joined, decoded, checked, and applied to their streams.

use super::Client;
use super::receive::INTERRUPTED;
use crate::streams::event::{EventSink, StreamEnd};
use crate::streams::head::{BlockKind, ReplyHead};
use crate::streams::http2::ErrorCode;
use crate::streams::http2::error::{ConnectionError, StreamFault};
use crate::streams::http2::frame::{FrameHead, flag};
use crate::streams::http2::hpack::HpackError;
use crate::streams::http2::reader::TOO_MUCH_PADDING;
use crate::streams::http2::streams::OpenStream;

/// Maximum length of an encoded field block, in bytes.
const BLOCK_LIMIT: usize = 256 << 10;

/// Maximum number of CONTINUATION frames of a block. Full frames need 16 for [`BLOCK_LIMIT`].
const CONTINUATION_LIMIT: u32 = 128;

/// Memory that an empty buffer for blocks keeps, in bytes.
const KEPT: usize = 32 << 10;

/// A field block whose end is missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingBlock {
    stream: u32,
    end_stream: bool,
    continuations: u32,
}

impl Client {
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
        self.pending = Some(PendingBlock {
            stream: head.stream,
            end_stream,
            continuations: 0,
        });
        self.block.clear();
        self.block.extend_from_slice(fragment);
        Ok(())
    }

    /// Handles CONTINUATION (RFC 9113, section 6.10).
    pub(super) fn continuation(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ConnectionError> {
        let Some(pending) = &mut self.pending else {
            return Err(INTERRUPTED);
        };
        if head.stream != pending.stream {
            return Err(INTERRUPTED);
        }
        pending.continuations += 1;
        let length = self.block.len() + payload.len();
        if pending.continuations > CONTINUATION_LIMIT || length > BLOCK_LIMIT {
            let reason = "a field block is longer than 256 KiB or 128 CONTINUATION frames";
            return Err(ConnectionError::new(ErrorCode::ENHANCE_YOUR_CALM, reason));
        }
        self.block.extend_from_slice(payload);
        if !head.has(flag::END_HEADERS) {
            return Ok(());
        }
        let end_stream = pending.end_stream;
        self.pending = None;
        let mut block = std::mem::take(&mut self.block);
        let result = self.field_block(head.stream, end_stream, &block, sink);
        block.clear();
        block.shrink_to(KEPT);
        self.block = block;
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
        let Some(stream) = self.streams.get_mut(id) else {
            self.check_closed(id)?;
            self.counters.late_frames += 1;
            return self.decoder.skip(block).map_err(compression_error);
        };
        let kind = stream.reply.next_block();
        let head = match kind {
            BlockKind::Head => self.decoder.head(block, stream.token, sink),
            BlockKind::Trailers => self.decoder.trailers(block, stream.token, sink),
        };
        let head = head.map_err(compression_error)?;
        let head = head.map_err(StreamFault::from);
        let applied = head.and_then(|head| apply(stream, kind, end_stream, head));
        let is_interim = |head: ReplyHead| kind == BlockKind::Head && head.is_interim();
        self.counters.interim += u64::from(head.is_ok_and(is_interim));
        match applied {
            Ok(()) if end_stream => self.end(id, StreamEnd::Complete, sink),
            Ok(()) => {}
            Err(fault) => self.fail(id, fault, end_stream, sink),
        }
        Ok(())
    }

    /// Checks a frame on a stream that is not open.
    pub(super) fn check_closed(&self, id: u32) -> Result<(), ConnectionError> {
        if self.is_never_opened(id) {
            return Err(NEVER_OPENED);
        }
        if self.reset.permits_late_frames(id) {
            return Ok(());
        }
        let reason = "fields or content on a stream that the server has ended";
        Err(ConnectionError::new(ErrorCode::STREAM_CLOSED, reason))
    }

    /// True for a stream that neither end has opened.
    pub(super) fn is_never_opened(&self, id: u32) -> bool {
        id.is_multiple_of(2) || id >= self.next_id
    }
}

/// A frame on an idle stream (RFC 9113, section 5.1).
pub(super) const NEVER_OPENED: ConnectionError =
    ConnectionError::protocol("a frame on a stream that was never opened");

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
