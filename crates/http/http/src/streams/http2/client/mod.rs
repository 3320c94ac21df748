//! The state machine of a client's connection.
//!
//! This file has the state and the calls that do not depend on received frames. `send` opens streams and sends bodies;
//! `receive` and its stages `fields`, `content` and `control` take frames and make events.

mod content;
mod control;
mod fields;
mod receive;
mod send;

use std::sync::Arc;

use super::ErrorCode;
use super::closed::ResetStreams;
use super::error::{ConnectionError, StreamFault};
use super::frame::{PREFACE, StreamId, kind};
use super::hpack::{BlockDecoder, BlockEncoder, FieldPlan};
use super::output::OutputBuffer;
use super::reader::FrameReader;
use super::settings::{INITIAL_WINDOW, PeerSettings, id};
use super::streams::StreamTable;
use super::window::{ReceiveWindow, SendWindow};
use crate::streams::counters::ClientCounters;
use crate::streams::event::{EventSink, StreamEnd};
use crate::streams::head::LIST_LIMIT;
use crate::streams::reply_decoder::ReplyDecoder;
use crate::streams::request::OpenError;
use fields::PendingBlock;
use send::WritableQueue;

/// Our window of a stream: 16 MiB. The remainder makes an exhausted window visible ([`ReceiveWindow`]).
const STREAM_WINDOW: u32 = (16 << 20) + 4_093;

/// Our window of the connection: 1 GiB, with the same remainder.
const CONNECTION_WINDOW: u32 = (1 << 30) + 4_093;

/// Unsent bytes above which no body is taken and no stream is opened. The output exceeds it by one request at most, and
/// by the answers to frames of the server.
const OUTPUT_LIMIT: usize = 256 << 10;

/// Answers to PING and SETTINGS that may wait for the socket. A server that causes more does not read.
const ANSWER_LIMIT: u32 = 10_000;

/// The client's end of an HTTP/2 connection.
///
/// Order of calls:
///
/// 1. [`Client::new`]: the output begins with the preface and SETTINGS. Streams may be opened at once.
/// 2. [`Client::open`] while [`Client::room`] is above 0, then [`Client::send_body`] if the request has a body.
/// 3. [`Client::output`], write it to the socket, [`Client::sent`].
/// 4. [`Client::receive`] with the bytes of the socket, then [`Client::next_writable`] until it returns nothing, and
///    [`Client::output`] again, since received frames have answers.
/// 5. [`Client::close`] when the connection is not needed any more.
///
/// After an error of [`Client::receive`], or at the end of the socket, [`Client::open_tokens`] lists the streams
/// without an end. No memory is allocated for a request with constant fields in steady state.
#[derive(Debug)]
pub struct Client {
    reader: FrameReader,
    output: OutputBuffer,
    encoder: BlockEncoder,
    decoder: ReplyDecoder<BlockDecoder>,
    /// The field block that CONTINUATION frames continue.
    pending: Option<PendingBlock>,
    /// Bytes of the pending block.
    block: Vec<u8>,
    peer: PeerSettings,
    streams: StreamTable,
    reset: ResetStreams,
    writable: WritableQueue,
    send: SendWindow,
    receive: ReceiveWindow,
    /// Identifier of the next stream.
    next_id: u32,
    /// Highest stream that the server processes.
    last_allowed: u32,
    /// GOAWAY was received or sent.
    going_away: bool,
    failed: Option<ConnectionError>,
    /// Answers in the output.
    answers: u32,
    counters: ClientCounters,
}

impl Client {
    /// Creates the state of a new connection for the requests of a plan.
    pub fn new(plan: Arc<FieldPlan>) -> Self {
        let mut output = OutputBuffer::default();
        output.raw(PREFACE);
        output.frame(kind::SETTINGS, 0, 0, &own_settings());
        output.window_update(0, CONNECTION_WINDOW - INITIAL_WINDOW);
        Self {
            reader: FrameReader::default(),
            output,
            encoder: BlockEncoder::new(plan),
            decoder: ReplyDecoder::default(),
            pending: None,
            block: Vec::new(),
            peer: PeerSettings::new(),
            streams: StreamTable::default(),
            reset: ResetStreams::default(),
            writable: WritableQueue::default(),
            send: SendWindow::new(INITIAL_WINDOW),
            receive: ReceiveWindow::new(CONNECTION_WINDOW),
            next_id: 1,
            last_allowed: StreamId::MAX,
            going_away: false,
            failed: None,
            answers: 0,
            counters: ClientCounters::default(),
        }
    }

    /// Bytes to be sent.
    pub fn output(&self) -> &[u8] {
        self.output.unsent()
    }

    /// Removes the first `count` bytes of the output, because the socket has accepted them. Afterwards,
    /// [`Client::room`] and [`Client::next_writable`] can have changed.
    pub fn sent(&mut self, count: usize) {
        self.output.advance(count);
        if self.output.unsent().is_empty() {
            self.answers = 0;
        }
    }

    /// Streams that may be opened now.
    ///
    /// Before SETTINGS of the server it assumes a limit of 100 streams. 0 after GOAWAY, after an error, without
    /// identifiers, and while more than 256 KiB of output wait for the socket.
    pub fn room(&self) -> usize {
        match self.check_open() {
            Ok(()) => self.free_streams(),
            Err(_) => 0,
        }
    }

