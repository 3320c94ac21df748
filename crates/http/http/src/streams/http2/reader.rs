//! Received bytes to frames.
//!
//! A frame is passed on when it is complete, without a copy if it lies in one piece of input. DATA is passed on in
//! pieces, so that at most one other frame is held.

use super::ConnectionError;
use super::frame::{FRAME_LIMIT, FrameHead, HEAD_LENGTH, flag, kind};

/// A frame that cannot be read.
#[derive(Debug)]
pub(super) struct FrameError {
    pub(super) head: FrameHead,
    pub(super) error: ConnectionError,
}

/// A part of the received stream.
#[derive(Debug)]
pub(super) enum ReceivedPiece<'a> {
    /// A complete frame, except DATA.
    Frame(FrameHead, &'a [u8]),
    /// A part of a DATA frame.
    Data(DataPiece<'a>),
}

/// A part of a DATA frame.
#[derive(Debug)]
pub(super) struct DataPiece<'a> {
    pub(super) stream: u32,
    /// Length of the frame with its padding in the first piece, and `None` in the others.
    pub(super) frame: Option<u32>,
    pub(super) content: &'a [u8],
    /// The frame ends the stream, with this piece or a later one.
    pub(super) has_end: bool,
    /// The last piece of a frame that ends the stream.
    pub(super) end_stream: bool,
}

#[derive(Debug, Default)]
enum ReaderState {
    /// Before or inside a frame header.
    #[default]
    Head,
    /// Before or inside the payload of a frame.
    Payload(FrameHead),
    /// Before the length of the padding of DATA.
    Padding(FrameHead),
    /// Inside the content or the padding of DATA.
    Data {
        head: FrameHead,
        begun: bool,
        content: u32,
        padding: u32,
    },
}

/// Position in the received stream.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    state: ReaderState,
    held: HeldBytes,
}

/// The received part of an incomplete header or payload.
#[derive(Debug, Default)]
struct HeldBytes {
    bytes: Vec<u8>,
    /// The bytes were passed on and are not needed any more.
    done: bool,
}

impl HeldBytes {
    fn is_empty(&self) -> bool {
        self.done || self.bytes.is_empty()
    }

    /// True if the held bytes and `input` have at least `length` bytes.
    fn completes(&self, input: &[u8], length: usize) -> bool {
        let held = if self.done { 0 } else { self.bytes.len() };
        held + input.len() >= length
    }

    /// Takes `length` bytes in one slice: from `input`, or from the held bytes and `input`.
    ///
    /// Without enough bytes, all of `input` is held.
    fn collect<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8], length: usize) -> Option<&'s [u8]> {
        if self.done {
            self.bytes.clear();
            self.done = false;
        }
        debug_assert!(self.bytes.len() <= length, "held bytes belong to one part");
        if self.bytes.is_empty() && input.len() >= length {
            let (bytes, rest) = input.split_at(length);
            *input = rest;
            return Some(bytes);
        }
        let missing = (length - self.bytes.len()).min(input.len());
        self.bytes.extend_from_slice(&input[..missing]);
        *input = &input[missing..];
        self.done = self.bytes.len() == length;
        self.done.then_some(&self.bytes)
    }
}

