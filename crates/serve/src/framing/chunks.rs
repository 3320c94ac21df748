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
    state: State,
    /// Bytes so far of a size line, or of all trailers.
    length: u16,
    /// The current chunk: its size as read so far, then its remaining bytes.
    size: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
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

/// State of the body after the accepted bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    More,
    Over,
    Refuse(Cause),
}

impl Chunks {
    /// Accepts bytes up to the body's end or the first error. Returns the number of accepted bytes and the state.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> (usize, Step) {
        let mut used = 0;
        while let Some(byte) = bytes.get(used) {
            if let (State::Data, Some(left)) = (self.state, NonZeroU64::new(self.size)) {
                used += self.skip(left, bytes.len() - used);
                continue;
            }
            match self.take(*byte) {
                Step::More => used += 1,
                Step::Over => return (used + 1, Step::Over),
                refusal @ Step::Refuse(_) => return (used, refusal),
            }
        }
        (used, Step::More)
    }

    /// Skips data of a chunk. Returns the number of bytes skipped of `there`.
    fn skip(&mut self, left: NonZeroU64, there: usize) -> usize {
        let length = usize::try_from(left.get()).map_or(there, |left| left.min(there));
        self.size -= length as u64;
        if self.size == 0 {
            self.state = State::DataCr;
        }
        length
    }

    fn take(&mut self, byte: u8) -> Step {
        let next = match (self.state, byte) {
            (State::Size, _) if byte.is_ascii_hexdigit() => self.digit(byte),
            (State::Size, _) if self.length == 0 => None,
            (State::Size | State::Blank | State::Extension, b'\r') => Some(State::SizeLf),
            (State::Size | State::Blank, b' ' | b'\t') => self.count(MAX_SIZE_LINE, State::Blank),
            (State::Size | State::Blank, b';') => self.count(MAX_SIZE_LINE, State::Extension),
            (State::Extension, b'\t' | b' '..=b'~' | 0x80..) => {
                self.count(MAX_SIZE_LINE, State::Extension)
            }
            (State::SizeLf, b'\n') => {
                self.length = 0;
                Some(match self.size {
                    0 => State::Trailer,
                    _ => State::Data,
                })
            }
            (State::DataCr, b'\r') => Some(State::DataLf),
            (State::DataLf, b'\n') => Some(State::Size),
            (State::Trailer, b'\r') => Some(State::LastLf),
            // A name begins here. The parser checks the rest.
            (State::Trailer, b'!'..=b'9' | b';'..=b'~')
            | (State::TrailerLine, b'\t' | b' '..=b'~' | 0x80..) => {
                self.count(MAX_TRAILER, State::TrailerLine)
            }
            (State::TrailerLine, b'\r') => Some(State::TrailerLf),
            (State::TrailerLf, b'\n') => Some(State::Trailer),
            (State::LastLf, b'\n') => return Step::Over,
            _ => None,
        };
        match next {
            Some(state) => {
                self.state = state;
                Step::More
            }
            None => Step::Refuse(self.cause()),
        }
    }

    /// Adds a digit to the size.
    fn digit(&mut self, byte: u8) -> Option<State> {
        if self.length == MAX_DIGITS {
            return None;
        }
        self.length += 1;
        let digit = char::from(byte).to_digit(16)?;
        self.size = self.size << 4 | u64::from(digit);
        Some(State::Size)
    }

    /// Counts a byte of an element with at most `most`.
    fn count(&mut self, most: usize, state: State) -> Option<State> {
        let is_within = usize::from(self.length) < most;
        self.length += u16::from(is_within);
        is_within.then_some(state)
    }

    fn cause(&self) -> Cause {
        match self.state {
            State::Size | State::Blank | State::Extension | State::SizeLf => Cause::Size,
            State::Data | State::DataCr | State::DataLf => Cause::End,
            State::Trailer | State::TrailerLine | State::TrailerLf | State::LastLf => {
                Cause::Trailer
            }
        }
    }
}
