//! Unidirectional streams that the peer opens (RFC 9114, section 6.2): their types, and the instructions of QPACK.

use super::ErrorCode;
use super::error::Http3Error;
use super::frame::stream;
use super::varint::PartialInteger;

/// Maximum number of the peer's streams that are open at once. QUIC's limit for them is the caller's, and lower.
const LIMIT: usize = 128;

/// Type of a stream of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UniKind {
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

/// The open streams of the peer.
#[derive(Debug)]
pub(super) struct PeerStreams {
    /// The fault of a stream of a push.
    push: Http3Error,
    open: Vec<(u64, UniState)>,
    has_control: bool,
    has_encoder: bool,
    has_decoder: bool,
}

impl PeerStreams {
    /// Streams of a server. No push was permitted (RFC 9114, section 4.6).
    pub(super) const fn of_server() -> Self {
        Self::new(Http3Error::new(
            ErrorCode::H3_ID_ERROR,
            "a push, which was not permitted",
        ))
    }

    /// Streams of a client, which cannot push (RFC 9114, section 6.2.2).
    pub(super) const fn of_client() -> Self {
        Self::new(Http3Error::new(
            ErrorCode::H3_STREAM_CREATION_ERROR,
            "a push of the client",
        ))
    }

    const fn new(push: Http3Error) -> Self {
        Self {
            push,
            open: Vec::new(),
            has_control: false,
            has_encoder: false,
            has_decoder: false,
        }
    }

    /// Takes the type of a stream from `input`. `None` if more bytes are needed.
    pub(super) fn kind(
        &mut self,
        id: u64,
        input: &mut &[u8],
    ) -> Result<Option<UniKind>, Http3Error> {
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
            stream::PUSH => return Err(self.push),
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

/// The end of a critical stream (RFC 9114, section 6.2.1; RFC 9204, section 4.2).
pub(super) const CLOSED: Http3Error = Http3Error::new(
    ErrorCode::H3_CLOSED_CRITICAL_STREAM,
    "the end of a control stream or a stream of QPACK",
);

/// Checks instructions of the peer's encoder (RFC 9204, section 4.3). Without a dynamic table it may only repeat that
/// the capacity is 0.
pub(super) fn check_encoder(bytes: &[u8]) -> Result<(), Http3Error> {
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
pub(super) struct DecoderInstructions {
    /// Bytes of an incomplete integer after its prefix.
    rest: Option<u8>,
}

impl DecoderInstructions {
    /// Bytes that an integer of 62 bits has after a prefix.
    const MAX_REST: u8 = 9;

    pub(super) fn check(&mut self, bytes: &[u8]) -> Result<(), Http3Error> {
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
