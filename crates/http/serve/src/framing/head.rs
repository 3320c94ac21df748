//! A request's head, line by line: its end, and the length of the body.
//!
//! As in the parser, lines end with CRLF or with LF alone (RFC 9112, section 2.2). Of a line that arrives in pieces,
//! only the deciding bytes are kept.

use super::Cause;

/// Bytes kept of a line in pieces. Longer lines of the two fields contain only more blanks or zeros and are rejected.
const KEPT: usize = 64;

/// The longest body that the parser can count.
const MAX_LENGTH: u64 = u64::MAX - 2;

/// The two fields in their usual spelling.
const CONTENT_LENGTH: &[u8] = b"Content-Length";
const TRANSFER_ENCODING: &[u8] = b"Transfer-Encoding";

/// The framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFraming {
    Length(u64),
    Chunks,
}

/// A head as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Head {
    fields: HeadFields,
    line: LineBuffer,
}

/// The head's content so far.
#[derive(Clone, Copy, Debug, Default)]
struct HeadFields {
    /// The request line has arrived.
    begun: bool,
    /// The method has arrived. It may contain `#` (RFC 9110, section 5.6.2).
    has_method: bool,
    length: Option<u64>,
    chunked: bool,
    cause: Option<Cause>,
}

/// The start of an incomplete line.
#[derive(Debug)]
struct LineBuffer {
    kept: [u8; KEPT],
    /// Length of the line so far, possibly more than is kept.
    length: usize,
}

impl Default for LineBuffer {
    fn default() -> Self {
        Self {
            kept: [0; KEPT],
            length: 0,
        }
    }
}

impl Head {
    /// Processes bytes up to the head's end. At the end, returns the number of bytes used and the body's framing.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Option<(usize, Result<BodyFraming, Cause>)> {
        let mut used = 0;
        while let Some(length) = memchr::memchr(b'\n', &bytes[used..]) {
            let end = used + length;
            self.fields.check_target(&bytes[used..end]);
            let is_last = match self.line.length {
                0 => self.fields.read(&bytes[used..end], length),
                _ => {
                    self.line.push(&bytes[used..end]);
                    let is_last = self.fields.read(self.line.kept(), self.line.length);
                    self.line.length = 0;
                    is_last
                }
            };
            used = end + 1;
            if is_last {
                return Some((used, std::mem::take(&mut self.fields).body()));
            }
        }
        self.fields.check_target(&bytes[used..]);
        self.line.push(&bytes[used..]);
        None
    }
}

impl HeadFields {
    /// Checks the request line, or a piece of it: a target has no fragment (RFC 9112, section 3.2).
    fn check_target(&mut self, line: &[u8]) {
        if self.begun {
            return;
        }
        let start = if self.has_method {
            Some(0)
        } else {
            memchr::memchr(b' ', line)
        };
        let Some(start) = start else {
            return;
        };
        self.has_method = true;
        if memchr::memchr(b'#', &line[start..]).is_some() {
            self.set_cause(Cause::Target);
        }
    }

    /// Processes a line of `length` bytes without LF, or its deciding part. Returns true for the head's last line.
    fn read(&mut self, line: &[u8], length: usize) -> bool {
        if let [] | [b'\r'] = line {
            return self.begun;
        }
        if !std::mem::replace(&mut self.begun, true) {
            return false;
        }
        // Most fields are neither.
        match line[0] | 0x20 {
            b'c' => {
                if let Some(value) = value_of(line, CONTENT_LENGTH) {
                    self.set_length(Some(value).filter(|_| length <= KEPT));
                }
            }
            b't' => {
                if let Some(value) = value_of(line, TRANSFER_ENCODING) {
                    self.set_coding(Some(value).filter(|_| length <= KEPT));
                }
            }
            _ => {}
        }
        false
    }

    fn set_length(&mut self, value: Option<&[u8]>) {
        let number = value.and_then(parse).filter(|_| self.length.is_none());
        match number {
            Some(number) => self.length = Some(number),
            None => {
                self.length = Some(0);
                self.set_cause(Cause::Length);
            }
        }
    }

    fn set_coding(&mut self, value: Option<&[u8]>) {
        let is_chunked = value.is_some_and(|value| value.eq_ignore_ascii_case(b"chunked"));
        if std::mem::replace(&mut self.chunked, true) || !is_chunked {
            self.set_cause(Cause::Coding);
        }
    }

    fn set_cause(&mut self, cause: Cause) {
        self.cause = self.cause.or(Some(cause));
    }

    fn body(self) -> Result<BodyFraming, Cause> {
        match (self.chunked, self.length) {
            (true, Some(_)) => Err(Cause::Both),
            (chunked, length) => match self.cause {
                Some(cause) => Err(cause),
                None if chunked => Ok(BodyFraming::Chunks),
                None => Ok(BodyFraming::Length(length.unwrap_or(0))),
            },
        }
    }
}

impl LineBuffer {
    fn push(&mut self, bytes: &[u8]) {
        if let Some(free) = self.kept.get_mut(self.length..) {
            let length = free.len().min(bytes.len());
            free[..length].copy_from_slice(&bytes[..length]);
        }
        self.length += bytes.len();
    }

    fn kept(&self) -> &[u8] {
        &self.kept[..self.length.min(KEPT)]
    }
}

/// Returns the value of the field `name`, without surrounding blanks.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    let value = value.strip_prefix(b":")?;
    // Comparing equal bytes first is fast; ignoring case is slower.
    if start != name && !start.eq_ignore_ascii_case(name) {
        return None;
    }
    let value = value.strip_suffix(b"\r").unwrap_or(value);
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let begin = value.iter().position(|byte| !is_blank(byte));
    let end = value.iter().rposition(|byte| !is_blank(byte));
    Some(
        begin
            .zip(end)
            .map_or(&value[..0], |(begin, end)| &value[begin..=end]),
    )
}

/// Parses a number of digits only.
fn parse(digits: &[u8]) -> Option<u64> {
    let add = |number: u64, byte: &u8| {
        let digit = byte.wrapping_sub(b'0');
        let number = number.checked_mul(10)?.checked_add(digit.into())?;
        (digit < 10).then_some(number)
    };
    let number = digits.iter().try_fold(0, add)?;
    (!digits.is_empty() && number <= MAX_LENGTH).then_some(number)
}
