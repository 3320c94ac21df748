//! The streams of a connection: the open ones, those that were reset, and the bodies that wait.

use std::collections::VecDeque;

use super::ErrorCode;
use super::closed::ResetStreams;
use super::error::{ConnectionError, StreamFault};
use super::frame::StreamId;
use super::frame_sender::FrameSender;
use super::window::{ReceiveWindow, STREAM_WINDOW, SendWindow, WindowOverflow};
use crate::streams::counters::ClientCounters;
use crate::streams::reply_state::ReplyState;
use crate::streams::request::StreamRequest;
use crate::streams::stream_table::StreamTable;

/// State of an open stream. It is removed at its end.
#[derive(Debug)]
pub(super) struct OpenStream {
    pub(super) token: u32,
    send: SendWindow,
    pub(super) receive: ReceiveWindow,
    pub(super) reply: ReplyState,
    /// The request was sent to its end.
    pub(super) sent: bool,
    /// The caller has more of the body, and waits for `Http2StreamClient::next_writable`.
    waits: bool,
    /// The stream is in the queue of writable streams.
    queued: bool,
    /// A window of the server stopped the body at least once.
    stalled: bool,
}

impl OpenStream {
    /// The state after the head of a request. `window` is the server's initial window of a stream.
    pub(super) fn new(token: u32, request: &StreamRequest<'_>, window: u32) -> Self {
        Self {
            token,
            send: SendWindow::new(window),
            receive: ReceiveWindow::new(STREAM_WINDOW),
            reply: ReplyState::new(request.is_head),
            sent: !request.has_body,
            waits: false,
            queued: false,
            stalled: false,
        }
    }

    /// Marks the stream as queued, if it waits and its own window permits to send. Returns true if it was not queued.
    fn enqueue(&mut self) -> bool {
        let is_new = self.waits && !self.queued && self.send.available() > 0;
        self.queued |= is_new;
        is_new
    }
}

/// A stream that was removed.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndedStream {
    pub(super) token: u32,
    /// The request was sent to its end.
    pub(super) sent: bool,
}

/// The streams of a connection, with their counts.
#[derive(Debug)]
pub(super) struct StreamSet {
    pub(super) open: StreamTable<u32, OpenStream>,
    reset: ResetStreams,
    /// Streams with more of a body, in the order in which they became writable.
    writable: VecDeque<u32>,
    /// Identifier of the next stream.
    next_id: u32,
    pub(super) counters: ClientCounters,
}

impl Default for StreamSet {
    fn default() -> Self {
        Self {
            open: StreamTable::default(),
            reset: ResetStreams::default(),
            writable: VecDeque::new(),
            next_id: 1,
            counters: ClientCounters::default(),
        }
    }
}

impl StreamSet {
    /// True if a stream can be opened now or later.
    pub(super) const fn has_identifiers(&self) -> bool {
        self.next_id <= StreamId::MAX
    }

    /// Streams that may be opened, if the server permits `limit` at once.
    pub(super) fn room(&self, limit: u32) -> usize {
        let identifiers = (StreamId::MAX + 2).saturating_sub(self.next_id) / 2;
        let free = (limit as usize).saturating_sub(self.open.len());
        free.min(identifiers as usize)
    }

    /// Adds a stream, and returns its identifier.
    pub(super) fn add(&mut self, stream: OpenStream) -> u32 {
        let id = self.next_id;
        self.next_id += 2;
        self.open.insert(id, stream);
        self.counters.opened += 1;
        debug_assert!(self.add_up(), "a stream is open or has ended");
        id
    }

    /// Removes a stream that the caller resets. Returns false if it has ended before.
    pub(super) fn cancel(&mut self, id: u32) -> bool {
        if self.remove(id).is_none() {
            return false;
        }
        self.counters.cancelled += 1;
        self.reset.add(id);
        true
    }

    /// Removes a stream that ends with an event. `is_complete` states that the server has ended it.
    pub(super) fn end(&mut self, id: u32, is_complete: bool) -> Option<EndedStream> {
        let stream = self.remove(id)?;
        self.counters.ended += 1;
        if !is_complete {
            self.reset.add(id);
        }
        Some(stream)
    }

