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
use super::block_assembly::BlockAssembly;
use super::error::{ConnectionError, StreamFault};
use super::frame::StreamId;
use super::frame_sender::FrameSender;
use super::hpack::{BlockDecoder, FieldPlan};
use super::reader::FrameReader;
use super::settings::{INITIAL_WINDOW, id};
use super::streams::StreamSet;
use super::window::{CONNECTION_WINDOW, ReceiveWindow, STREAM_WINDOW};
use crate::streams::counters::ClientCounters;
use crate::streams::event::{EventSink, StreamEnd};
use crate::streams::head::LIST_LIMIT;
use crate::streams::reply_decoder::ReplyDecoder;
use crate::streams::request::OpenError;
use crate::streams::shutdown_state::ShutdownState;

/// The client's end of an HTTP/2 connection.
///
/// Order of calls:
///
/// 1. [`Self::new`]: the output begins with the preface and SETTINGS. Streams may be opened at once.
/// 2. [`Self::open`] while [`Self::room`] is above 0, then [`Self::send_body`] if the request has a body.
/// 3. [`Self::output`], write it to the socket, [`Self::sent`].
/// 4. [`Self::receive`] with the bytes of the socket, then [`Self::next_writable`] until it returns nothing, and
///    [`Self::output`] again, since received frames have answers.
/// 5. [`Self::close`] when the connection is not needed any more.
///
/// After an error of [`Self::receive`], or at the end of the socket, [`Self::open_tokens`] lists the streams
/// without an end. No memory is allocated for a request with constant fields in steady state.
#[derive(Debug)]
pub struct Http2StreamClient {
    state: ShutdownState<ConnectionError>,
    sender: FrameSender,
    streams: StreamSet,
    reader: FrameReader,
    blocks: BlockAssembly,
    decoder: ReplyDecoder<BlockDecoder>,
    /// Our window of the connection.
    window: ReceiveWindow,
}

impl Http2StreamClient {
    /// Creates the state of a new connection for the requests of a plan.
    pub fn new(plan: Arc<FieldPlan>) -> Self {
        let increment = CONNECTION_WINDOW - INITIAL_WINDOW;
        Self {
            state: ShutdownState::new(),
            sender: FrameSender::new(plan, &own_settings(), increment),
            streams: StreamSet::default(),
            reader: FrameReader::default(),
            blocks: BlockAssembly::default(),
            decoder: ReplyDecoder::default(),
            window: ReceiveWindow::new(CONNECTION_WINDOW),
        }
    }

    /// Bytes to be sent.
    pub fn output(&self) -> &[u8] {
        self.sender.output.unsent()
    }

    /// Removes the first `count` bytes of the output, because the socket has accepted them. Afterwards,
    /// [`Self::room`] and [`Self::next_writable`] can have changed.
    pub fn sent(&mut self, count: usize) {
        self.sender.advance(count);
    }

    /// Streams that may be opened now.
    ///
    /// Before SETTINGS of the server it assumes a limit of 100 streams. 0 after GOAWAY, after an error, without
    /// identifiers, and while more than 256 KiB of output wait for the socket.
    pub fn room(&self) -> usize {
        match self.check_open() {
            Ok(()) => self.streams.room(self.sender.stream_limit()),
            Err(_) => 0,
        }
    }

    /// True if a stream can be opened on this connection now or later.
    pub fn is_usable(&self) -> bool {
        self.state.check_open().is_ok() && self.streams.has_identifiers()
    }

    /// Number of open streams.
    pub fn open_streams(&self) -> usize {
        self.streams.open.len()
    }

    /// True if no stream is open.
    pub fn is_idle(&self) -> bool {
        self.streams.open.len() == 0
    }

    /// The open streams with their tokens, in no order.
    pub fn open_tokens(&self) -> impl Iterator<Item = (StreamId, u32)> {
        let streams = self.streams.open.iter();
        streams.map(|(id, stream)| (StreamId(id), stream.token))
    }

    /// Resets a stream, which then ends without an event. Returns false if it has ended before.
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode) -> bool {
        let was_open = self.streams.cancel(stream.0);
        if was_open {
            self.send_reset(stream.0, code);
        }
        was_open
    }

    /// Sends GOAWAY without an error. No stream can be opened afterwards; open ones continue.
    pub fn close(&mut self) {
        if self.state.close() {
            self.sender.output.goaway(ErrorCode::NO_ERROR, b"");
        }
    }

    /// Counts since the beginning of the connection.
    pub fn counters(&self) -> &ClientCounters {
        &self.streams.counters
    }

    fn check_open(&self) -> Result<(), OpenError> {
        self.state.check_open()?;
        if !self.streams.has_identifiers() {
            return Err(OpenError::Exhausted);
        }
        if self.streams.room(self.sender.stream_limit()) == 0 || self.sender.is_full() {
            return Err(OpenError::Full);
        }
        Ok(())
    }

    fn send_reset(&mut self, stream: u32, code: ErrorCode) {
        if self.state.has_failed() {
            // Nothing follows the GOAWAY.
            return;
        }
        self.sender.output.reset(stream, code);
        self.streams.counters.resets_sent.add(code);
    }

    /// Ends a stream with an event. `end` came from the server.
    fn end(&mut self, stream: u32, end: StreamEnd, sink: &mut impl EventSink) {
        let is_complete = end == StreamEnd::Complete;
        let Some(ended) = self.streams.end(stream, is_complete) else {
            return;
        };
        if is_complete && !ended.sent {
            self.send_reset(stream, ErrorCode::CANCEL);
        }
        sink.end(ended.token, end);
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
        let sent = self.streams.open.get(stream).is_some_and(|open| open.sent);
        if !(sent && end_stream) {
            self.send_reset(stream, code);
        }
        let code = code.into();
        self.end(stream, StreamEnd::Malformed { code, reason }, sink);
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
    use crate::streams::http2::frame::{FrameHead, kind};
    use crate::streams::request::StreamRequest;

    struct NoEvents;

    impl EventSink for NoEvents {
        fn head(&mut self, _: u32, _: u16) {}
        fn body(&mut self, _: u32, _: &[u8]) {}
        fn end(&mut self, _: u32, _: StreamEnd) {}
    }

    #[test]
    fn identifiers_end() {
        let mut client = Http2StreamClient::new(Arc::new(FieldPlan::default()));
        client.streams.skip_to(StreamId::MAX - 2);
        assert_eq!(client.room(), 2);
        let request = StreamRequest::default();
        assert_eq!(client.open(0, &request), Ok(StreamId(StreamId::MAX - 2)));
        assert_eq!(client.open(1, &request), Ok(StreamId(StreamId::MAX)));
        assert_eq!(client.room(), 0);
        assert_eq!(client.open(2, &request), Err(OpenError::Exhausted));
        assert!(!client.is_usable());
        assert!(client.streams.add_up());
    }

    #[test]
    fn many_resets_are_remembered_as_far_as_memory_permits() {
        let mut client = Http2StreamClient::new(Arc::new(FieldPlan::default()));
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
