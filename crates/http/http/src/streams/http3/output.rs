//! The order of what the transport has to do.
//!
//! The control stream comes first, then resets, then requests in the order in which they have output. A stream that
//! the transport blocks leaves the order, so that it delays no other.

use std::collections::VecDeque;

use super::{ErrorCode, StreamId};

/// An action for the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputAction<'a> {
    /// Bytes for a stream. It is returned until [`Client::sent`](super::Client::sent) or
    /// [`Client::blocked`](super::Client::blocked).
    Write {
        /// The stream. The transport opens it if it is new.
        stream: StreamId,
        /// The next bytes. None only with `fin`.
        bytes: &'a [u8],
        /// The stream ends after `bytes`.
        fin: bool,
    },
    /// Our part of a stream ends with RESET_STREAM. It is returned once.
    Reset {
        /// The stream.
        stream: StreamId,
        /// Code of the frame.
        code: ErrorCode,
    },
    /// The rest of the server's part of a stream is not wanted: STOP_SENDING. It is returned once.
    Stop {
        /// The stream.
        stream: StreamId,
        /// Code of the frame.
        code: ErrorCode,
    },
}

/// Bytes for one stream that wait for the transport.
#[derive(Debug, Default)]
pub(super) struct UnsentBytes {
    pub(super) bytes: Vec<u8>,
    sent: usize,
    /// The transport accepts no more for now.
    pub(super) blocked: bool,
}

impl UnsentBytes {
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
            self.sent = 0;
        } else if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Forgets all bytes and keeps at most `kept` bytes of memory.
    pub(super) fn reset(&mut self, kept: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(kept);
        self.sent = 0;
        self.blocked = false;
    }
}

/// Streams in the order of their output, and resets.
#[derive(Debug, Default)]
pub(super) struct OutputOrder {
    pub(super) control: UnsentBytes,
    pub(super) resets: VecDeque<PendingReset>,
    /// Streams with output. Some may have ended since, or be blocked.
    pub(super) ready: VecDeque<u64>,
    /// Unsent bytes of all streams that are not blocked.
    pub(super) unblocked: usize,
}

/// A reset that the transport does not know yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum PendingReset {
    Reset(u64, ErrorCode),
    Stop(u64, ErrorCode),
}

impl PendingReset {
    pub(super) const fn action(self) -> OutputAction<'static> {
        match self {
            Self::Reset(id, code) => OutputAction::Reset {
                stream: StreamId::new(id),
                code,
            },
            Self::Stop(id, code) => OutputAction::Stop {
                stream: StreamId::new(id),
                code,
            },
        }
    }
}
