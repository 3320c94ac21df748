//! Received bytes, resets and stops, from the kind of the stream to the stage that handles them.

use super::Http3StreamClient;
use super::reply::SectionContext;
use crate::streams::event::{EventSink, StreamEnd, StreamRejection};
use crate::streams::http3::ErrorCode;
use crate::streams::http3::error::{Http3Error, ReceiveFault, StreamFault};
use crate::streams::http3::frame::{StreamId, StreamKind};
use crate::streams::http3::unidirectional::CLOSED;

impl Http3StreamClient {
    /// Takes bytes of a stream, and reports the events in them to `sink`. `fin` states that the stream ends after them.
    ///
    /// An error ends the connection: there is no more output, and each later call returns the same error.
    pub fn receive(
        &mut self,
        stream: StreamId,
        bytes: &[u8],
        fin: bool,
        sink: &mut impl EventSink,
    ) -> Result<(), Http3Error> {
        self.state.check()?;
        let id = stream.number();
        let result = match stream.kind() {
            StreamKind::ClientBidirectional => self.receive_reply(id, bytes, fin, sink),
            StreamKind::ServerUnidirectional => self.receive_from_server(id, bytes, fin, sink),
            StreamKind::ServerBidirectional => Err(SERVER_OPENED),
            StreamKind::ClientUnidirectional => Err(NOT_RECEIVING),
        };
        self.finish(result)
    }

    /// Handles RESET_STREAM: the server ended its part of a stream with an error (RFC 9000, section 19.4).
    ///
    /// On a stream that has ended it means nothing.
    pub fn receive_reset(
        &mut self,
        stream: StreamId,
        code: ErrorCode,
        sink: &mut impl EventSink,
    ) -> Result<(), Http3Error> {
        self.state.check()?;
        let result = match stream.kind() {
            StreamKind::ClientBidirectional => self.reply_reset(stream.number(), code, sink),
            StreamKind::ServerUnidirectional => self.server.end(stream.number()),
            StreamKind::ServerBidirectional => Err(SERVER_OPENED),
            StreamKind::ClientUnidirectional => Err(NOT_RECEIVING),
        };
        self.finish(result)
    }

    /// Handles STOP_SENDING: the server does not want the rest of a request (RFC 9000, section 19.5).
    ///
    /// The reply continues, except after a rejection. On a stream that has ended it means nothing.
    pub fn receive_stop(
        &mut self,
        stream: StreamId,
        code: ErrorCode,
        sink: &mut impl EventSink,
    ) -> Result<(), Http3Error> {
        self.state.check()?;
        let result = match stream.kind() {
            StreamKind::ClientBidirectional => self.request_stopped(stream.number(), code, sink),
            // It is for our control stream.
            StreamKind::ClientUnidirectional => Err(CLOSED),
            StreamKind::ServerBidirectional => Err(SERVER_OPENED),
            StreamKind::ServerUnidirectional => Err(NOT_SENDING),
        };
        self.finish(result)
    }

    fn finish(&mut self, result: Result<(), Http3Error>) -> Result<(), Http3Error> {
        debug_assert!(self.streams.add_up(), "a stream is open or has ended");
        result.inspect_err(|error| self.state.fail(*error))
    }

    /// Takes bytes of a request's stream.
    fn receive_reply(
        &mut self,
        id: u64,
        bytes: &[u8],
        fin: bool,
        sink: &mut impl EventSink,
    ) -> Result<(), Http3Error> {
        self.check_opened(id)?;
        let Some(stream) = self.streams.open.get_mut(id) else {
            return Ok(());
        };
        let mut context = SectionContext {
            decoder: &mut self.decoder,
            interim: &mut self.streams.counters.interim,
        };
        let result = match stream.receive(&mut context, bytes, sink) {
            Ok(()) if fin => stream.check_end(),
            result => result,
        };
        match result {
            Ok(()) => {
                if fin {
                    let code = ErrorCode::H3_REQUEST_CANCELLED;
                    self.streams.end(id, StreamEnd::Complete, code, true, sink);
                }
                Ok(())
            }
            Err(ReceiveFault::Stream(StreamFault { code, reason })) => {
                let end = StreamEnd::Malformed {
                    code: code.into(),
                    reason,
                };
                self.streams.end(id, end, code, fin, sink);
                Ok(())
            }
            Err(ReceiveFault::Connection(error)) => Err(Http3Error {
                token: Some(stream.token),
                ..error
            }),
        }
    }

    fn reply_reset(
        &mut self,
        id: u64,
        code: ErrorCode,
        sink: &mut impl EventSink,
    ) -> Result<(), Http3Error> {
        self.check_opened(id)?;
        let Some(stream) = self.streams.open.get(id) else {
            return Ok(());
        };
        let is_complete = stream.reply.is_known_complete();
        let is_complete = is_complete && stream.buffers.reader.is_between_frames();
        self.streams.counters.resets_received.add(code);
        let end = match code {
            // After a part of a reply, a rejection is a mistake of the server: the request was processed.
            ErrorCode::H3_REQUEST_REJECTED if !stream.reply.has_reply() => {
                StreamEnd::Rejected(StreamRejection::Refused)
            }
            ErrorCode::H3_NO_ERROR if is_complete => StreamEnd::Complete,
            code => StreamEnd::Reset(code.into()),
        };
        let code = ErrorCode::H3_REQUEST_CANCELLED;
        self.streams.end(id, end, code, true, sink);
        Ok(())
    }

    fn request_stopped(
        &mut self,
        id: u64,
        code: ErrorCode,
        sink: &mut impl EventSink,
    ) -> Result<(), Http3Error> {
        self.check_opened(id)?;
        let Some(stream) = self.streams.open.get(id) else {
            return Ok(());
        };
        if code != ErrorCode::H3_REQUEST_REJECTED || stream.reply.has_reply() {
            self.streams.stop_request(id, code);
            return Ok(());
        }
        self.streams.counters.resets_received.add(code);
        let end = StreamEnd::Rejected(StreamRejection::Refused);
        let code = ErrorCode::H3_REQUEST_CANCELLED;
        self.streams.end(id, end, code, false, sink);
        Ok(())
    }

    /// Takes bytes of a stream that the server has opened.
    fn receive_from_server(
        &mut self,
        id: u64,
        mut bytes: &[u8],
        fin: bool,
        sink: &mut impl EventSink,
    ) -> Result<(), Http3Error> {
        while let Some(frame) = self.server.next(id, &mut bytes)? {
            self.control_frame(frame, sink)?;
        }
        if fin { self.server.end(id) } else { Ok(()) }
    }

    fn check_opened(&self, id: u64) -> Result<(), Http3Error> {
        if self.streams.was_opened(id) {
            Ok(())
        } else {
            Err(NEVER_OPENED)
        }
    }
}

/// Bidirectional streams of servers are for extensions (RFC 9114, section 6.1).
const SERVER_OPENED: Http3Error = Http3Error::new(
    ErrorCode::H3_STREAM_CREATION_ERROR,
    "a bidirectional stream of the server",
);

/// QUIC does not permit the following three, so that a transport reports them before.
const NOT_RECEIVING: Http3Error = Http3Error::new(
    ErrorCode::H3_STREAM_CREATION_ERROR,
    "bytes on a stream that only the client sends on",
);
const NOT_SENDING: Http3Error = Http3Error::new(
    ErrorCode::H3_STREAM_CREATION_ERROR,
    "STOP_SENDING for a stream that only the server sends on",
);
const NEVER_OPENED: Http3Error = Http3Error::new(
    ErrorCode::H3_STREAM_CREATION_ERROR,
    "a stream of the client that was never opened",
);
