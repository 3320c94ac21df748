//! A request as it is on the wire, of either protocol, without any normalisation.
//!
//! A field line keeps its bytes, with the case of its name and the white space around its value. Lines keep their order.
//! Chunks keep their sizes and extensions. [`Message::http1_bytes`] therefore returns exactly what [`parse`] has read.

use std::fmt;

/// Version of HTTP of one hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// A line of a header section or of trailers: the bytes before and after its colon.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FieldLine {
    pub(super) name: Vec<u8>,
    /// Bytes after the colon. A field of HTTP/2 is shown with one space before its value.
    pub(super) text: Vec<u8>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) protocol: Protocol,
    pub(super) method: Vec<u8>,
    /// The target of HTTP/1.1, or `:path`.
    pub(super) target: Vec<u8>,
    /// `:scheme` and `:authority`. `None` for HTTP/1.1.
    pub(super) origin: Option<(Vec<u8>, Vec<u8>)>,
    pub(super) fields: Vec<FieldLine>,
    /// The body without its framing.
    pub(super) content: Vec<u8>,
    /// The body as chunks of HTTP/1.1, up to the line of the last chunk.
    pub(super) chunks: Option<Vec<u8>>,
    pub(super) trailers: Vec<FieldLine>,
}

impl Protocol {
    pub(super) const BOTH: [Self; 2] = [Self::Http1, Self::Http2];
}

impl fmt::Display for Protocol {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str(match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        })
    }
}

impl FieldLine {
    /// The line `name: value`.
    pub(super) fn new(name: &[u8], value: &[u8]) -> Self {
        Self {
            name: name.to_vec(),
            text: [b" ", value].concat(),
        }
    }

    /// The value, without the white space around it.
    pub(super) fn value(&self) -> &[u8] {
        self.text.trim_ascii()
    }

    /// True if this is the name, in any case.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some(Self {
            name: line[..colon].to_vec(),
            text: line[colon + 1..].to_vec(),
        })
    }

    fn bytes(&self) -> Vec<u8> {
        [&self.name, &b":"[..], &self.text, b"\r\n"].concat()
    }
}

impl Message {
    /// Lines of a field of the header section.
    pub(super) fn lines(&self, name: &str) -> impl Iterator<Item = &FieldLine> {
        self.fields.iter().filter(move |line| line.is(name))
    }

    /// True if the header section has a field.
    pub(super) fn has(&self, name: &str) -> bool {
        self.lines(name).next().is_some()
    }

    /// The head of HTTP/1.1.
    pub(super) fn http1_head(&self) -> Vec<u8> {
        let mut bytes = [&self.method, &b" "[..], &self.target, b" HTTP/1.1\r\n"].concat();
        bytes.extend(self.fields.iter().flat_map(FieldLine::bytes));
        bytes.extend_from_slice(b"\r\n");
        bytes
    }

    /// The body of HTTP/1.1, with trailers.
    pub(super) fn http1_body(&self) -> Vec<u8> {
        let Some(chunks) = &self.chunks else {
            return self.content.clone();
        };
        let mut bytes = chunks.clone();
        bytes.extend(self.trailers.iter().flat_map(FieldLine::bytes));
        bytes.extend_from_slice(b"\r\n");
        bytes
    }

    /// The request of HTTP/1.1.
    pub(super) fn http1_bytes(&self) -> Vec<u8> {
        [self.http1_head(), self.http1_body()].concat()
    }
}

/// Reads the request of HTTP/1.1 at the start of `bytes`. Returns it and its length, or `None` if it is incomplete.
pub(super) fn parse(bytes: &[u8]) -> Option<(Message, usize)> {
    let mut rest = bytes;
    let mut start = take_line(&mut rest)?.splitn(3, |byte| *byte == b' ');
    let (method, target) = (start.next()?.to_vec(), start.next()?.to_vec());
    let mut message = Message {
        protocol: Protocol::Http1,
        method,
        target,
        origin: None,
        fields: take_section(&mut rest)?,
        content: Vec::new(),
        chunks: None,
        trailers: Vec::new(),
    };
    if message.has("transfer-encoding") {
        let body = rest;
        message.content = take_chunks(&mut rest)?;
        message.chunks = Some(body[..body.len() - rest.len()].to_vec());
        message.trailers = take_section(&mut rest)?;
    } else if message.has("content-length") {
        let value = message.lines("content-length").next()?.value();
        let length = std::str::from_utf8(value).ok()?.parse().ok()?;
        message.content = rest.get(..length)?.to_vec();
        rest = &rest[length..];
    }
    Some((message, bytes.len() - rest.len()))
}

/// Takes a line without its end from the start of `rest`.
fn take_line<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let end = rest.windows(2).position(|two| two == b"\r\n")?;
    let line = &rest[..end];
    *rest = &rest[end + 2..];
    Some(line)
}

/// Takes field lines and the empty line behind them.
fn take_section(rest: &mut &[u8]) -> Option<Vec<FieldLine>> {
    let mut lines = Vec::new();
    loop {
        match take_line(rest)? {
            [] => return Some(lines),
            line => lines.push(FieldLine::parse(line)?),
        }
    }
}

/// Takes chunks up to the line of the last one. Returns their content.
fn take_chunks(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    loop {
        let size = take_line(rest)?.split(|byte| *byte == b';').next()?;
        let size = usize::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()?;
        if size == 0 {
            return Some(content);
        }
        content.extend_from_slice(rest.get(..size)?);
        *rest = rest.get(size + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &[u8] =
        b"POST /a?b HTTP/1.1\r\nHost:s\r\nX:  \xe9\t\r\nTransfer-Encoding: chunked\r\n\r\n\
        2;a=b\r\nhe\r\n003\r\nllo\r\n0\r\nA: b\r\n\r\n";

    #[test]
    fn a_request_keeps_its_bytes() {
        let (message, length) = parse(CHUNKED).unwrap();
        assert_eq!(length, CHUNKED.len());
        assert_eq!(message.content, b"hello");
        assert_eq!(message.trailers, [FieldLine::new(b"A", b"b")]);
        assert_eq!(message.http1_bytes(), CHUNKED);
    }

    #[test]
    fn an_incomplete_request_is_none() {
        for length in 0..CHUNKED.len() {
            assert!(parse(&CHUNKED[..length]).is_none(), "{length}");
        }
    }

    #[test]
    fn bytes_behind_a_request_are_left() {
        let bytes = b"PUT / HTTP/1.1\r\ncontent-length: 2\r\n\r\nokGET / HTTP/1.1\r\n\r\n";
        let (message, length) = parse(bytes).unwrap();
        assert_eq!((&*message.content, length), (&b"ok"[..], 39));
    }
}
