//! Frames of the server's control stream.

use super::Http3StreamClient;
use crate::streams::event::{ConnectionEvent, EventSink, StreamEnd, StreamRejection};
use crate::streams::http3::ErrorCode;
use crate::streams::http3::error::Http3Error;
use crate::streams::http3::frame::{StreamId, StreamKind};
use crate::streams::http3::streams::OpenRequestStream;
use crate::streams::http3::unidirectional::ControlFrame;

impl Http3StreamClient {
    /// Handles a frame of the control stream.
    pub(super) fn control_frame(
        &mut self,
        frame: ControlFrame,
        sink: &mut impl EventSink,
    ) -> Result<(), Http3Error> {
        match frame {
            ControlFrame::Settings => {
                sink.connection(ConnectionEvent::SettingsChanged);
                Ok(())
            }
            ControlFrame::GoAway(first) => self.goaway(first, sink),
            ControlFrame::MaxPushId(_) => unreachable!("MAX_PUSH_ID of a server was rejected"),
        }
    }

    /// Handles GOAWAY (RFC 9114, sections 5.2 and 7.2.6). A graceful server sends two, the first with a high identifier.
    fn goaway(&mut self, first: u64, sink: &mut impl EventSink) -> Result<(), Http3Error> {
        let id_error = |reason| Err(Http3Error::new(ErrorCode::H3_ID_ERROR, reason));
        if StreamId::new(first).kind() != StreamKind::ClientBidirectional {
            return id_error("GOAWAY with a stream that is no request");
        }
        if !self.state.receive_goaway(first) {
            return id_error("a second GOAWAY with a higher stream");
        }
        let code = ErrorCode::H3_NO_ERROR;
        self.streams.counters.goaways.add(code);
        sink.connection(ConnectionEvent::GoAway {
            first_rejected: first,
            code: code.into(),
            debug: b"",
        });
        let is_rejected = |id, stream: &OpenRequestStream| id >= first && !stream.reply.has_reply();
        for id in self.streams.open.matching(is_rejected) {
            let end = StreamEnd::Rejected(StreamRejection::GoAway);
            let code = ErrorCode::H3_REQUEST_CANCELLED;
            self.streams.end(id, end, code, false, sink);
        }
        Ok(())
    }
}
