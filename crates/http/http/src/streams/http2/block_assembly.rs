//! Field blocks of several frames: the parts until the last one has arrived.

use super::ErrorCode;
use super::error::ConnectionError;
use super::frame::{FrameHead, flag};

/// Maximum length of an encoded field block, in bytes.
const BLOCK_LIMIT: usize = 256 << 10;

/// Maximum number of CONTINUATION frames of a block. Full frames need 16 for [`BLOCK_LIMIT`].
const CONTINUATION_LIMIT: u32 = 128;

/// Memory that an empty buffer for blocks keeps, in bytes.
const KEPT: usize = 32 << 10;

/// Anything but CONTINUATION inside a field block, or CONTINUATION outside (RFC 9113, section 6.10).
pub(super) const INTERRUPTED: ConnectionError =
    ConnectionError::protocol("a field block is interrupted, or continued without a beginning");

/// A complete field block.
#[derive(Debug)]
pub(super) struct FieldBlock {
    pub(super) end_stream: bool,
    pub(super) bytes: Vec<u8>,
}

/// A field block whose end is missing.
#[derive(Clone, Copy, Debug)]
struct PendingBlock {
    stream: u32,
    end_stream: bool,
    continuations: u32,
}

/// The field block that CONTINUATION frames continue.
#[derive(Debug, Default)]
pub(super) struct BlockAssembly {
    pending: Option<PendingBlock>,
    /// Bytes of the pending block.
    bytes: Vec<u8>,
}

impl BlockAssembly {
    /// True if the end of a block is missing.
    pub(super) const fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Takes the first part of a block.
    pub(super) fn begin(&mut self, stream: u32, end_stream: bool, fragment: &[u8]) {
        self.pending = Some(PendingBlock {
            stream,
            end_stream,
            continuations: 0,
        });
        self.bytes.clear();
        self.bytes.extend_from_slice(fragment);
    }

    /// Takes a CONTINUATION frame (RFC 9113, section 6.10). Returns the block if it is complete.
    pub(super) fn extend(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<Option<FieldBlock>, ConnectionError> {
        let Some(pending) = &mut self.pending else {
            return Err(INTERRUPTED);
        };
        if head.stream != pending.stream {
            return Err(INTERRUPTED);
        }
        pending.continuations += 1;
        let length = self.bytes.len() + payload.len();
        if pending.continuations > CONTINUATION_LIMIT || length > BLOCK_LIMIT {
            let reason = "a field block is longer than 256 KiB or 128 CONTINUATION frames";
            return Err(ConnectionError::new(ErrorCode::ENHANCE_YOUR_CALM, reason));
        }
        self.bytes.extend_from_slice(payload);
        if !head.has(flag::END_HEADERS) {
            return Ok(None);
        }
        let end_stream = pending.end_stream;
        self.pending = None;
        let bytes = std::mem::take(&mut self.bytes);
        Ok(Some(FieldBlock { end_stream, bytes }))
    }

    /// Keeps the memory of a block for the next one.
    pub(super) fn recycle(&mut self, block: FieldBlock) {
        self.bytes = block.bytes;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
    }
}
