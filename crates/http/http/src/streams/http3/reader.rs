//! Received bytes of a stream to frames.
//!
//! Frames that have to be whole wait until they are, without a copy if they lie in one piece of input. DATA is passed
//! on in pieces, and other frames are skipped, so that at most one frame is held.

use super::error::ReceiveFault;
use super::frame::kind;
use super::varint::PartialInteger;

/// Way of reading the payload of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PayloadForm {
    /// Passed on when it is complete.
    Whole,
    /// Passed on as it arrives.
    Pieces,
    /// Not passed on.
    Skipped,
}

/// A part of the received stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReceivedPiece<'a> {
    /// A complete frame.
    Frame(u64, &'a [u8]),
    /// A part of the content of DATA.
    Content(&'a [u8]),
}

#[derive(Clone, Copy, Debug, Default)]
enum FrameReaderState {
    /// Before or inside the type.
    #[default]
    Kind,
    /// Before or inside the length of a frame of this type.
    Length(u64),
    /// Inside a payload: type and missing bytes.
    Whole(u64, usize),
    /// Inside DATA.
    Pieces(u64),
    /// Inside a frame that is not passed on.
    Skipped(u64),
}

/// Position in the received stream.
#[derive(Debug, Default)]
pub(super) struct Http3FrameReader {
    state: FrameReaderState,
    integer: PartialInteger,
    /// The received part of an incomplete payload.
    held: Vec<u8>,
    /// The held bytes were passed on and are not needed any more.
    done: bool,
}

impl Http3FrameReader {
    /// Takes the next piece from `input`. `None` if more bytes are needed.
    ///
    /// `form` decides by type and length how a payload is read, or rejects the frame. [`PayloadForm::Whole`] is for
    /// lengths that memory permits.
    pub(super) fn next<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
        form: impl Fn(u64, u64) -> Result<PayloadForm, ReceiveFault>,
    ) -> Result<Option<ReceivedPiece<'s>>, ReceiveFault> {
        if std::mem::take(&mut self.done) {
            self.held.clear();
        }
        loop {
            match self.state {
                FrameReaderState::Kind => match self.integer.take(input) {
                    Some(kind) => self.state = FrameReaderState::Length(kind),
                    None => return Ok(None),
                },
                FrameReaderState::Length(kind) => {
                    let Some(length) = self.integer.take(input) else {
                        return Ok(None);
                    };
                    self.state = match form(kind, length)? {
                        PayloadForm::Whole => {
                            let length = usize::try_from(length).expect("memory permits it");
                            FrameReaderState::Whole(kind, length)
                        }
                        PayloadForm::Pieces => FrameReaderState::Pieces(length),
                        PayloadForm::Skipped => FrameReaderState::Skipped(length),
                    };
                }
                FrameReaderState::Whole(kind, missing) => {
                    return Ok(self.whole(kind, missing, input));
                }
                FrameReaderState::Pieces(left) => {
                    let (piece, left) = take(input, left);
                    self.state = match left {
                        0 => FrameReaderState::Kind,
                        _ => FrameReaderState::Pieces(left),
                    };
                    if !piece.is_empty() {
                        return Ok(Some(ReceivedPiece::Content(piece)));
                    }
                    if left > 0 {
                        return Ok(None);
                    }
                }
                FrameReaderState::Skipped(left) => match take(input, left).1 {
                    0 => self.state = FrameReaderState::Kind,
                    left => {
                        self.state = FrameReaderState::Skipped(left);
                        return Ok(None);
                    }
                },
            }
        }
    }

    /// Takes a payload of which `missing` bytes have not arrived.
    fn whole<'s, 'i: 's>(
        &'s mut self,
        kind: u64,
        missing: usize,
        input: &mut &'i [u8],
    ) -> Option<ReceivedPiece<'s>> {
        let Some((part, rest)) = input.split_at_checked(missing) else {
            self.held.extend_from_slice(input);
            self.state = FrameReaderState::Whole(kind, missing - input.len());
            *input = &[];
            return None;
        };
        *input = rest;
        self.state = FrameReaderState::Kind;
        if self.held.is_empty() {
            return Some(ReceivedPiece::Frame(kind, part));
        }
        self.held.extend_from_slice(part);
        self.done = true;
        Some(ReceivedPiece::Frame(kind, &self.held))
    }

    /// True if no part of a frame is missing.
    pub(super) fn is_between_frames(&self) -> bool {
        matches!(self.state, FrameReaderState::Kind) && self.integer.is_empty()
    }

    /// Prepares for another stream, and keeps at most `kept` bytes of memory.
    pub(super) fn reset(&mut self, kept: usize) {
        self.state = FrameReaderState::Kind;
        self.integer = PartialInteger::default();
        self.held.clear();
        self.held.shrink_to(kept);
        self.done = false;
    }
}

/// Takes at most `left` bytes. Returns them and the number that is still missing.
fn take<'a>(input: &mut &'a [u8], left: u64) -> (&'a [u8], u64) {
    let length = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
    let (bytes, rest) = input.split_at(length);
    *input = rest;
    (bytes, left - length as u64)
}

/// True for a frame type that no stream of HTTP/3 may have (RFC 9114, section 7.2.8).
pub(super) fn is_of_http2(kind: u64) -> bool {
    kind::OF_HTTP2.contains(&kind)
}
