//! The state machine of a client's connection.
//!
//! This file has the state and the calls about whole streams. `send` opens streams and sends bodies; `transport` passes
//! output on; `receive` and its stages `reply` and `control` take bytes of streams and make events.

mod control;
mod receive;
mod reply;
mod send;
mod transport;

use std::collections::VecDeque;
use std::sync::Arc;

use super::ErrorCode;
use super::error::Http3Error;
use super::frame::{StreamId, kind};
use super::output::{OutputOrder, PendingReset};
use super::qpack::{FieldPlan, SectionDecoder};
use super::reader::Http3FrameReader;
use super::settings;
use super::streams::{SendProgress, StreamTable};
use super::unidirectional::{DecoderInstructions, PeerStreams};
use super::varint;
use crate::streams::counters::ClientCounters;
use crate::streams::event::{EventSink, StreamEnd};
use crate::streams::head::LIST_LIMIT;
use crate::streams::reply_decoder::ReplyDecoder;
use crate::streams::request::OpenError;

/// Unsent bytes above which no body is taken and no stream is opened. Bytes of blocked streams do not count, so that
/// they delay no other.
const OUTPUT_LIMIT: usize = 256 << 10;

/// Unsent bytes of a stream above which no more of its body is taken.
const STREAM_OUTPUT_LIMIT: usize = 64 << 10;

/// The client's end of an HTTP/3 connection.
///
/// Order of calls:
///
/// 1. [`Client::new`]: the output begins with the control stream and SETTINGS.
/// 2. [`Client::permit_streams`] with QUIC's limit of bidirectional streams, at first and after each change.
/// 3. [`Client::open`] while [`Client::room`] is above 0, then [`Client::send_body`] if the request has a body.
/// 4. [`Client::output`] until it returns nothing: a write is followed by [`Client::sent`] or [`Client::blocked`], and
///    [`Client::writable`] when the transport accepts more.
/// 5. [`Client::receive`], [`Client::receive_reset`] and [`Client::receive_stop`], then [`Client::next_writable`] until
///    it returns nothing, and [`Client::output`] again.
/// 6. [`Client::close`] when the connection is not needed any more. The caller then closes QUIC with H3_NO_ERROR.
///
/// After an error of a receiving call there is no output: the caller closes QUIC with the code of the error.
/// [`Client::open_tokens`] lists the streams without an end. No memory is allocated for a request with constant fields in
/// steady state.
#[derive(Debug)]
pub struct Client {
    plan: Arc<FieldPlan>,
    decoder: ReplyDecoder<SectionDecoder>,
    streams: StreamTable,
    output: OutputOrder,
    /// The field section of the request that is being opened.
    section: Vec<u8>,
    /// Streams with more of a body, in the order in which they became writable. Some may have ended since.
    writable: VecDeque<u64>,
    server: PeerStreams,
    /// Frames of the server's control stream.
    control: Http3FrameReader,
    has_settings: bool,
    decoder_instructions: DecoderInstructions,
    /// Identifier of the next stream.
    next_id: u64,
    /// Bidirectional streams that the server permits in all.
    permitted: u64,
    /// First stream that the server does not process.
    first_rejected: u64,
    /// GOAWAY was received or sent.
    going_away: bool,
    failed: Option<Http3Error>,
    counters: ClientCounters,
}

impl Client {
    /// Creates the state of a new connection for the requests of a plan. No stream can be opened before
    /// [`Client::permit_streams`].
    pub fn new(plan: Arc<FieldPlan>) -> Self {
        let mut output = OutputOrder::default();
        output.control.bytes = settings::opening(LIST_LIMIT);
        output.unblocked = output.control.bytes.len();
        Self {
            plan,
            decoder: ReplyDecoder::default(),
            streams: StreamTable::default(),
            output,
            section: Vec::new(),
            writable: VecDeque::new(),
            server: PeerStreams::of_server(),
            control: Http3FrameReader::default(),
            has_settings: false,
            decoder_instructions: DecoderInstructions::default(),
            next_id: 0,
            permitted: 0,
            first_rejected: u64::MAX,
            going_away: false,
            failed: None,
            counters: ClientCounters::default(),
        }
    }

    /// Sets the number of bidirectional streams that the server permits since the beginning of the connection (RFC
    /// 9000, section 4.6). A smaller number than before is ignored.
    pub fn permit_streams(&mut self, total: u64) {
        self.permitted = self.permitted.max(total);
    }

