//! A request's head, line by line: where it ends, and what it says of the body's length.
//!
//! Lines end as the parser behind has them end, with CRLF or with LF alone (RFC 9112, section 2.2). A line that comes
//! in pieces is kept for as many bytes as decide.

use super::Cause;

/// Bytes kept of a line that comes in pieces. A line of one of the two fields is no longer: more would be blanks or zeros.
const KEPT: usize = 64;

/// The longest body: what the parser behind counts to.
const MAX_LENGTH: u64 = u64::MAX - 2;

/// The two fields, as nearly all clients write them.
const CONTENT_LENGTH: &[u8] = b"Content-Length";
const TRANSFER_ENCODING: &[u8] = b"Transfer-Encoding";

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Length(u64),
    Chunks,
}

/// A head as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Head {
    said: Said,
    line: Line,
}

/// What it has said so far.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    /// Its request line has come.
    begun: bool,
    length: Option<u64>,
    chunked: bool,
    wrong: Option<Cause>,
}

/// The beginning of a line whose end has not come.
#[derive(Debug)]
struct Line {
    kept: [u8; KEPT],
    /// Of the whole line: it may be longer than what is kept.
    length: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            kept: [0; KEPT],
            length: 0,
        }
    }
}

impl Head {
    /// Takes bytes up to the head's end. Where that is among them: how many there were, and what follows.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Option<(usize, Result<Body, Cause>)> {
        let mut used = 0;
        while let Some(length) = memchr::memchr(b'\n', &bytes[used..]) {
            let end = used + length;
            self.said.look(&bytes[used..end]);
            let is_last = match self.line.length {
                0 => self.said.read(&bytes[used..end], length),
                _ => {
                    self.line.push(&bytes[used..end]);
                    let is_last = self.said.read(self.line.kept(), self.line.length);
                    self.line.length = 0;
                    is_last
                }
            };
            used = end + 1;
            if is_last {
                return Some((used, std::mem::take(&mut self.said).body()));
            }
        }
        self.said.look(&bytes[used..]);
        self.line.push(&bytes[used..]);
        None
    }
}

impl Said {
    /// Looks at the request line, or a piece of it: a fragment is no part of a target (RFC 9112, section 3.2).
    fn look(&mut self, line: &[u8]) {
        if !self.begun && memchr::memchr(b'#', line).is_some() {
            self.is_wrong(Cause::Target);
        }
    }

    /// Takes a line of that `length` without its LF, or as much of it as decides. Whether it is the head's last.
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
                    self.say_length(Some(value).filter(|_| length <= KEPT));
                }
            }
            b't' => {
                if let Some(value) = value_of(line, TRANSFER_ENCODING) {
                    self.say_coding(Some(value).filter(|_| length <= KEPT));
                }
            }
            _ => {}
        }
        false
    }

    fn say_length(&mut self, value: Option<&[u8]>) {
        let number = value.and_then(parse).filter(|_| self.length.is_none());
        match number {
            Some(number) => self.length = Some(number),
            None => {
                self.length = Some(0);
                self.is_wrong(Cause::Length);
            }
        }
    }

    fn say_coding(&mut self, value: Option<&[u8]>) {
        let is_chunked = value.is_some_and(|value| value.eq_ignore_ascii_case(b"chunked"));
        if std::mem::replace(&mut self.chunked, true) || !is_chunked {
            self.is_wrong(Cause::Coding);
        }
    }

    fn is_wrong(&mut self, cause: Cause) {
        self.wrong = self.wrong.or(Some(cause));
    }

    fn body(self) -> Result<Body, Cause> {
        match (self.chunked, self.length) {
            (true, Some(_)) => Err(Cause::Both),
            (chunked, length) => match self.wrong {
                Some(cause) => Err(cause),
                None if chunked => Ok(Body::Chunks),
                None => Ok(Body::Length(length.unwrap_or(0))),
            },
        }
    }
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        if let Some(room) = self.kept.get_mut(self.length..) {
            let length = room.len().min(bytes.len());
            room[..length].copy_from_slice(&bytes[..length]);
        }
        self.length += bytes.len();
    }

    fn kept(&self) -> &[u8] {
        &self.kept[..self.length.min(KEPT)]
    }
}

/// The value of a field of that name, without the blanks around it.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    let value = value.strip_prefix(b":")?;
    // Equal bytes are compared at once, others one by one.
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

/// Digits as a number, and nothing else.
fn parse(digits: &[u8]) -> Option<u64> {
    let add = |number: u64, byte: &u8| {
        let digit = byte.wrapping_sub(b'0');
        let number = number.checked_mul(10)?.checked_add(digit.into())?;
        (digit < 10).then_some(number)
    };
    let number = digits.iter().try_fold(0, add)?;
    (!digits.is_empty() && number <= MAX_LENGTH).then_some(number)
}
