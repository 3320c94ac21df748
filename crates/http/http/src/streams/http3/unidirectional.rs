//! Unidirectional streams that the peer opens (RFC 9114, section 6.2): their types, the frames of the control stream, and
//! the instructions of QPACK.

use super::control_form::{Role, control_form};
use super::error::{Http3Error, ReceiveFault};
use super::frame::{kind, stream};
use super::reader::{Http3FrameReader, ReceivedPiece};
use super::varint::{self, PartialInteger};
use super::{ErrorCode, settings};

/// Maximum number of the peer's streams that are open at once. QUIC's limit for them is the caller's, and lower.
const LIMIT: usize = 128;

/// Type of a stream of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UniKind {
    Control,
    QpackEncoder,
    QpackDecoder,
    /// An unknown type. Its content is ignored.
    Unknown,
}

/// The part of a stream before its type, or the type.
#[derive(Clone, Copy, Debug)]
enum UniState {
    Type(PartialInteger),
    Known(UniKind),
}

/// A frame of a control stream, with its integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlFrame {
    Settings,
    GoAway(u64),
    MaxPushId(u64),
}

/// The open streams of the peer.
#[derive(Debug)]
pub(super) struct PeerStreams {
    peer: Role,
    open: Vec<(u64, UniState)>,
    has_control: bool,
    has_encoder: bool,
    has_decoder: bool,
    /// Frames of the control stream.
    control: Http3FrameReader,
    has_settings: bool,
    decoder: DecoderInstructions,
}

impl PeerStreams {
    /// The state before the first stream.
    pub(super) fn new(peer: Role) -> Self {
        Self {
            peer,
            open: Vec::new(),
            has_control: false,
            has_encoder: false,
            has_decoder: false,
            control: Http3FrameReader::default(),
            has_settings: false,
            decoder: DecoderInstructions::default(),
        }
    }

    /// True if SETTINGS have arrived.
    pub(super) const fn has_settings(&self) -> bool {
        self.has_settings
    }

    /// Takes bytes of a stream from `input`, to the end of the next frame of the control stream. `None` if `input` has
    /// no more.
    pub(super) fn next(
        &mut self,
        id: u64,
        input: &mut &[u8],
    ) -> Result<Option<ControlFrame>, Http3Error> {
        match self.kind(id, input)? {
            Some(UniKind::Control) => self.control_frame(input).map_err(|fault| match fault {
                ReceiveFault::Connection(error) => error,
                ReceiveFault::Stream(_) => {
                    unreachable!("the control stream has no faults of its own")
                }
            }),
            Some(UniKind::QpackEncoder) => check_encoder(input).map(|()| None),
            Some(UniKind::QpackDecoder) => self.decoder.check(input).map(|()| None),
            Some(UniKind::Unknown) | None => Ok(None),
        }
    }

    fn control_frame(&mut self, input: &mut &[u8]) -> Result<Option<ControlFrame>, ReceiveFault> {
        let (has_settings, peer) = (self.has_settings, self.peer);
        let form = |kind, length| control_form(kind, length, has_settings, peer);
        let frame = match self.control.next(input, form)? {
            None => return Ok(None),
            Some(ReceivedPiece::Frame(kind::SETTINGS, payload)) => {
                settings::check(payload)?;
                self.has_settings = true;
                ControlFrame::Settings
            }
            Some(ReceivedPiece::Frame(kind::MAX_PUSH_ID, payload)) => {
                let reason = "MAX_PUSH_ID of an invalid length";
                ControlFrame::MaxPushId(only_integer(payload, reason)?)
            }
            Some(ReceivedPiece::Frame(_, payload)) => {
                let reason = "GOAWAY of an invalid length";
                ControlFrame::GoAway(only_integer(payload, reason)?)
            }
            Some(ReceivedPiece::Content(_)) => unreachable!("the control stream has no content"),
        };
        Ok(Some(frame))
    }

    /// Takes the type of a stream from `input`. `None` if more bytes are needed.
    fn kind(&mut self, id: u64, input: &mut &[u8]) -> Result<Option<UniKind>, Http3Error> {
        let position = match self.open.iter().position(|(other, _)| *other == id) {
            Some(position) => position,
            None if self.open.len() == LIMIT => {
                let reason = "more than 128 unidirectional streams at once";
                return Err(Http3Error::new(ErrorCode::H3_EXCESSIVE_LOAD, reason));
            }
            None => {
                let state = UniState::Type(PartialInteger::default());
                self.open.push((id, state));
                self.open.len() - 1
            }
        };
        let kind = match &mut self.open[position].1 {
            UniState::Known(kind) => return Ok(Some(*kind)),
            UniState::Type(integer) => integer.take(input),
        };
        let Some(kind) = kind else {
            return Ok(None);
        };
        let kind = self.begin(kind)?;
        self.open[position].1 = UniState::Known(kind);
        Ok(Some(kind))
    }

