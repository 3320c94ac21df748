//! The streams of a connection: the open ones with what they have to send, and the order of it.

use std::collections::VecDeque;

use super::ErrorCode;
use super::frame::{StreamId, kind};
use super::output::{OutputAction, OutputOrder, PendingReset, UnsentBytes};
use super::reader::Http3FrameReader;
use super::varint;
use crate::streams::counters::ClientCounters;
use crate::streams::event::{EventSink, StreamEnd};
use crate::streams::reply_state::ReplyState;
use crate::streams::request::StreamRequest;
use crate::streams::stream_table::StreamTable;

/// Unsent bytes of a stream above which no more of its body is taken.
const STREAM_OUTPUT_LIMIT: usize = 64 << 10;

/// Streams whose memory is kept for the next ones.
const SPARE: usize = 1024;

/// Memory that each buffer of such a stream keeps, in bytes.
const KEPT: usize = 2 << 10;

/// State of an open stream. It is removed at its end.
#[derive(Debug)]
pub(super) struct OpenRequestStream {
    pub(super) token: u32,
    pub(super) reply: ReplyState,
    progress: SendProgress,
    has_body: bool,
    /// The stream is in the order of output.
    listed: bool,
    /// The caller has more of the body, and waits for `Http3StreamClient::next_writable`.
    waits: bool,
    /// The stream is in the queue of writable streams.
    queued: bool,
    /// The transport stopped the body at least once.
    stalled: bool,
    pub(super) buffers: Box<StreamBuffers>,
}

/// Progress of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendProgress {
    /// The caller has more of it.
    Open,
    /// Its end waits for the transport.
    Ending,
    /// The transport has all of it.
    Sent,
    /// The server does not want the rest.
    Stopped,
}

/// Memory of a stream.
#[derive(Debug, Default)]
pub(super) struct StreamBuffers {
    output: UnsentBytes,
    pub(super) reader: Http3FrameReader,
}

impl OpenRequestStream {
    /// The state of a stream with the head of a request in its output.
    fn new(token: u32, request: &StreamRequest<'_>, buffers: Box<StreamBuffers>) -> Self {
        Self {
            token,
            reply: ReplyState::new(request.is_head),
            progress: if request.has_body {
                SendProgress::Open
            } else {
                SendProgress::Ending
            },
            has_body: request.has_body,
            listed: true,
            waits: false,
            queued: false,
            stalled: false,
            buffers,
        }
    }

    /// True if there is something for the transport, and it accepts it.
    fn has_output(&self) -> bool {
        let output = &self.buffers.output;
        let has_any = !output.unsent().is_empty() || self.progress == SendProgress::Ending;
        self.is_unsent() && has_any && !output.blocked
    }

    /// True if the transport does not have all of the request.
    const fn is_unsent(&self) -> bool {
        matches!(self.progress, SendProgress::Open | SendProgress::Ending)
    }

    /// Unsent bytes that the transport would accept.
    fn unblocked(&self) -> usize {
        self.buffers.output.unblocked()
    }

    /// True if the caller waits with a body, and at most half of the stream's output is in use.
    fn takes_body(&self) -> bool {
        let unsent = self.buffers.output.unsent().len();
        let is_open = self.progress == SendProgress::Open;
        self.waits && is_open && unsent <= STREAM_OUTPUT_LIMIT / 2
    }

    /// Adds the stream to the order of output, if it has some that the transport accepts.
    fn list(&mut self, id: u64, ready: &mut VecDeque<u64>) {
        if !self.listed && self.has_output() {
            self.listed = true;
            ready.push_back(id);
        }
    }

    /// Adds the stream to the queue of writable streams, if it waits and has space for more of its body.
    fn offer(&mut self, id: u64, writable: &mut VecDeque<u64>) {
        if !self.queued && self.takes_body() {
            self.queued = true;
            writable.push_back(id);
        }
    }
}

/// The streams of a connection, with their output and their counts.
#[derive(Debug)]
pub(super) struct StreamSet {
    pub(super) open: StreamTable<u64, OpenRequestStream>,
    #[expect(clippy::vec_box, reason = "the boxes return to streams")]
    spare: Vec<Box<StreamBuffers>>,
    pub(super) order: OutputOrder,
    /// Streams with more of a body, in the order in which they became writable. Some may have ended since.
    writable: VecDeque<u64>,
    /// Identifier of the next stream.
    next_id: u64,
    /// Bidirectional streams that the server permits in all.
    permitted: u64,
    pub(super) counters: ClientCounters,
}