impl FrameReader {
    /// Takes the next piece from `input`. `None` if more bytes are needed.
    #[inline]
    pub(super) fn next<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<ReceivedPiece<'s>>, FrameError> {
        match self.whole(input) {
            Some(piece) => Ok(Some(piece)),
            None => self.next_part(input),
        }
    }

    /// Takes a valid frame that lies in `input` from its beginning to its end, without padding: the usual case.
    #[inline]
    fn whole<'i>(&self, input: &mut &'i [u8]) -> Option<ReceivedPiece<'i>> {
        if !matches!(self.state, ReaderState::Head) || !self.held.is_empty() {
            return None;
        }
        let (head, rest) = input.split_first_chunk()?;
        let head = FrameHead::parse(head);
        let (payload, rest) = rest.split_at_checked(head.length as usize)?;
        let piece = match after_head(head).ok()? {
            ReaderState::Payload(head) => ReceivedPiece::Frame(head, payload),
            ReaderState::Data { head, .. } => ReceivedPiece::Data(DataPiece {
                stream: head.stream,
                frame: Some(head.length),
                content: payload,
                has_end: head.has(flag::END_STREAM),
                end_stream: head.has(flag::END_STREAM),
            }),
            ReaderState::Head | ReaderState::Padding(_) => return None,
        };
        *input = rest;
        Some(piece)
    }

    /// Takes the next piece from the held bytes and `input`.
    fn next_part<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<ReceivedPiece<'s>>, FrameError> {
        loop {
            match self.state {
                ReaderState::Head => {
                    let Some(bytes) = self.held.collect(input, HEAD_LENGTH) else {
                        return Ok(None);
                    };
                    let bytes = bytes.try_into().expect("collected bytes have this length");
                    let head = FrameHead::parse(bytes);
                    let after = after_head(head);
                    self.state = after.map_err(|error| FrameError { head, error })?;
                }
                ReaderState::Payload(head) => {
                    let length = head.length as usize;
                    // The borrow ends if there is nothing to return.
                    if !self.held.completes(input, length) {
                        self.held.collect(input, length);
                        return Ok(None);
                    }
                    self.state = ReaderState::Head;
                    let payload = self.held.collect(input, length);
                    return Ok(payload.map(|payload| ReceivedPiece::Frame(head, payload)));
                }
                ReaderState::Padding(head) => {
                    let Some((padding, rest)) = input.split_first() else {
                        return Ok(None);
                    };
                    *input = rest;
                    let padding = u32::from(*padding);
                    let content = (head.length - 1).checked_sub(padding);
                    self.state = ReaderState::Data {
                        head,
                        begun: false,
                        content: content.ok_or(FrameError {
                            head,
                            error: TOO_MUCH_PADDING,
                        })?,
                        padding,
                    };
                }
                ReaderState::Data { .. } => return Ok(self.data(input).map(ReceivedPiece::Data)),
            }
        }
    }

    /// The next piece of a DATA frame.
    fn data<'a>(&mut self, input: &mut &'a [u8]) -> Option<DataPiece<'a>> {
        let ReaderState::Data {
            head,
            begun,
            content,
            padding,
        } = &mut self.state
        else {
            return None;
        };
        let first = !*begun;
        *begun = true;
        let bytes = take(input, content);
        take(input, padding);
        let is_last = *content == 0 && *padding == 0;
        if bytes.is_empty() && !first && !is_last {
            return None;
        }
        let piece = DataPiece {
            stream: head.stream,
            frame: first.then_some(head.length),
            content: bytes,
            has_end: head.has(flag::END_STREAM),
            end_stream: is_last && head.has(flag::END_STREAM),
        };
        if is_last {
            self.state = ReaderState::Head;
        }
        Some(piece)
    }
}

/// More padding than payload (RFC 9113, section 6.1).
pub(super) const TOO_MUCH_PADDING: ConnectionError =
    ConnectionError::protocol("a frame has more padding than payload");

/// Checks a frame header.
fn after_head(head: FrameHead) -> Result<ReaderState, ConnectionError> {
    if head.length as usize > FRAME_LIMIT {
        return Err(too_long(head));
    }
    if head.kind != kind::DATA {
        return Ok(ReaderState::Payload(head));
    }
    if head.stream == 0 {
        return Err(ConnectionError::protocol("DATA without a stream"));
    }
    if !head.has(flag::PADDED) {
        return Ok(ReaderState::Data {
            head,
            begun: false,
            content: head.length,
            padding: 0,
        });
    }
    if head.length == 0 {
        return Err(ConnectionError::size("padded DATA without a payload"));
    }
    Ok(ReaderState::Padding(head))
}

/// A frame beyond the limit. A server of HTTP/1 answers the preface with a reply that looks like one.
fn too_long(head: FrameHead) -> ConnectionError {
    if head.bytes().starts_with(b"HTTP/") {
        return ConnectionError::protocol("the server answers with HTTP/1");
    }
    ConnectionError::size("a frame is longer than 16384 bytes")
}

/// Takes at most `left` bytes and subtracts them.
fn take<'a>(input: &mut &'a [u8], left: &mut u32) -> &'a [u8] {
    let length = (*left as usize).min(input.len());
    let (bytes, rest) = input.split_at(length);
    *input = rest;
    *left -= length as u32;
    bytes
}