    fn remove(&mut self, id: u32) -> Option<EndedStream> {
        let OpenStream {
            token,
            sent,
            queued,
            ..
        } = self.open.remove(id)?;
        if queued {
            self.writable.retain(|other| *other != id);
        }
        Some(EndedStream { token, sent })
    }

    /// Sends the next bytes of a body, as far as `sender` and the window of the stream permit. Returns the number of
    /// bytes taken.
    pub(super) fn send_body(
        &mut self,
        id: u32,
        sender: &mut FrameSender,
        bytes: &[u8],
        is_last: bool,
    ) -> usize {
        let Some(stream) = self.open.get_mut(id) else {
            return 0;
        };
        debug_assert!(!stream.sent, "a body is sent once");
        let sent = sender.body(id, &mut stream.send, bytes, is_last);
        stream.sent = sent.has_end;
        if sent.count == bytes.len() {
            return sent.count;
        }
        let is_stopped = stream.send.available() == 0 || sender.is_stopped();
        if is_stopped && !stream.stalled {
            stream.stalled = true;
            self.counters.stalled += 1;
        }
        stream.waits = true;
        if stream.enqueue() {
            self.writable.push_back(id);
        }
        sent.count
    }

    /// Takes the next stream whose window permits more of its body, with its token.
    pub(super) fn next_writable(&mut self) -> Option<(StreamId, u32)> {
        loop {
            let id = self.writable.pop_front()?;
            let Some(stream) = self.open.get_mut(id) else {
                debug_assert!(false, "ended streams leave the queue");
                continue;
            };
            stream.queued = false;
            if stream.send.available() > 0 {
                stream.waits = false;
                return Some((StreamId(id), stream.token));
            }
        }
    }

    /// Adds to the send window of a stream (RFC 9113, section 6.9). One that has ended needs none.
    pub(super) fn enlarge_window(&mut self, id: u32, increment: u32) -> Result<(), StreamFault> {
        let Some(stream) = self.open.get_mut(id) else {
            return Ok(());
        };
        if increment == 0 {
            return Err(StreamFault::malformed("WINDOW_UPDATE of 0 bytes"));
        }
        stream.send.change(increment.into())?;
        if stream.enqueue() {
            self.writable.push_back(id);
        }
        Ok(())
    }

    /// Changes the send windows of all streams. Those that wait and may send now are queued in ascending order.
    pub(super) fn change_windows(&mut self, delta: i64) -> Result<(), WindowOverflow> {
        let mut writable = Vec::new();
        for (id, stream) in self.open.iter_mut() {
            stream.send.change(delta)?;
            if stream.enqueue() {
                writable.push(id);
            }
        }
        writable.sort_unstable();
        self.writable.extend(writable);
        Ok(())
    }

    /// Checks a frame on a stream that is not open.
    pub(super) fn check_closed(&self, id: u32) -> Result<(), ConnectionError> {
        self.check_opened(id)?;
        if self.reset.permits_late_frames(id) {
            return Ok(());
        }
        let reason = "fields or content on a stream that the server has ended";
        Err(ConnectionError::new(ErrorCode::STREAM_CLOSED, reason))
    }

    /// Checks that a stream is open or was it before (RFC 9113, section 5.1).
    pub(super) const fn check_opened(&self, id: u32) -> Result<(), ConnectionError> {
        if id.is_multiple_of(2) || id >= self.next_id {
            let reason = "a frame on a stream that was never opened";
            return Err(ConnectionError::protocol(reason));
        }
        Ok(())
    }

    /// True if the counts of streams are consistent.
    pub(super) fn add_up(&self) -> bool {
        self.counters.add_up(self.open.len())
    }

    /// Continues with this identifier, so that a test reaches the last ones.
    #[cfg(test)]
    pub(super) const fn skip_to(&mut self, next_id: u32) {
        self.next_id = next_id;
    }
}