impl StreamSet {
    /// The state of a new connection. `control` begins our control stream.
    pub(super) fn new(control: Vec<u8>) -> Self {
        Self {
            open: StreamTable::default(),
            spare: Vec::new(),
            order: OutputOrder::new(control),
            writable: VecDeque::new(),
            next_id: 0,
            permitted: 0,
            counters: ClientCounters::default(),
        }
    }

    /// Sets the number of bidirectional streams that the server permits in all, if it is higher than before.
    pub(super) fn permit(&mut self, total: u64) {
        self.permitted = self.permitted.max(total);
    }

    /// Streams that the server permits now.
    pub(super) const fn free(&self) -> u64 {
        self.permitted.saturating_sub(self.next_id / 4)
    }

    /// True if a stream can be opened now or later.
    pub(super) const fn has_identifiers(&self) -> bool {
        self.next_id <= varint::MAX
    }

    /// True if a stream is open or was it before.
    pub(super) const fn was_opened(&self, id: u64) -> bool {
        id < self.next_id
    }

    /// Adds a stream whose output begins with the field section of a request.
    pub(super) fn add(&mut self, token: u32, request: &StreamRequest<'_>, section: &[u8]) -> u64 {
        let id = self.next_id;
        self.next_id += 4;
        let mut buffers = self.spare.pop().unwrap_or_default();
        let bytes = &mut buffers.output.bytes;
        varint::encode(kind::HEADERS, bytes);
        varint::encode(section.len() as u64, bytes);
        bytes.extend_from_slice(section);
        self.order.recount(0, bytes.len());
        self.order.ready.push_back(id);
        let stream = OpenRequestStream::new(token, request, buffers);
        self.open.insert(id, stream);
        self.counters.opened += 1;
        debug_assert!(self.add_up(), "a stream is open or has ended");
        id
    }

    /// Takes the next bytes of a body, as far as the output permits. Returns their number.
    pub(super) fn send_body(&mut self, id: u64, bytes: &[u8], is_last: bool) -> usize {
        let Some(stream) = self.open.get_mut(id) else {
            return 0;
        };
        if stream.progress == SendProgress::Stopped {
            return 0;
        }
        debug_assert!(stream.progress == SendProgress::Open, "a body is sent once");
        let before = stream.unblocked();
        let output = &mut stream.buffers.output;
        let free = STREAM_OUTPUT_LIMIT.saturating_sub(output.unsent().len());
        let length = bytes.len().min(free).min(self.order.free());
        if length > 0 {
            varint::encode(kind::DATA, &mut output.bytes);
            varint::encode(length as u64, &mut output.bytes);
            output.bytes.extend_from_slice(&bytes[..length]);
        }
        if length < bytes.len() {
            stream.waits = true;
        } else if is_last {
            stream.progress = SendProgress::Ending;
        }
        self.order.recount(before, stream.unblocked());
        stream.list(id, &mut self.order.ready);
        stream.offer(id, &mut self.writable);
        length
    }

    /// Takes the next stream with space for more of its body, with its token.
    pub(super) fn next_writable(&mut self) -> Option<(StreamId, u32)> {
        if self.order.is_full() {
            return None;
        }
        loop {
            let id = self.writable.pop_front()?;
            let Some(stream) = self.open.get_mut(id) else {
                continue;
            };
            stream.queued = false;
            if stream.takes_body() {
                stream.waits = false;
                return Some((StreamId::new(id), stream.token));
            }
        }
    }

