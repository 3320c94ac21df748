//! The order of what the transport has to do.
//!
//! The control stream comes first, then resets, then requests in the order in which they have output. A stream that
//! the transport blocks leaves the order, so that it delays no other.

use std::collections::VecDeque;

use super::{ErrorCode, StreamId};

/// An action for the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputAction<'a> {
    /// Bytes for a stream. It is returned until [`Http3StreamClient::sent`](super::Http3StreamClient::sent) or
    /// [`Http3StreamClient::blocked`](super::Http3StreamClient::blocked).
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
    /// Number of unsent bytes that the transport would accept.
    pub(super) fn unblocked(&self) -> usize {
        if self.blocked { 0 } else { self.unsent().len() }
    }

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
    control: UnsentBytes,
    pub(super) resets: VecDeque<PendingReset>,
    /// Streams with output. Some may have ended since, or be blocked.
    pub(super) ready: VecDeque<u64>,
    /// Unsent bytes of all streams that are not blocked.
    unblocked: usize,
}

impl OutputOrder {
    /// Unsent bytes above which no body is taken and no stream is opened. Bytes of blocked streams do not count, so that
    /// they delay no other.
    const LIMIT: usize = 256 << 10;

    /// The output of a new connection begins with the control stream.
    pub(super) fn new(control: Vec<u8>) -> Self {
        let mut order = Self::default();
        order.append_control(&control);
        order
    }

    /// Appends bytes to the control stream.
    pub(super) fn append_control(&mut self, bytes: &[u8]) {
        self.change_control(|control| control.bytes.extend_from_slice(bytes));
    }

    /// Removes the first `count` bytes of the control stream.
    pub(super) fn advance_control(&mut self, count: usize) {
        self.change_control(|control| control.advance(count));
    }

    /// States that the transport accepts bytes of the control stream, or no more for now.
    pub(super) fn block_control(&mut self, blocked: bool) {
        self.change_control(|control| control.blocked = blocked);
    }

    fn change_control(&mut self, change: impl FnOnce(&mut UnsentBytes)) {
        let before = self.control.unblocked();
        change(&mut self.control);
        self.recount(before, self.control.unblocked());
    }

    /// Bytes of the control stream that the transport would accept.
    pub(super) fn control(&self) -> Option<&[u8]> {
        (self.control.unblocked() > 0).then(|| self.control.unsent())
    }

    /// Replaces the unblocked bytes of one stream, `before`, by `after`.
    pub(super) const fn recount(&mut self, before: usize, after: usize) {
        self.unblocked = self.unblocked - before + after;
    }

    /// True if too much output waits for another request or body.
    pub(super) const fn is_full(&self) -> bool {
        self.unblocked >= Self::LIMIT
    }

    /// Bytes that the output still takes.
    pub(super) const fn free(&self) -> usize {
        Self::LIMIT.saturating_sub(self.unblocked)
    }
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
