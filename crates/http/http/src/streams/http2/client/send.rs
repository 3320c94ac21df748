//! Opening of streams, and bodies of requests under flow control.

use std::collections::VecDeque;

use super::{Client, OUTPUT_LIMIT, STREAM_WINDOW};
use crate::streams::catalogue::RequestField;
use crate::streams::field_class::is_valid_value;
use crate::streams::http2::frame::{StreamId, flag, kind};
use crate::streams::http2::streams::OpenStream;
use crate::streams::http2::window::{ReceiveWindow, SendWindow};
use crate::streams::reply_state::ReplyState;
use crate::streams::request::{OpenError, StreamRequest};

/// Longest DATA frame that is sent, if the server permits it, in bytes. Other streams wait for it.
const DATA_LIMIT: usize = 64 << 10;

/// Streams with more of a body, in the order in which they became writable.
#[derive(Debug, Default)]
pub(super) struct WritableQueue(VecDeque<u32>);

impl WritableQueue {
    /// Adds a stream if it waits and its own window permits to send.
    pub(super) fn offer(&mut self, id: u32, stream: &mut OpenStream) {
        if stream.waits && !stream.queued && stream.send.available() > 0 {
            stream.queued = true;
            self.0.push_back(id);
        }
    }

    /// Adds streams that are marked as queued.
    pub(super) fn extend(&mut self, ids: Vec<u32>) {
        self.0.extend(ids);
    }

    /// Removes a stream that has ended.
    pub(super) fn forget(&mut self, id: u32, stream: &OpenStream) {
        if stream.queued {
            self.0.retain(|other| *other != id);
        }
    }
}

impl Client {
    /// Opens a stream for a request. `token` returns with each event of the stream.
    pub fn open(&mut self, token: u32, request: &StreamRequest<'_>) -> Result<StreamId, OpenError> {
        self.check_open()?;
        let is_valid = |field: &RequestField<'_>| match field {
            RequestField::Constant(_) => true,
            RequestField::Variable(_, value) => is_valid_value(value),
        };
        if !request.fields.iter().all(is_valid) {
            return Err(OpenError::InvalidValue);
        }
        let id = self.next_id;
        self.next_id += 2;
        let encode = |block: &mut Vec<u8>| self.encoder.encode(request.fields, block);
        self.output
            .field_block(id, !request.has_body, self.peer.frame, encode);
        let stream = OpenStream {
            token,
            send: SendWindow::new(self.peer.window),
            receive: ReceiveWindow::new(STREAM_WINDOW),
            reply: ReplyState::new(request.is_head),
            sent: !request.has_body,
            waits: false,
            queued: false,
            stalled: false,
        };
        self.streams.insert(id, stream);
        self.counters.opened += 1;
        debug_assert!(self.streams_add_up(), "a stream is open or has ended");
        Ok(StreamId(id))
    }

    /// Sends the next bytes of a request's body, as far as the windows of the server and the output permit. `is_last`
    /// states that the body ends after `bytes`.
    ///
    /// Returns the number of bytes taken. The caller keeps the others until [`Client::next_writable`] returns the
    /// stream. Returns 0 if the stream or the connection has ended.
    pub fn send_body(&mut self, stream: StreamId, bytes: &[u8], is_last: bool) -> usize {
        let Some(open) = self.streams.get_mut(stream.0) else {
            return 0;
        };
        if self.failed.is_some() {
            return 0;
        }
        debug_assert!(!open.sent, "a body is sent once");
        let mut rest = bytes;
        loop {
            let window = open.send.available().min(self.send.available());
            let free = OUTPUT_LIMIT.saturating_sub(self.output.unsent().len());
            let length = rest
                .len()
                .min(window)
                .min(free)
                .min(self.peer.frame)
                .min(DATA_LIMIT);
            let is_end = is_last && length == rest.len();
            if length == 0 && !is_end {
                break;
            }
            let (now, later) = rest.split_at(length);
            let flags = if is_end { flag::END_STREAM } else { 0 };
            self.output.frame(kind::DATA, flags, stream.0, now);
            open.send.spend(length);
            self.send.spend(length);
            open.sent = is_end;
            rest = later;
            if rest.is_empty() {
                return bytes.len();
            }
        }
        if rest.is_empty() {
            return bytes.len();
        }
        let is_stopped = open.send.available() == 0 || self.send.available() == 0;
        if is_stopped && !open.stalled {
            open.stalled = true;
            self.counters.stalled += 1;
        }
        open.waits = true;
        self.writable.offer(stream.0, open);
        bytes.len() - rest.len()
    }

    /// The next stream that takes more of its body, with its token. Each stream is returned once after a call of
    /// [`Client::send_body`] that left bytes over.
    ///
    /// Windows open in [`Client::receive`], and the output gets free in [`Client::sent`].
    pub fn next_writable(&mut self) -> Option<(StreamId, u32)> {
        if self.failed.is_some() {
            return None;
        }
        while self.send.available() > 0 && self.output.unsent().len() < OUTPUT_LIMIT {
            let id = self.writable.0.pop_front()?;
            let Some(stream) = self.streams.get_mut(id) else {
                debug_assert!(false, "ended streams leave the queue");
                continue;
            };
            stream.queued = false;
            if stream.send.available() > 0 {
                stream.waits = false;
                return Some((StreamId(id), stream.token));
            }
        }
        None
    }
}
