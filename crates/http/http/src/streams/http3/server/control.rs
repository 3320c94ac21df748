//! The control streams of both ends, and the client's streams of QPACK.

use crate::streams::http3::control_form::Role;
use crate::streams::http3::error::Http3Error;
use crate::streams::http3::frame::{StreamId, StreamKind, kind};
use crate::streams::http3::unidirectional::{CLOSED, ControlFrame, PeerStreams};
use crate::streams::http3::{ErrorCode, settings, varint};

use super::LIST_LIMIT;

/// Bytes that begin our control stream, which stays open as long as the connection: its type, and SETTINGS.
pub fn opening() -> Vec<u8> {
    settings::opening(LIST_LIMIT)
}

/// Appends GOAWAY for our control stream (RFC 9114, section 5.2). Requests from the stream `first_rejected` on are not
/// processed. A later GOAWAY must not have a higher stream.
pub fn append_goaway(first_rejected: StreamId, bytes: &mut Vec<u8>) {
    debug_assert!(
        first_rejected.kind() == StreamKind::ClientBidirectional,
        "a request has a bidirectional stream of the client"
    );
    let mut payload = Vec::new();
    varint::encode(first_rejected.number(), &mut payload);
    varint::encode(kind::GOAWAY, bytes);
    varint::encode(payload.len() as u64, bytes);
    bytes.extend_from_slice(&payload);
}

/// The unidirectional streams of the client.
///
/// After an error the caller closes the connection with its code, and calls nothing more.
#[derive(Debug)]
pub struct ClientStreams {
    streams: PeerStreams,
    /// The last MAX_PUSH_ID.
    max_push: Option<u64>,
    /// Push of the last GOAWAY.
    goaway: u64,
}

impl Default for ClientStreams {
    fn default() -> Self {
        Self {
            streams: PeerStreams::new(Role::Client),
            max_push: None,
            goaway: u64::MAX,
        }
    }
}

impl ClientStreams {
    /// Takes bytes of a unidirectional stream. `fin` states that the stream ends after them.
    pub fn receive(
        &mut self,
        stream: StreamId,
        mut bytes: &[u8],
        fin: bool,
    ) -> Result<(), Http3Error> {
        debug_assert!(
            stream.kind() == StreamKind::ClientUnidirectional,
            "requests have a reader of their own"
        );
        let id = stream.number();
        while let Some(frame) = self.streams.next(id, &mut bytes)? {
            match frame {
                ControlFrame::Settings => {}
                ControlFrame::MaxPushId(push) => self.max_push(push)?,
                ControlFrame::GoAway(push) => self.goaway(push)?,
            }
        }
        if fin { self.streams.end(id) } else { Ok(()) }
    }

    /// Handles RESET_STREAM of a unidirectional stream. The connection needs some of them.
    pub fn receive_reset(&mut self, stream: StreamId) -> Result<(), Http3Error> {
        self.streams.end(stream.number())
    }

    /// The error of a client that stops our control stream (RFC 9114, section 6.2.1).
    pub const fn control_stopped() -> Http3Error {
        CLOSED
    }

    /// True if the client's SETTINGS have arrived.
    pub const fn has_settings(&self) -> bool {
        self.streams.has_settings()
    }

    /// Handles MAX_PUSH_ID (RFC 9114, section 7.2.7). Nothing is pushed, whatever it permits.
    fn max_push(&mut self, id: u64) -> Result<(), Http3Error> {
        if self.max_push.replace(id).is_some_and(|before| id < before) {
            let reason = "MAX_PUSH_ID below the one before";
            return Err(Http3Error::new(ErrorCode::H3_ID_ERROR, reason));
        }
        Ok(())
    }

    /// Handles GOAWAY of the client, which names a push (RFC 9114, section 7.2.6). Its open requests continue.
    fn goaway(&mut self, id: u64) -> Result<(), Http3Error> {
        if std::mem::replace(&mut self.goaway, id) < id {
            let reason = "a second GOAWAY with a higher push";
            return Err(Http3Error::new(ErrorCode::H3_ID_ERROR, reason));
        }
        Ok(())
    }
}
