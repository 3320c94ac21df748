//! The state machine of a client's connection.
//!
//! This file has the state and the calls about whole streams. `send` opens streams, sends bodies and passes output on;
//! `receive` and its stages `reply` and `control` take bytes of streams and make events.

mod control;
mod receive;
mod reply;
mod send;

use std::sync::Arc;

use super::ErrorCode;
use super::control_form::Role;
use super::error::Http3Error;
use super::frame::{StreamId, kind};
use super::qpack::{FieldPlan, SectionDecoder};
use super::settings;
use super::streams::StreamSet;
use super::unidirectional::PeerStreams;
use crate::streams::counters::ClientCounters;
use crate::streams::head::LIST_LIMIT;
use crate::streams::reply_decoder::ReplyDecoder;
use crate::streams::request::OpenError;
use crate::streams::shutdown_state::ShutdownState;

/// The client's end of an HTTP/3 connection.
///
/// Order of calls:
///
/// 1. [`Self::new`]: the output begins with the control stream and SETTINGS.
/// 2. [`Self::permit_streams`] with QUIC's limit of bidirectional streams, at first and after each change.
/// 3. [`Self::open`] while [`Self::room`] is above 0, then [`Self::send_body`] if the request has a body.
/// 4. [`Self::output`] until it returns nothing: a write is followed by [`Self::sent`] or [`Self::blocked`], and
///    [`Self::writable`] when the transport accepts more.
/// 5. [`Self::receive`], [`Self::receive_reset`] and [`Self::receive_stop`], then [`Self::next_writable`] until
///    it returns nothing, and [`Self::output`] again.
/// 6. [`Self::close`] when the connection is not needed any more. The caller then closes QUIC with H3_NO_ERROR.
///
/// After an error of a receiving call there is no output: the caller closes QUIC with the code of the error.
/// [`Self::open_tokens`] lists the streams without an end. No memory is allocated for a request with constant fields in
/// steady state.
#[derive(Debug)]
pub struct Http3StreamClient {
    state: ShutdownState<Http3Error>,
    plan: Arc<FieldPlan>,
    /// The field section of the request that is being opened.
    section: Vec<u8>,
    streams: StreamSet,
    decoder: ReplyDecoder<SectionDecoder>,
    server: PeerStreams,
}

impl Http3StreamClient {
    /// Creates the state of a new connection for the requests of a plan. No stream can be opened before
    /// [`Self::permit_streams`].
    pub fn new(plan: Arc<FieldPlan>) -> Self {
        Self {
            state: ShutdownState::new(),
            plan,
            section: Vec::new(),
            streams: StreamSet::new(settings::opening(LIST_LIMIT)),
            decoder: ReplyDecoder::default(),
            server: PeerStreams::new(Role::Server),
        }
    }

    /// Sets the number of bidirectional streams that the server permits since the beginning of the connection (RFC
    /// 9000, section 4.6). A smaller number than before is ignored.
    pub fn permit_streams(&mut self, total: u64) {
        self.streams.permit(total);
    }

    /// Streams that may be opened now.
    ///
    /// 0 after GOAWAY, after an error, without identifiers, and while more than 256 KiB of output wait that the
    /// transport would accept.
    pub fn room(&self) -> usize {
        match self.check_open() {
            Ok(()) => usize::try_from(self.streams.free()).unwrap_or(usize::MAX),
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
        streams.map(|(id, stream)| (StreamId::new(id), stream.token))
    }

    /// Resets a stream in both directions, which then ends without an event. Returns false if it has ended before.
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode) -> bool {
        self.streams.cancel(stream.number(), code)
    }

    /// Sends GOAWAY (RFC 9114, section 5.2). No stream can be opened afterwards; open ones continue.
    pub fn close(&mut self) {
        if self.state.close() {
            // The identifier is that of a push, and the server has sent none.
            self.streams
                .order
                .append_control(&[kind::GOAWAY as u8, 1, 0]);
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
        if self.streams.free() == 0 || self.streams.order.is_full() {
            return Err(OpenError::Full);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::http3::varint;
    use crate::streams::request::StreamRequest;

    #[test]
    fn identifiers_end() {
        let mut client = Http3StreamClient::new(Arc::new(FieldPlan::default()));
        client.permit_streams(u64::MAX);
        client.streams.skip_to(varint::MAX - 3);
        let request = StreamRequest::default();
        let last = client.open(0, &request).unwrap();
        assert_eq!(last, StreamId::new(varint::MAX - 3));
        assert_eq!(client.room(), 0);
        assert_eq!(client.open(1, &request), Err(OpenError::Exhausted));
        assert!(!client.is_usable());
        assert!(client.streams.add_up());
    }
}
