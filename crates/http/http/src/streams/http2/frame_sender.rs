//! Frames of the client, within the settings and the window of the server.

use std::sync::Arc;

use super::ErrorCode;
use super::error::ConnectionError;
use super::frame::{PREFACE, flag, kind};
use super::hpack::{BlockEncoder, FieldPlan};
use super::output::OutputBuffer;
use super::settings::{INITIAL_WINDOW, PeerSettings, SettingsChange};
use super::window::{SendWindow, WindowOverflow};
use crate::streams::request::StreamRequest;

/// Unsent bytes above which no body is taken and no stream is opened. The output exceeds it by one request at most, and
/// by the answers to frames of the server.
const OUTPUT_LIMIT: usize = 256 << 10;

/// Answers to PING and SETTINGS that may wait for the socket. A server that causes more does not read.
const ANSWER_LIMIT: u32 = 10_000;

/// Longest DATA frame that is sent, if the server permits it, in bytes. Other streams wait for it.
const DATA_LIMIT: usize = 64 << 10;

/// Output under the server's settings and its window of the connection.
#[derive(Debug)]
pub(super) struct FrameSender {
    pub(super) output: OutputBuffer,
    encoder: BlockEncoder,
    peer: PeerSettings,
    window: SendWindow,
    /// Answers in the output.
    answers: u32,
}

/// The part of a body that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentBody {
    pub(super) count: usize,
    /// The stream was ended.
    pub(super) has_end: bool,
}

impl FrameSender {
    /// The output begins with the preface, the payload of our SETTINGS, and `increment` bytes for our window of the
    /// connection.
    pub(super) fn new(plan: Arc<FieldPlan>, settings: &[u8], increment: u32) -> Self {
        let mut output = OutputBuffer::default();
        output.raw(PREFACE);
        output.frame(kind::SETTINGS, 0, 0, settings);
        output.window_update(0, increment);
        Self {
            output,
            encoder: BlockEncoder::new(plan),
            peer: PeerSettings::new(),
            window: SendWindow::new(INITIAL_WINDOW),
            answers: 0,
        }
    }

    /// Removes the first `count` bytes of the output.
    pub(super) fn advance(&mut self, count: usize) {
        self.output.advance(count);
        if self.output.unsent().is_empty() {
            self.answers = 0;
        }
    }

    /// True if too much output waits for another request or body.
    pub(super) fn is_full(&self) -> bool {
        self.output.unsent().len() >= OUTPUT_LIMIT
    }

    /// True if the window of the connection permits no more content.
    pub(super) fn is_stopped(&self) -> bool {
        self.window.available() == 0
    }

    /// True if SETTINGS of the server have arrived.
    pub(super) const fn has_settings(&self) -> bool {
        self.peer.received
    }

    /// Streams that the server permits at once.
    pub(super) const fn stream_limit(&self) -> u32 {
        self.peer.streams
    }

    /// Initial window of a stream, in bytes.
    pub(super) const fn stream_window(&self) -> u32 {
        self.peer.window
    }

    /// Sends the head of a request.
    pub(super) fn head(&mut self, id: u32, request: &StreamRequest<'_>) {
        let encode = |block: &mut Vec<u8>| self.encoder.encode(request.fields, block);
        self.output
            .field_block(id, !request.has_body, self.peer.frame, encode);
    }

    /// Sends content, as far as `window` of the stream, the window of the connection and the output permit. `is_last`
    /// states that the body ends after `bytes`.
    pub(super) fn body(
        &mut self,
        id: u32,
        window: &mut SendWindow,
        bytes: &[u8],
        is_last: bool,
    ) -> SentBody {
        let mut rest = bytes;
        loop {
            let free = OUTPUT_LIMIT.saturating_sub(self.output.unsent().len());
            let length = rest
                .len()
                .min(window.available())
                .min(self.window.available())
                .min(free)
                .min(self.peer.frame)
                .min(DATA_LIMIT);
            let has_end = is_last && length == rest.len();
            if length > 0 || has_end {
                let (now, later) = rest.split_at(length);
                let flags = if has_end { flag::END_STREAM } else { 0 };
                self.output.frame(kind::DATA, flags, id, now);
                window.spend(length);
                self.window.spend(length);
                rest = later;
            }
            if length == 0 || rest.is_empty() {
                let count = bytes.len() - rest.len();
                return SentBody { count, has_end };
            }
        }
    }

    /// Acknowledges a frame. The number of acknowledgements in the output is limited.
    pub(super) fn answer(&mut self, kind: u8, payload: &[u8]) -> Result<(), ConnectionError> {
        self.answers += 1;
        if self.answers > ANSWER_LIMIT {
            let reason = "more than 10000 SETTINGS and PING without reading the answers";
            return Err(ConnectionError::new(ErrorCode::ENHANCE_YOUR_CALM, reason));
        }
        self.output.frame(kind, flag::ACK, 0, payload);
        Ok(())
    }

    /// Applies SETTINGS for later requests. Returns the change of the windows of open streams, in bytes.
    pub(super) fn apply(&mut self, change: &SettingsChange) -> i64 {
        self.peer.received = true;
        if let Some((smallest, last)) = change.table {
            self.encoder.limit(smallest);
            self.encoder.limit(last);
        }
        if let Some(frame) = change.frame {
            self.peer.frame = frame;
        }
        let Some(window) = change.window else {
            return 0;
        };
        let before = std::mem::replace(&mut self.peer.window, window);
        i64::from(window) - i64::from(before)
    }

    /// Applies the limit of streams in SETTINGS.
    pub(super) const fn limit_streams(&mut self, limit: u32) {
        self.peer.streams = limit;
    }

    /// Adds to the window of the connection (RFC 9113, section 6.9).
    pub(super) fn enlarge_window(&mut self, increment: u32) -> Result<(), WindowOverflow> {
        self.window.change(increment.into())
    }
}
