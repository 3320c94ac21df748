//! Requests as frames of HTTP/2 (RFC 9113), for a client and a server that leave nothing to a library.
//!
//! Fields are written without the tables and codes of HPACK, so that the bytes of a form are as stated. They are read
//! with all of HPACK, since proxies use it. Pushes, priorities and flow control of the sender are left out: no form has
//! more content than the initial window.

use std::io::{self, Read, Write};

use posthaste_http::streams::http2::frame::{FrameHead, HEAD_LENGTH, flag, kind};
use posthaste_http::streams::http2::hpack::BlockDecoder;

use super::message::{FieldLine, Message, Protocol};

/// Longest payload that a peer accepts without a setting.
const LONGEST_PAYLOAD: usize = 16_384;

/// A frame.
pub(super) struct WireFrame {
    pub(super) head: FrameHead,
    pub(super) payload: Vec<u8>,
}

/// Writes a frame.
pub(super) fn write_frame(
    to: &mut impl Write,
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &[u8],
) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
    let head = FrameHead {
        length,
        kind,
        flags,
        stream,
    };
    to.write_all(&[&head.bytes(), payload].concat())
}

/// Reads a frame, without its padding and priority.
pub(super) fn read_frame(from: &mut impl Read) -> io::Result<WireFrame> {
    let mut head = [0; HEAD_LENGTH];
    from.read_exact(&mut head)?;
    let head = FrameHead::parse(&head);
    let mut payload = vec![0; head.length as usize];
    from.read_exact(&mut payload)?;
    if matches!(head.kind, kind::DATA | kind::HEADERS) {
        if head.has(flag::PADDED) {
            let padding = usize::from(payload.remove(0));
            payload.truncate(payload.len().saturating_sub(padding));
        }
        if head.kind == kind::HEADERS && head.has(flag::PRIORITY) {
            payload.drain(..5);
        }
    }
    Ok(WireFrame { head, payload })
}

/// Writes the head of a request on stream 1. With `sends_empty_data`, the stream does not end with it.
pub(super) fn write_head(
    to: &mut impl Write,
    message: &Message,
    sends_empty_data: bool,
) -> io::Result<()> {
    let (scheme, authority) = message.origin.clone().unwrap_or_default();
    let pseudo = [
        (":method", &message.method),
        (":scheme", &scheme),
        (":authority", &authority),
        (":path", &message.target),
    ];
    let pseudo = pseudo.map(|(name, value)| FieldLine::new(name.as_bytes(), value));
    let block = block(pseudo.iter().chain(&message.fields));
    let is_end = message.content.is_empty() && message.trailers.is_empty() && !sends_empty_data;
    let end = if is_end { flag::END_STREAM } else { 0 };
    write_frame(to, kind::HEADERS, end | flag::END_HEADERS, 1, &block)
}

/// Writes content and trailers. With `sends_empty_data`, missing content is an empty frame of DATA.
pub(super) fn write_body(
    to: &mut impl Write,
    message: &Message,
    sends_empty_data: bool,
) -> io::Result<()> {
    let end = if message.trailers.is_empty() {
        flag::END_STREAM
    } else {
        0
    };
    let mut pieces = message.content.chunks(LONGEST_PAYLOAD).peekable();
    if pieces.peek().is_none() && sends_empty_data {
        write_frame(to, kind::DATA, end, 1, b"")?;
    }
    while let Some(piece) = pieces.next() {
        let end = if pieces.peek().is_none() { end } else { 0 };
        write_frame(to, kind::DATA, end, 1, piece)?;
    }
    if message.trailers.is_empty() {
        return Ok(());
    }
    let flags = flag::END_STREAM | flag::END_HEADERS;
    write_frame(to, kind::HEADERS, flags, 1, &block(message.trailers.iter()))
}

/// Fields as literals without tables (RFC 7541, section 6.2.2).
fn block<'f>(fields: impl Iterator<Item = &'f FieldLine>) -> Vec<u8> {
    let mut block = Vec::new();
    for field in fields {
        block.push(0);
        for text in [&field.name, field.value()] {
            write_length(text.len(), &mut block);
            block.extend_from_slice(text);
        }
    }
    block
}

/// Writes an integer with a prefix of seven bits (RFC 7541, section 5.1).
fn write_length(length: usize, block: &mut Vec<u8>) {
    const PREFIX: usize = 0x7f;
    if length < PREFIX {
        block.push(length as u8);
        return;
    }
    block.push(PREFIX as u8);
    let mut rest = length - PREFIX;
    while rest >= 0x80 {
        block.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    block.push(rest as u8);
}

/// Decodes a field block. The field is shown with one space before its value.
pub(super) fn fields(decoder: &mut BlockDecoder, block: &[u8]) -> io::Result<Vec<FieldLine>> {
    let mut fields = Vec::new();
    decoder
        .decode(block, |field| {
            fields.push(FieldLine::new(field.name, field.value));
        })
        .map_err(io::Error::other)?;
    Ok(fields)
}

/// A request of HTTP/2 with these pseudo-fields and fields, without content.
pub(super) fn request(fields: Vec<FieldLine>) -> Message {
    let pseudo = |name: &str| {
        let line = fields.iter().find(|line| line.is(name));
        line.map(|line| line.text[1..].to_vec()).unwrap_or_default()
    };
    Message {
        protocol: Protocol::Http2,
        method: pseudo(":method"),
        target: pseudo(":path"),
        origin: Some((pseudo(":scheme"), pseudo(":authority"))),
        fields: {
            let is_pseudo = |line: &FieldLine| line.name.starts_with(b":");
            let known = [":method", ":path", ":scheme", ":authority"];
            let is_known = |line: &FieldLine| known.iter().any(|name| line.is(name));
            let rest = fields.iter();
            rest.filter(|line| !(is_pseudo(line) && is_known(line)))
                .cloned()
                .collect()
        },
        content: Vec::new(),
        chunks: None,
        trailers: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let long = vec![b'a'; 5_000];
        let mut message = request(vec![
            FieldLine::new(b":method", b"POST"),
            FieldLine::new(b":path", b"/a"),
            FieldLine::new(b"x", &long),
            FieldLine::new(b"empty", b""),
        ]);
        message.content = b"hello".to_vec();
        let mut bytes = Vec::new();
        write_head(&mut bytes, &message, false).unwrap();
        write_body(&mut bytes, &message, false).unwrap();
        let mut rest = &bytes[..];
        let head = read_frame(&mut rest).unwrap();
        let mut decoder = BlockDecoder::default();
        let mut read = request(fields(&mut decoder, &head.payload).unwrap());
        read.content = read_frame(&mut rest).unwrap().payload;
        assert_eq!(read, message);
        assert!(rest.is_empty());
    }
}
