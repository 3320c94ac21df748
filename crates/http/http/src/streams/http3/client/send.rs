//! Opening of streams, and bodies of requests.

use super::{Client, OUTPUT_LIMIT, STREAM_OUTPUT_LIMIT};
use crate::streams::catalogue::RequestField;
use crate::streams::field_class::is_valid_value;
use crate::streams::http3::frame::{StreamId, kind};
use crate::streams::http3::streams::{OpenRequestStream, SendProgress};
use crate::streams::http3::{qpack, varint};
use crate::streams::reply_state::ReplyState;
use crate::streams::request::{OpenError, StreamRequest};

/// Longest field section whose memory is kept, in bytes.
const KEPT: usize = 16 << 10;

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
        self.next_id += 4;
        qpack::encode(&self.plan, request.fields, &mut self.section);
        let mut buffers = self.streams.buffers();
        let bytes = &mut buffers.output.bytes;
        varint::encode(kind::HEADERS, bytes);
        varint::encode(self.section.len() as u64, bytes);
        bytes.extend_from_slice(&self.section);
        self.section.clear();
        self.section.shrink_to(KEPT);
        self.output.unblocked += bytes.len();
        self.output.ready.push_back(id);
        let stream = OpenRequestStream {
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
        };
        self.streams.insert(id, stream);
        self.counters.opened += 1;
        debug_assert!(self.streams_add_up(), "a stream is open or has ended");
        Ok(StreamId::new(id))
    }

    /// Sends the next bytes of a request's body, as far as the output permits. `is_last` states that the body ends after
    /// `bytes`.
    ///
    /// Returns the number of bytes taken. The caller keeps the others until [`Client::next_writable`] returns the
    /// stream. Returns 0 if the stream or the connection has ended, or if the server does not want the body.
    pub fn send_body(&mut self, stream: StreamId, bytes: &[u8], is_last: bool) -> usize {
        let Some(open) = self.streams.get_mut(stream.number()) else {
            return 0;
        };
        if self.failed.is_some() || open.progress == SendProgress::Stopped {
            return 0;
        }
        debug_assert!(open.progress == SendProgress::Open, "a body is sent once");
        let output = &mut open.buffers.output;
        let free = STREAM_OUTPUT_LIMIT.saturating_sub(output.unsent().len());
        let free_in_all = OUTPUT_LIMIT.saturating_sub(self.output.unblocked);
        let length = bytes.len().min(free).min(free_in_all);
        let before = output.unsent().len();
        if length > 0 {
            varint::encode(kind::DATA, &mut output.bytes);
            varint::encode(length as u64, &mut output.bytes);
            output.bytes.extend_from_slice(&bytes[..length]);
        }
        if !output.blocked {
            self.output.unblocked += output.unsent().len() - before;
        }
        if length == bytes.len() {
            if is_last {
                open.progress = SendProgress::Ending;
            }
        } else {
            open.waits = true;
        }
        self.list(stream.number());
        self.offer(stream.number());
        length
    }

    /// The next stream that takes more of its body, with its token. Each stream is returned once after a call of
    /// [`Client::send_body`] that left bytes over.
    ///
    /// The output gets free in [`Client::sent`].
    pub fn next_writable(&mut self) -> Option<(StreamId, u32)> {
        if self.failed.is_some() {
            return None;
        }
        while self.output.unblocked < OUTPUT_LIMIT {
            let id = self.writable.pop_front()?;
            let Some(stream) = self.streams.get_mut(id) else {
                continue;
            };
            stream.queued = false;
            if stream.takes_body() {
                stream.waits = false;
                return Some((StreamId::new(id), stream.token));
            }
        }
        None
    }

    /// Adds a stream to the order of output, if it has some that the transport accepts.
    pub(super) fn list(&mut self, id: u64) {
        if let Some(stream) = self.streams.get_mut(id)
            && !stream.listed
            && stream.has_output()
        {
            stream.listed = true;
            self.output.ready.push_back(id);
        }
    }

    /// Adds a stream to the queue of writable streams, if it waits and has space for more of its body.
    pub(super) fn offer(&mut self, id: u64) {
        if let Some(stream) = self.streams.get_mut(id)
            && !stream.queued
            && stream.takes_body()
        {
            stream.queued = true;
            self.writable.push_back(id);
        }
    }
}

impl OpenRequestStream {
    /// True if the caller waits with a body, and at most half of the stream's output is in use.
    fn takes_body(&self) -> bool {
        let unsent = self.buffers.output.unsent().len();
        let is_open = self.progress == SendProgress::Open;
        self.waits && is_open && unsent <= STREAM_OUTPUT_LIMIT / 2
    }
}