    /// Streams that may be opened now.
    ///
    /// 0 after GOAWAY, after an error, without identifiers, and while more than 256 KiB of output wait that the
    /// transport would accept.
    pub fn room(&self) -> usize {
        match self.check_open() {
            Ok(()) => usize::try_from(self.free_streams()).unwrap_or(usize::MAX),
            Err(_) => 0,
        }
    }

    /// True if a stream can be opened on this connection now or later.
    pub fn is_usable(&self) -> bool {
        !self.going_away && self.failed.is_none() && self.next_id <= varint::MAX
    }

    /// Number of open streams.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// True if no stream is open.
    pub fn is_idle(&self) -> bool {
        self.streams.len() == 0
    }

    /// The open streams with their tokens, in no order.
    pub fn open_tokens(&self) -> impl Iterator<Item = (StreamId, u32)> {
        let streams = self.streams.iter();
        streams.map(|(id, token)| (StreamId::new(id), token))
    }

    /// Resets a stream in both directions, which then ends without an event. Returns false if it has ended before.
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode) -> bool {
        let is_open = self.remove(stream.number(), code, false).is_some();
        self.counters.cancelled += u64::from(is_open);
        is_open
    }

    /// Sends GOAWAY (RFC 9114, section 5.2). No stream can be opened afterwards; open ones continue.
    pub fn close(&mut self) {
        if !self.going_away && self.failed.is_none() {
            let control = &mut self.output.control;
            // The identifier is that of a push, and the server has sent none.
            let frame = [kind::GOAWAY as u8, 1, 0];
            control.bytes.extend_from_slice(&frame);
            if !control.blocked {
                self.output.unblocked += frame.len();
            }
        }
        self.going_away = true;
    }

    /// Counts since the beginning of the connection.
    pub fn counters(&self) -> &ClientCounters {
        &self.counters
    }

    fn check_open(&self) -> Result<(), OpenError> {
        if self.going_away || self.failed.is_some() {
            return Err(OpenError::GoingAway);
        }
        if self.next_id > varint::MAX {
            return Err(OpenError::Exhausted);
        }
        if self.free_streams() == 0 || self.output.unblocked >= OUTPUT_LIMIT {
            return Err(OpenError::Full);
        }
        Ok(())
    }

    fn free_streams(&self) -> u64 {
        self.permitted.saturating_sub(self.next_id / 4)
    }

    /// Removes a stream. What either end has not finished is reset with `code`; `has_end` states that the server has
    /// finished its part. Returns the token.
    fn remove(&mut self, id: u64, code: ErrorCode, has_end: bool) -> Option<u32> {
        let stream = self.streams.remove(id)?;
        self.output.unblocked -= stream.unblocked();
        let is_unsent = matches!(stream.progress, SendProgress::Open | SendProgress::Ending);
        if is_unsent {
            self.output.resets.push_back(PendingReset::Reset(id, code));
        }
        if !has_end {
            self.output.resets.push_back(PendingReset::Stop(id, code));
        }
        if is_unsent || !has_end {
            self.counters.resets_sent.add(code);
        }
        self.streams.recycle(stream.buffers);
        Some(stream.token)
    }

    /// Ends a stream with an event. What either end has not finished is reset with `code`.
    fn end(
        &mut self,
        id: u64,
        end: StreamEnd,
        (code, has_end): (ErrorCode, bool),
        sink: &mut impl EventSink,
    ) {
        let Some(token) = self.remove(id, code, has_end) else {
            return;
        };
        self.counters.ended += 1;
        sink.end(token, end);
    }

    /// True if the counts of streams are consistent.
    fn streams_add_up(&self) -> bool {
        let ended = self.counters.ended + self.counters.cancelled;
        self.counters.opened == ended + self.streams.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::request::StreamRequest;

    #[test]
    fn identifiers_end() {
        let mut client = Client::new(Arc::new(FieldPlan::default()));
        client.permit_streams(u64::MAX);
        client.next_id = varint::MAX - 3;
        let request = StreamRequest::default();
        let last = client.open(0, &request).unwrap();
        assert_eq!(last, StreamId::new(varint::MAX - 3));
        assert_eq!(client.room(), 0);
        assert_eq!(client.open(1, &request), Err(OpenError::Exhausted));
        assert!(!client.is_usable());
        assert!(client.streams_add_up());
    }
}
