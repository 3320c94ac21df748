//! Chunked bodies (RFC 9112, section 7.1): sizes, extensions, data, trailers. Each line ends with exactly CRLF.
//!
//! Parsers that accept other line ends disagree on the start of the next request, so other ends are rejected. Sizes
//! have at most 16 digits: more cannot occur, and leading zeros could otherwise continue without limit.

use std::num::NonZeroU64;

use super::Cause;

/// Maximum length of a chunk's size line, with extensions and without CRLF.
pub(super) const MAX_SIZE_LINE: usize = 1024;

/// Maximum length of all trailer fields of a body.
pub(super) const MAX_TRAILER: usize = 16 << 10;

/// Maximum number of digits of a size: 64 bits.
const MAX_DIGITS: u16 = 16;

/// The parser's position in a chunked body.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    state: ChunkState,
    /// Bytes so far of a size line, or of all trailers.
    length: u16,
    /// The current chunk: its size as read so far, then its remaining bytes.
    size: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChunkState {
    #[default]
    Size,
    /// Blanks after the digits; no more digits are allowed.
    Blank,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// At the start of a line after the last chunk.
    Trailer,
    TrailerLine,
    TrailerLf,
    LastLf,
}

/// ChunkState of the body after the accepted bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkStep {
    More,
    Over,
    Reject(Cause),
}

impl Chunks {
    /// Accepts bytes up to the body's end or the first error. Returns the number of accepted bytes and the state.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> (usize, ChunkStep) {
        let mut used = 0;
        while let Some(byte) = bytes.get(used) {
            if let (ChunkState::Data, Some(left)) = (self.state, NonZeroU64::new(self.size)) {
                used += self.skip(left, bytes.len() - used);
                continue;
            }
            match self.take(*byte) {
                ChunkStep::More => used += 1,
                ChunkStep::Over => return (used + 1, ChunkStep::Over),
                rejection @ ChunkStep::Reject(_) => return (used, rejection),
            }
        }
        (used, ChunkStep::More)
    }

    /// Skips data of a chunk. Returns the number of bytes skipped of `there`.
    fn skip(&mut self, left: NonZeroU64, there: usize) -> usize {
        let length = usize::try_from(left.get()).map_or(there, |left| left.min(there));
        debug_assert!(
            length as u64 <= self.size,
            "a chunk has no more data than its size"
        );
        self.size -= length as u64;
        if self.size == 0 {
            self.state = ChunkState::DataCr;
        }
        length
    }

    fn take(&mut self, byte: u8) -> ChunkStep {
        let next = match (self.state, byte) {
            (ChunkState::Size, _) if byte.is_ascii_hexdigit() => self.digit(byte),
            (ChunkState::Size, _) if self.length == 0 => None,
            (ChunkState::Size | ChunkState::Blank | ChunkState::Extension, b'\r') => {
                Some(ChunkState::SizeLf)
            }
            (ChunkState::Size | ChunkState::Blank, b' ' | b'\t') => {
                self.count(MAX_SIZE_LINE, ChunkState::Blank)
            }
            (ChunkState::Size | ChunkState::Blank, b';') => {
                self.count(MAX_SIZE_LINE, ChunkState::Extension)
            }
            (ChunkState::Extension, b'\t' | b' '..=b'~' | 0x80..) => {
                self.count(MAX_SIZE_LINE, ChunkState::Extension)
            }
            (ChunkState::SizeLf, b'\n') => {
                self.length = 0;
                Some(match self.size {
                    0 => ChunkState::Trailer,
                    _ => ChunkState::Data,
                })
            }
            (ChunkState::DataCr, b'\r') => Some(ChunkState::DataLf),
            (ChunkState::DataLf, b'\n') => Some(ChunkState::Size),
            (ChunkState::Trailer, b'\r') => Some(ChunkState::LastLf),
            // A name begins here. The parser checks the rest.
            (ChunkState::Trailer, b'!'..=b'9' | b';'..=b'~')
            | (ChunkState::TrailerLine, b'\t' | b' '..=b'~' | 0x80..) => {
                self.count(MAX_TRAILER, ChunkState::TrailerLine)
            }
            (ChunkState::TrailerLine, b'\r') => Some(ChunkState::TrailerLf),
            (ChunkState::TrailerLf, b'\n') => Some(ChunkState::Trailer),
            (ChunkState::LastLf, b'\n') => return ChunkStep::Over,
            _ => None,
        };
        match next {
            Some(state) => {
                self.state = state;
                ChunkStep::More
            }
            None => ChunkStep::Reject(self.cause()),
        }
    }

    /// Adds a digit to the size.
    fn digit(&mut self, byte: u8) -> Option<ChunkState> {
        if self.length == MAX_DIGITS {
            return None;
        }
        self.length += 1;
        let digit = char::from(byte).to_digit(16)?;
        self.size = self.size << 4 | u64::from(digit);
        Some(ChunkState::Size)
    }

    /// Counts a byte of an element with at most `most`.
    fn count(&mut self, most: usize, state: ChunkState) -> Option<ChunkState> {
        let is_within = usize::from(self.length) < most;
        self.length += u16::from(is_within);
        is_within.then_some(state)
    }

    fn cause(&self) -> Cause {
        match self.state {
            ChunkState::Size | ChunkState::Blank | ChunkState::Extension | ChunkState::SizeLf => {
                Cause::Size
            }
            ChunkState::Data | ChunkState::DataCr | ChunkState::DataLf => Cause::End,
            ChunkState::Trailer
            | ChunkState::TrailerLine
            | ChunkState::TrailerLf
            | ChunkState::LastLf => Cause::Trailer,
        }
    }
}
