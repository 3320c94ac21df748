//! Frames of the server's control stream.

use super::Client;
use crate::event::{ConnectionEvent, EventSink, StreamEnd, StreamRejection};
use crate::http3::ErrorCode;
use crate::http3::error::{ConnectionError, ReceiveFault};
use crate::http3::frame::{StreamId, StreamKind, kind};
use crate::http3::reader::{FrameReader, PayloadForm, ReceivedPiece, is_of_http2};
use crate::http3::{settings, varint};

/// Longest SETTINGS, in bytes.
const SETTINGS_LIMIT: u64 = 4 << 10;

impl Client {
    /// Handles the frames in bytes of the control stream.
    pub(super) fn control_frames(
        &mut self,
        mut bytes: &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ConnectionError> {
        let mut reader = std::mem::take(&mut self.control);
        let result = self.read_control(&mut reader, &mut bytes, sink);
        self.control = reader;
        result.map_err(|fault| match fault {
            ReceiveFault::Connection(error) => error,
            ReceiveFault::Stream(_) => unreachable!("the control stream has no faults of its own"),
        })
    }

    fn read_control(
        &mut self,
        reader: &mut FrameReader,
        bytes: &mut &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ReceiveFault> {
        loop {
            let has_settings = self.has_settings;
            let form = |kind, length| payload_form(kind, length, has_settings);
            let Some(piece) = reader.next(bytes, form)? else {
                return Ok(());
            };
            match piece {
                ReceivedPiece::Frame(kind::SETTINGS, payload) => {
                    settings::check(payload)?;
                    self.has_settings = true;
                    sink.connection(ConnectionEvent::SettingsChanged);
                }
                ReceivedPiece::Frame(_, payload) => self.goaway(payload, sink)?,
                ReceivedPiece::Content(_) => unreachable!("the control stream has no content"),
            }
        }
    }

    /// Handles GOAWAY (RFC 9114, sections 5.2 and 7.2.6). A graceful server sends two, the first with a high identifier.
    fn goaway(
        &mut self,
        mut payload: &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ConnectionError> {
        let id_error = |reason| Err(ConnectionError::new(ErrorCode::H3_ID_ERROR, reason));
        let first = varint::decode(&mut payload).filter(|_| payload.is_empty());
        let Some(first) = first else {
            return Err(ConnectionError::frame("GOAWAY of an invalid length"));
        };
        if StreamId::new(first).kind() != StreamKind::ClientBidirectional {
            return id_error("GOAWAY with a stream that is no request");
        }
        if first > self.first_rejected {
            return id_error("a second GOAWAY with a higher stream");
        }
        self.first_rejected = first;
        self.going_away = true;
        let code = ErrorCode::H3_NO_ERROR;
        self.counters.goaways.add(code);
        sink.connection(ConnectionEvent::GoAway {
            first_rejected: first,
            code: code.into(),
            debug: b"",
        });
        for id in self.streams.without_reply(first) {
            let end = StreamEnd::Rejected(StreamRejection::GoAway);
            let code = ErrorCode::H3_REQUEST_CANCELLED;
            self.end(id, end, (code, false), sink);
        }
        Ok(())
    }
}

/// Checks the header of a frame on the control stream (RFC 9114, sections 6.2.1 and 7.2).
fn payload_form(kind: u64, length: u64, has_settings: bool) -> Result<PayloadForm, ReceiveFault> {
    let error = |code, reason| Err(ConnectionError::new(code, reason).into());
    if !has_settings && kind != kind::SETTINGS {
        let reason = "the first frame of the control stream is not SETTINGS";
        return error(ErrorCode::H3_MISSING_SETTINGS, reason);
    }
    match kind {
        kind::SETTINGS if has_settings => {
            error(ErrorCode::H3_FRAME_UNEXPECTED, "a second SETTINGS")
        }
        kind::SETTINGS if length > SETTINGS_LIMIT => {
            let reason = "SETTINGS longer than 4 KiB";
            error(ErrorCode::H3_EXCESSIVE_LOAD, reason)
        }
        kind::GOAWAY if length > 8 => {
            error(ErrorCode::H3_FRAME_ERROR, "GOAWAY of an invalid length")
        }
        kind::SETTINGS | kind::GOAWAY => Ok(PayloadForm::Whole),
        kind::CANCEL_PUSH => {
            let reason = "CANCEL_PUSH, although no push was permitted";
            error(ErrorCode::H3_ID_ERROR, reason)
        }
        kind::DATA | kind::HEADERS | kind::PUSH_PROMISE => {
            let reason = "a frame of a request on the control stream";
            error(ErrorCode::H3_FRAME_UNEXPECTED, reason)
        }
        kind::MAX_PUSH_ID => error(ErrorCode::H3_FRAME_UNEXPECTED, "MAX_PUSH_ID of the server"),
        _ if is_of_http2(kind) => error(ErrorCode::H3_FRAME_UNEXPECTED, "a frame type of HTTP/2"),
        // RFC 9114, section 9.
        _ => Ok(PayloadForm::Skipped),
    }
}