    /// The next action for the transport.
    pub(super) fn output(&mut self) -> Option<OutputAction<'_>> {
        if self.order.control().is_some() {
            return self.order.control().map(|bytes| OutputAction::Write {
                stream: StreamId::CONTROL,
                bytes,
                fin: false,
            });
        }
        if let Some(reset) = self.order.resets.pop_front() {
            return Some(reset.action());
        }
        let id = self.first_ready()?;
        let stream = self.open.get(id).expect("a ready stream is open");
        Some(OutputAction::Write {
            stream: StreamId::new(id),
            bytes: stream.buffers.output.unsent(),
            fin: stream.progress == SendProgress::Ending,
        })
    }

    /// True if there is an action for the transport.
    pub(super) fn has_output(&mut self) -> bool {
        let has_resets = !self.order.resets.is_empty();
        self.order.control().is_some() || has_resets || self.first_ready().is_some()
    }

    /// The first stream with output. Forgets those that have ended or are blocked.
    fn first_ready(&mut self) -> Option<u64> {
        while let Some(id) = self.order.ready.front() {
            match self.open.get_mut(*id) {
                Some(stream) if stream.has_output() => return Some(*id),
                Some(stream) => stream.listed = false,
                None => {}
            }
            self.order.ready.pop_front();
        }
        None
    }

    /// Removes the first `count` bytes of a stream's output.
    pub(super) fn advance(&mut self, id: u64, count: usize) {
        let Some(stream) = self.open.get_mut(id) else {
            return;
        };
        let before = stream.unblocked();
        stream.buffers.output.advance(count);
        self.order.recount(before, stream.unblocked());
        if stream.progress == SendProgress::Ending && stream.buffers.output.unsent().is_empty() {
            stream.progress = SendProgress::Sent;
        }
        stream.offer(id, &mut self.writable);
    }

    /// States that the transport accepts no more bytes of a stream for now.
    pub(super) fn block(&mut self, id: u64) {
        let Some(stream) = self.open.get_mut(id) else {
            return;
        };
        self.order.recount(stream.unblocked(), 0);
        stream.buffers.output.blocked = true;
        if stream.has_body && !stream.stalled {
            stream.stalled = true;
            self.counters.stalled += 1;
        }
    }

    /// States that the transport accepts bytes of a blocked stream again.
    pub(super) fn unblock(&mut self, id: u64) {
        let Some(stream) = self.open.get_mut(id) else {
            return;
        };
        let before = stream.unblocked();
        stream.buffers.output.blocked = false;
        self.order.recount(before, stream.unblocked());
        stream.list(id, &mut self.order.ready);
        stream.offer(id, &mut self.writable);
    }

    /// Discards the rest of a request that the server does not want.
    pub(super) fn stop_request(&mut self, id: u64, code: ErrorCode) {
        let Some(stream) = self.open.get_mut(id).filter(|stream| stream.is_unsent()) else {
            return;
        };
        self.order.recount(stream.unblocked(), 0);
        stream.buffers.output.reset(0);
        stream.progress = SendProgress::Stopped;
        self.order.resets.push_back(PendingReset::Reset(id, code));
    }

    /// Resets a stream for the caller. Returns false if it has ended before.
    pub(super) fn cancel(&mut self, id: u64, code: ErrorCode) -> bool {
        let is_open = self.remove(id, code, false).is_some();
        self.counters.cancelled += u64::from(is_open);
        is_open
    }

    /// Ends a stream with an event. What either end has not finished is reset with `code`; `has_end` states that the
    /// server has finished its part.
    pub(super) fn end(
        &mut self,
        id: u64,
        end: StreamEnd,
        code: ErrorCode,
        has_end: bool,
        sink: &mut impl EventSink,
    ) {
        let Some(token) = self.remove(id, code, has_end) else {
            return;
        };
        self.counters.ended += 1;
        sink.end(token, end);
    }

    /// Removes a stream, as [`StreamSet::end`] does. Returns the token.
    fn remove(&mut self, id: u64, code: ErrorCode, has_end: bool) -> Option<u32> {
        let stream = self.open.remove(id)?;
        self.order.recount(stream.unblocked(), 0);
        let is_unsent = stream.is_unsent();
        if is_unsent {
            self.order.resets.push_back(PendingReset::Reset(id, code));
        }
        if !has_end {
            self.order.resets.push_back(PendingReset::Stop(id, code));
        }
        if is_unsent || !has_end {
            self.counters.resets_sent.add(code);
        }
        self.recycle(stream.buffers);
        Some(stream.token)
    }

    /// Keeps the memory of a stream that has ended.
    fn recycle(&mut self, mut buffers: Box<StreamBuffers>) {
        if self.spare.len() < SPARE {
            buffers.output.reset(KEPT);
            buffers.reader.reset(KEPT);
            self.spare.push(buffers);
        }
    }

    /// True if the counts of streams are consistent.
    pub(super) fn add_up(&self) -> bool {
        self.counters.add_up(self.open.len())
    }

    /// Continues with this identifier, so that a test reaches the last ones.
    #[cfg(test)]
    pub(super) const fn skip_to(&mut self, next_id: u64) {
        self.next_id = next_id;
    }
}