    /// True if a stream can be opened on this connection now or later.
    pub fn is_usable(&self) -> bool {
        !self.going_away && self.failed.is_none() && self.next_id <= StreamId::MAX
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
        streams.map(|(id, token)| (StreamId(id), token))
    }

    /// Resets a stream, which then ends without an event. Returns false if it has ended before.
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode) -> bool {
        let Some(open) = self.streams.remove(stream.0) else {
            return false;
        };
        self.writable.forget(stream.0, &open);
        self.counters.cancelled += 1;
        self.send_reset(stream.0, code);
        self.reset.add(stream.0);
        true
    }

    /// Sends GOAWAY without an error. No stream can be opened afterwards; open ones continue.
    pub fn close(&mut self) {
        if !self.going_away && self.failed.is_none() {
            self.output.goaway(ErrorCode::NO_ERROR, b"");
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
        if self.next_id > StreamId::MAX {
            return Err(OpenError::Exhausted);
        }
        if self.free_streams() == 0 || self.output.unsent().len() >= OUTPUT_LIMIT {
            return Err(OpenError::Full);
        }
        Ok(())
    }

    fn free_streams(&self) -> usize {
        let identifiers = (StreamId::MAX + 2).saturating_sub(self.next_id) / 2;
        let free = (self.peer.streams as usize).saturating_sub(self.streams.len());
        free.min(identifiers as usize)
    }

    fn send_reset(&mut self, stream: u32, code: ErrorCode) {
        if self.failed.is_some() {
            // Nothing follows the GOAWAY.
            return;
        }
        self.output.reset(stream, code);
        self.counters.resets_sent.add(code);
    }

    /// Ends a stream with an event. `end` came from the server.
    fn end(&mut self, stream: u32, end: StreamEnd, sink: &mut impl EventSink) {
        let Some(open) = self.streams.remove(stream) else {
            return;
        };
        self.writable.forget(stream, &open);
        self.counters.ended += 1;
        if end == StreamEnd::Complete {
            if !open.sent {
                self.send_reset(stream, ErrorCode::CANCEL);
            }
        } else {
            self.reset.add(stream);
        }
        sink.end(open.token, end);
    }

    /// Ends a stream that violates the protocol. It is not reset if both ends have closed it.
    fn fail(
        &mut self,
        stream: u32,
        fault: StreamFault,
        end_stream: bool,
        sink: &mut impl EventSink,
    ) {
        let StreamFault { code, reason } = fault;
        let sent = self.streams.get_mut(stream).is_some_and(|open| open.sent);
        if !(sent && end_stream) {
            self.send_reset(stream, code);
        }
        let code = code.into();
        self.end(stream, StreamEnd::Malformed { code, reason }, sink);
    }

    /// True if the counts of streams are consistent.
    fn streams_add_up(&self) -> bool {
        let ended = self.counters.ended + self.counters.cancelled;
        self.counters.opened == ended + self.streams.len() as u64
    }
}

/// The payload of our SETTINGS. The table size stays at its initial value.
fn own_settings() -> Vec<u8> {
    let settings = [
        (id::ENABLE_PUSH, 0),
        (id::INITIAL_WINDOW_SIZE, STREAM_WINDOW),
        (id::MAX_HEADER_LIST_SIZE, LIST_LIMIT as u32),
    ];
    let mut payload = Vec::new();
    for (setting, value) in settings {
        payload.extend_from_slice(&setting.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    payload
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::http2::frame::FrameHead;
    use crate::streams::request::StreamRequest;

    struct NoEvents;

    impl EventSink for NoEvents {
        fn head(&mut self, _: u32, _: u16) {}
        fn body(&mut self, _: u32, _: &[u8]) {}
        fn end(&mut self, _: u32, _: StreamEnd) {}
    }

    #[test]
    fn identifiers_end() {
        let mut client = Client::new(Arc::new(FieldPlan::default()));
        client.next_id = StreamId::MAX - 2;
        assert_eq!(client.room(), 2);
        let request = StreamRequest::default();
        assert_eq!(client.open(0, &request), Ok(StreamId(StreamId::MAX - 2)));
        assert_eq!(client.open(1, &request), Ok(StreamId(StreamId::MAX)));
        assert_eq!(client.room(), 0);
        assert_eq!(client.open(2, &request), Err(OpenError::Exhausted));
        assert!(!client.is_usable());
        assert!(client.streams_add_up());
    }

    #[test]
    fn many_resets_are_remembered_as_far_as_memory_permits() {
        let mut client = Client::new(Arc::new(FieldPlan::default()));
        let settings = FrameHead {
            length: 0,
            kind: kind::SETTINGS,
            flags: 0,
            stream: 0,
        };
        client.receive(&settings.bytes(), &mut NoEvents).unwrap();
        for token in 0..5_000 {
            let stream = client.open(token, &StreamRequest::default()).unwrap();
            assert!(client.reset(stream, ErrorCode::CANCEL));
            client.sent(client.output().len());
        }
        // A late frame of each stream is ignored, and no stream is reset twice.
        for stream in (1..10_000).step_by(2) {
            let data = FrameHead {
                length: 0,
                kind: kind::DATA,
                flags: 0,
                stream,
            };
            client.receive(&data.bytes(), &mut NoEvents).unwrap();
        }
        assert!(client.output().is_empty());
        assert_eq!(client.counters().late_frames, 5_000);
    }
}
