//! Frames about the connection and about single streams, without fields or content.

use super::Http2StreamClient;
use crate::streams::event::{ConnectionEvent, EventSink, StreamEnd, StreamRejection};
use crate::streams::http2::ErrorCode;
use crate::streams::http2::error::{ConnectionError, StreamFault};
use crate::streams::http2::frame::{FrameHead, StreamId, flag, kind};
use crate::streams::http2::settings::SettingsChange;
use crate::streams::http2::streams::OpenStream;

impl Http2StreamClient {
    /// Handles SETTINGS (RFC 9113, section 6.5): applies and acknowledges them.
    pub(super) fn settings(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ConnectionError> {
        if head.stream != 0 {
            return Err(ConnectionError::protocol("SETTINGS on a stream"));
        }
        if head.has(flag::ACK) {
            return match payload {
                [] => Ok(()),
                _ => Err(ConnectionError::size(
                    "an acknowledgement of SETTINGS has a payload",
                )),
            };
        }
        let change = SettingsChange::parse(payload)?;
        let window = self.sender.apply(&change);
        if window != 0 {
            self.streams.change_windows(window)?;
        }
        self.sender.answer(kind::SETTINGS, &[])?;
        if let Some(limit) = change.streams {
            self.sender.limit_streams(limit);
            sink.connection(ConnectionEvent::Limit(limit));
        }
        sink.connection(ConnectionEvent::SettingsChanged);
        Ok(())
    }

    /// Answers PING (RFC 9113, section 6.7). The client sends none itself, so an answer means nothing.
    pub(super) fn pinged(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<(), ConnectionError> {
        if head.stream != 0 {
            return Err(ConnectionError::protocol("PING on a stream"));
        }
        if payload.len() != 8 {
            return Err(ConnectionError::size("PING of an invalid length"));
        }
        if head.has(flag::ACK) {
            Ok(())
        } else {
            self.sender.answer(kind::PING, payload)
        }
    }

    /// Handles GOAWAY (RFC 9113, section 6.8). A graceful server sends two, the first with the highest identifier.
    pub(super) fn goaway(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ConnectionError> {
        if head.stream != 0 {
            return Err(ConnectionError::protocol("GOAWAY on a stream"));
        }
        let Some((last, rest)) = payload.split_first_chunk() else {
            return Err(ConnectionError::size("GOAWAY of an invalid length"));
        };
        let Some((code, debug)) = rest.split_first_chunk() else {
            return Err(ConnectionError::size("GOAWAY of an invalid length"));
        };
        let last = u32::from_be_bytes(*last) & StreamId::MAX;
        let code = ErrorCode(u32::from_be_bytes(*code));
        let first_rejected = u64::from(last) + 1;
        if !self.state.receive_goaway(first_rejected) {
            return Err(ConnectionError::protocol(
                "a second GOAWAY with a higher stream",
            ));
        }
        self.streams.counters.goaways.add(code);
        sink.connection(ConnectionEvent::GoAway {
            first_rejected,
            code: code.into(),
            debug,
        });
        let is_rejected = |id, stream: &OpenStream| id > last && !stream.reply.has_reply();
        for id in self.streams.open.matching(is_rejected) {
            self.end(id, StreamEnd::Rejected(StreamRejection::GoAway), sink);
        }
        Ok(())
    }

    /// Handles RST_STREAM (RFC 9113, section 6.4). On a stream that has ended it means nothing.
    pub(super) fn stream_reset(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ConnectionError> {
        let code: [u8; 4] = payload
            .try_into()
            .map_err(|_| ConnectionError::size("RST_STREAM of an invalid length"))?;
        self.streams.check_opened(head.stream)?;
        let Some(stream) = self.streams.open.get(head.stream) else {
            return Ok(());
        };
        let code = ErrorCode(u32::from_be_bytes(code));
        self.streams.counters.resets_received.add(code);
        // After a part of a reply, a rejection is a mistake of the server: the request was processed.
        let end = match code {
            ErrorCode::REFUSED_STREAM if !stream.reply.has_reply() => {
                StreamEnd::Rejected(StreamRejection::Refused)
            }
            code => StreamEnd::Reset(code.into()),
        };
        self.end(head.stream, end, sink);
        Ok(())
    }

    /// Handles WINDOW_UPDATE (RFC 9113, section 6.9).
    pub(super) fn window_update(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        sink: &mut impl EventSink,
    ) -> Result<(), ConnectionError> {
        let increment: [u8; 4] = payload
            .try_into()
            .map_err(|_| ConnectionError::size("WINDOW_UPDATE of an invalid length"))?;
        let increment = u32::from_be_bytes(increment) & StreamId::MAX;
        if head.stream == 0 {
            if increment == 0 {
                return Err(ConnectionError::protocol("WINDOW_UPDATE of 0 bytes"));
            }
            return Ok(self.sender.enlarge_window(increment)?);
        }
        self.streams.check_opened(head.stream)?;
        if let Err(fault) = self.streams.enlarge_window(head.stream, increment) {
            self.fail(head.stream, fault, false, sink);
        }
        Ok(())
    }

    /// Handles PRIORITY, which is deprecated (RFC 9113, section 6.3).
    pub(super) fn priority(
        &mut self,
        head: FrameHead,
        sink: &mut impl EventSink,
    ) -> Result<(), ConnectionError> {
        if head.stream == 0 {
            return Err(ConnectionError::protocol("PRIORITY without a stream"));
        }
        if head.length != 5 {
            let reason = "PRIORITY of an invalid length";
            let fault = StreamFault::new(ErrorCode::FRAME_SIZE_ERROR, reason);
            if self.streams.open.get(head.stream).is_some() {
                self.fail(head.stream, fault, false, sink);
            }
        }
        Ok(())
    }
}
