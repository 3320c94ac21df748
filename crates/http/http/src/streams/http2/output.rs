//! Frames to be sent. All frames of a turn leave in one write.

use super::ErrorCode;
use super::frame::{FrameHead, HEAD_LENGTH, flag, kind};

/// Memory that an empty output keeps, in bytes.
const KEPT: usize = 64 << 10;

/// Bytes that wait for the socket.
#[derive(Debug, Default)]
pub(super) struct OutputBuffer {
    bytes: Vec<u8>,
    sent: usize,
}

impl OutputBuffer {
    /// Bytes that are not sent yet.
    pub(super) fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Removes the first `count` bytes.
    pub(super) fn advance(&mut self, count: usize) {
        debug_assert!(
            count <= self.unsent().len(),
            "no more is sent than there is"
        );
        self.sent = (self.sent + count).min(self.bytes.len());
        if self.sent == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT);
            self.sent = 0;
        } else if self.sent > KEPT && self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Appends bytes that are no frame: the preface.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a frame.
    pub(super) fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let head = FrameHead {
            length: u32::try_from(payload.len()).expect("a payload is within a frame limit"),
            kind,
            flags,
            stream,
        };
        self.bytes.extend_from_slice(&head.bytes());
        self.bytes.extend_from_slice(payload);
    }

    /// Appends the field block that `encode` writes, in frames of at most `limit` bytes of payload.
    pub(super) fn field_block(
        &mut self,
        stream: u32,
        end_stream: bool,
        limit: usize,
        encode: impl FnOnce(&mut Vec<u8>),
    ) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; HEAD_LENGTH]);
        encode(&mut self.bytes);
        let length = self.bytes.len() - start - HEAD_LENGTH;
        let flags = if end_stream { flag::END_STREAM } else { 0 };
        let mut head = FrameHead {
            length: length.min(limit) as u32,
            kind: kind::HEADERS,
            flags: flags | flag::END_HEADERS,
            stream,
        };
        if length > limit {
            head.flags = flags;
            let rest = self.bytes.split_off(start + HEAD_LENGTH + limit);
            self.continuations(stream, limit, &rest);
        }
        self.bytes[start..start + HEAD_LENGTH].copy_from_slice(&head.bytes());
    }

    fn continuations(&mut self, stream: u32, limit: usize, rest: &[u8]) {
        let mut parts = rest.chunks(limit).peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            let flags = if is_last { flag::END_HEADERS } else { 0 };
            self.frame(kind::CONTINUATION, flags, stream, part);
        }
    }

    /// Appends RST_STREAM.
    pub(super) fn reset(&mut self, stream: u32, code: ErrorCode) {
        self.frame(kind::RST_STREAM, 0, stream, &code.0.to_be_bytes());
    }

    /// Appends WINDOW_UPDATE.
    pub(super) fn window_update(&mut self, stream: u32, increment: u32) {
        debug_assert!(increment > 0, "an increment of 0 is an error");
        self.frame(kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes());
    }

    /// Appends GOAWAY. The last stream is 0, because the server opens none.
    pub(super) fn goaway(&mut self, code: ErrorCode, debug: &[u8]) {
        let mut payload = Vec::with_capacity(8 + debug.len());
        payload.extend_from_slice(&0u32.to_be_bytes());
        payload.extend_from_slice(&code.0.to_be_bytes());
        payload.extend_from_slice(debug);
        self.frame(kind::GOAWAY, 0, 0, &payload);
    }
}