    /// Checks a new stream of this type.
    fn begin(&mut self, kind: u64) -> Result<UniKind, Http3Error> {
        let (kind, is_second) = match kind {
            stream::CONTROL => {
                let before = std::mem::replace(&mut self.has_control, true);
                (UniKind::Control, before)
            }
            stream::QPACK_ENCODER => {
                let before = std::mem::replace(&mut self.has_encoder, true);
                (UniKind::QpackEncoder, before)
            }
            stream::QPACK_DECODER => {
                let before = std::mem::replace(&mut self.has_decoder, true);
                (UniKind::QpackDecoder, before)
            }
            stream::PUSH => return Err(push(self.peer)),
            _ => (UniKind::Unknown, false),
        };
        if is_second {
            let reason = "a second control stream or stream of QPACK";
            return Err(Http3Error::new(ErrorCode::H3_STREAM_CREATION_ERROR, reason));
        }
        Ok(kind)
    }

    /// Removes a stream that the peer has ended or reset. The connection needs some of them.
    pub(super) fn end(&mut self, id: u64) -> Result<(), Http3Error> {
        let Some(position) = self.open.iter().position(|(other, _)| *other == id) else {
            return Ok(());
        };
        match self.open.swap_remove(position).1 {
            UniState::Type(_) | UniState::Known(UniKind::Unknown) => Ok(()),
            UniState::Known(_) => Err(CLOSED),
        }
    }
}

/// The fault of a stream of a push. No push was permitted (RFC 9114, section 4.6), and a client cannot push (section
/// 6.2.2).
const fn push(peer: Role) -> Http3Error {
    match peer {
        Role::Server => Http3Error::new(ErrorCode::H3_ID_ERROR, "a push, which was not permitted"),
        Role::Client => {
            Http3Error::new(ErrorCode::H3_STREAM_CREATION_ERROR, "a push of the client")
        }
    }
}

/// Reads a payload of one integer.
fn only_integer(mut payload: &[u8], reason: &'static str) -> Result<u64, Http3Error> {
    let integer = varint::decode(&mut payload).filter(|_| payload.is_empty());
    integer.ok_or(Http3Error::frame(reason))
}

/// The end of a critical stream (RFC 9114, section 6.2.1; RFC 9204, section 4.2).
pub(super) const CLOSED: Http3Error = Http3Error::new(
    ErrorCode::H3_CLOSED_CRITICAL_STREAM,
    "the end of a control stream or a stream of QPACK",
);

/// Checks instructions of the peer's encoder (RFC 9204, section 4.3). Without a dynamic table it may only repeat that
/// the capacity is 0.
fn check_encoder(bytes: &[u8]) -> Result<(), Http3Error> {
    const CAPACITY_0: u8 = 0x20;
    if bytes.iter().all(|byte| *byte == CAPACITY_0) {
        return Ok(());
    }
    let reason = "an instruction for the dynamic table, whose capacity is 0";
    let code = ErrorCode::QPACK_ENCODER_STREAM_ERROR;
    Err(Http3Error::new(code, reason))
}

/// The instructions of the peer's decoder (RFC 9204, section 4.4). It may cancel streams, although that has no effect
/// without a dynamic table.
#[derive(Debug, Default)]
struct DecoderInstructions {
    /// Bytes of an incomplete integer after its prefix.
    rest: Option<u8>,
}

impl DecoderInstructions {
    /// Bytes that an integer of 62 bits has after a prefix.
    const MAX_REST: u8 = 9;

    fn check(&mut self, bytes: &[u8]) -> Result<(), Http3Error> {
        let error = |reason| {
            let code = ErrorCode::QPACK_DECODER_STREAM_ERROR;
            Err(Http3Error::new(code, reason))
        };
        for byte in bytes {
            self.rest = match (self.rest, byte) {
                (None, 0x7f) => Some(0),
                (None, 0x40..0x7f) => None,
                (None, _) => {
                    return error("an acknowledgement of entries that were never sent");
                }
                (Some(Self::MAX_REST), _) => return error("an integer above 2^62"),
                (Some(_), 0..0x80) => None,
                (Some(length), _) => Some(length + 1),
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancellations_of_streams_are_permitted_in_pieces() {
        let mut decoder = DecoderInstructions::default();
        for byte in b"\x40\x7f\x80\xff\x01\x7e\x7f\x00" {
            decoder.check(&[*byte]).unwrap();
        }
        assert!(decoder.rest.is_none());
        decoder
            .check(b"\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff")
            .unwrap();
        assert!(decoder.check(b"\x01").is_err());
        for other in [0x00, 0x01, 0x3f, 0x80, 0xff] {
            assert!(DecoderInstructions::default().check(&[other]).is_err());
        }
    }
}
