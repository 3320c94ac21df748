//! Frames of the server's control stream.

use super::Client;
use crate::streams::event::{ConnectionEvent, EventSink, StreamEnd, StreamRejection};
use crate::streams::http3::ErrorCode;
use crate::streams::http3::control_form::{Role, control_form};
use crate::streams::http3::error::{Http3Error, ReceiveFault};
use crate::streams::http3::frame::{StreamId, StreamKind, kind};
use crate::streams::http3::reader::{Http3FrameReader, ReceivedPiece};
use crate::streams::http3::{settings, varint};

impl Client {
    /// Handles the frames in bytes of the control stream.
    pub(super) fn control_frames(
        &mut self,
        mut bytes: &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), Http3Error> {
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
        reader: &mut Http3FrameReader,
        bytes: &mut &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ReceiveFault> {
        loop {
            let has_settings = self.has_settings;
            let form = |kind, length| control_form(kind, length, has_settings, Role::Server);
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
    fn goaway(&mut self, mut payload: &[u8], sink: &mut impl EventSink) -> Result<(), Http3Error> {
        let id_error = |reason| Err(Http3Error::new(ErrorCode::H3_ID_ERROR, reason));
        let first = varint::decode(&mut payload).filter(|_| payload.is_empty());
        let Some(first) = first else {
            return Err(Http3Error::frame("GOAWAY of an invalid length"));
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
