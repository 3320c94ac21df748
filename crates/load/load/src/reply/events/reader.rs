//! Incremental search for events in a body, for input in pieces of any size.

use posthaste_http::grpc::{FramePart, FrameReader};

use super::{EventFormat, EventPlan};
use crate::grpc::MESSAGE_LIMIT;

/// Bytes of a line kept in addition to the end mark: the name of the field, its colon, a blank, and one more to
/// recognise a longer value.
const FIELD: usize = "data: ".len() + 1;

/// Byte order mark of UTF-8. One at the beginning of a stream is ignored (WHATWG HTML, section 9.2.5).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Longest end mark, in bytes. Memory for a line is bounded by it.
pub const LONGEST_END_MARK: usize = 1_024;

/// Result of reading a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventPart {
    /// An event is complete.
    Event,
    /// The end mark was read.
    EndMark,
}

/// Finds the events of one body. [`EventReader::begin`] prepares it for the next.
#[derive(Debug)]
pub struct EventReader {
    format: EventFormat,
    end_mark: Option<Vec<u8>>,
    /// The beginning of the present line.
    line: Vec<u8>,
    /// True in the first line of the body.
    is_first_line: bool,
    /// True if the present line has more bytes than are kept.
    is_cut: bool,
    /// True after a carriage return, whose line feed may follow.
    after_return: bool,
    /// Data lines of the present block.
    data_lines: u32,
    /// True if the first data line of the block is the end mark.
    is_mark: bool,
    /// Messages of gRPC.
    frames: FrameReader,
}

impl EventReader {
    /// Creates a reader for the events of a plan.
    pub fn new(plan: &EventPlan) -> Self {
        let end_mark = plan.end_mark.as_ref();
        Self {
            format: plan.format,
            end_mark: end_mark.map(|mark| mark.clone().into_bytes()),
            line: Vec::new(),
            is_first_line: true,
            is_cut: false,
            after_return: false,
            data_lines: 0,
            is_mark: false,
            frames: FrameReader::new(MESSAGE_LIMIT),
        }
    }

    /// Prepares for another body.
    pub fn begin(&mut self) {
        self.line.clear();
        self.is_first_line = true;
        self.is_cut = false;
        self.after_return = false;
        self.data_lines = 0;
        self.is_mark = false;
        self.frames = FrameReader::new(MESSAGE_LIMIT);
    }

    /// Reads the next bytes of the body. Calls `found` for each part that they complete.
    pub fn feed(&mut self, mut bytes: &[u8], mut found: impl FnMut(EventPart)) {
        if self.format == EventFormat::GrpcMessages {
            // After an error there are no further messages; the outcome of the reply states it.
            while let Ok(Some(part)) = self.frames.next(&mut bytes) {
                if part == FramePart::End {
                    found(EventPart::Event);
                }
            }
            return;
        }
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = self.end_of_line(bytes);
            self.keep(&bytes[..end.unwrap_or(bytes.len())]);
            let Some(end) = end else {
                return;
            };
            self.after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if let Some(part) = self.end_line() {
                found(part);
            }
        }
    }

    /// Reads the end of the body, which also ends a line of JSON.
    pub fn end(&mut self, mut found: impl FnMut(EventPart)) {
        let is_line = self.format == EventFormat::JsonLines && !self.line.is_empty();
        if let Some(part) = is_line.then(|| self.end_line()).flatten() {
            found(part);
        }
    }

    fn end_of_line(&self, bytes: &[u8]) -> Option<usize> {
        match self.format {
            EventFormat::Sse => memchr::memchr2(b'\n', b'\r', bytes),
            EventFormat::JsonLines | EventFormat::GrpcMessages => memchr::memchr(b'\n', bytes),
        }
    }

    /// Keeps the beginning of a line, as far as it decides.
    fn keep(&mut self, bytes: &[u8]) {
        let limit = BYTE_ORDER_MARK.len() + FIELD + self.end_mark.as_ref().map_or(0, Vec::len);
        let room = limit.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.is_cut |= bytes.len() > room;
    }

    fn end_line(&mut self) -> Option<EventPart> {
        let is_first_line = std::mem::take(&mut self.is_first_line);
        if is_first_line && self.line.starts_with(BYTE_ORDER_MARK) {
            self.line.drain(..BYTE_ORDER_MARK.len());
        }
        let part = match self.format {
            EventFormat::Sse => self.end_sse_line(),
            EventFormat::JsonLines | EventFormat::GrpcMessages => self.end_json_line(),
        };
        self.line.clear();
        self.is_cut = false;
        part
    }

    fn end_sse_line(&mut self) -> Option<EventPart> {
        if self.line.is_empty() {
            let lines = std::mem::take(&mut self.data_lines);
            let is_mark = std::mem::take(&mut self.is_mark) && lines == 1;
            return match lines {
                0 => None,
                _ if is_mark => Some(EventPart::EndMark),
                _ => Some(EventPart::Event),
            };
        }
        if let Some(value) = data_of(&self.line) {
            self.data_lines = self.data_lines.saturating_add(1);
            let mark = self.end_mark.as_deref();
            // Servers write blanks behind it.
            let is_mark = mark == Some(value) || mark == Some(value.trim_ascii_end());
            self.is_mark = !self.is_cut && is_mark;
        }
        None
    }

    fn end_json_line(&self) -> Option<EventPart> {
        let line = self.line.trim_ascii();
        if line.is_empty() && !self.is_cut {
            return None;
        }
        let is_mark = !self.is_cut && self.end_mark.as_deref() == Some(line);
        Some(if is_mark {
            EventPart::EndMark
        } else {
            EventPart::Event
        })
    }
}

/// Value of a field `data`, without one blank at its beginning.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"data")?;
    match rest {
        [] => Some(rest),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(format: EventFormat, pieces: &[&[u8]]) -> String {
        let mut reader = EventReader::new(&EventPlan {
            format,
            end_mark: Some("[DONE]".to_owned()),
        });
        let mut read = String::new();
        for piece in pieces {
            reader.feed(piece, |part| read.push(letter(part)));
        }
        reader.end(|part| read.push(letter(part)));
        read
    }

    fn letter(part: EventPart) -> char {
        match part {
            EventPart::Event => 'e',
            EventPart::EndMark => 'd',
        }
    }

    #[test]
    fn blocks_with_data_are_events() {
        for (body, read) in [
            ("data: a\n\ndata: b\n\n", "ee"),
            ("data: a\r\n\r\ndata: b\r\n\r\n", "ee"),
            ("data: a\r\rdata:b\r\r", "ee"),
            ("data: a\ndata: b\n\n", "e"),
            (": comment\n\nevent: x\nid: 1\n\ndata\n\n", "e"),
            ("event: x\ndata: a\nid: 1\n\n\n\n", "e"),
            ("database: a\n\n", ""),
            ("data: a\n", ""),
            ("data: [DONE]\n\n", "d"),
            ("data:[DONE]\n\n", "d"),
            ("data: [DONE] \n\n", "d"),
            ("\u{feff}data: [DONE]\n\ndata: a\n\n", "de"),
            ("\u{feff}data: a\n\n\u{feff}data: b\n\n", "e"),
            ("\u{feff}\n\ndata: a\n\n", "e"),
            ("\u{feff}\u{feff}data: a\n\n", ""),
            ("data: [DONE]x\n\ndata: [DONE]\ndata: more\n\n", "ee"),
            ("data: a\n\ndata: [DONE]\n\n", "ed"),
        ] {
            assert_eq!(
                parts(EventFormat::Sse, &[body.as_bytes()]),
                read,
                "{body:?}"
            );
        }
    }

    #[test]
    fn lines_with_content_are_events() {
        for (body, read) in [
            ("{}\n{}\n", "ee"),
            ("{}\r\n\r\n \n{}", "ee"),
            ("{}\n[DONE]\n", "ed"),
            ("", ""),
            ("\u{feff}{}\n", "e"),
            ("\u{feff}\n", ""),
        ] {
            assert_eq!(
                parts(EventFormat::JsonLines, &[body.as_bytes()]),
                read,
                "{body:?}"
            );
        }
    }

    #[test]
    fn memory_of_a_line_is_bounded() {
        let mut reader = EventReader::new(&EventPlan {
            format: EventFormat::Sse,
            end_mark: None,
        });
        let mut events = 0;
        reader.feed(b"data: ", |_| events += 1);
        (0..1_000).for_each(|_| reader.feed(&[b'x'; 1_000], |_| ()));
        assert!(reader.line.capacity() < 100);
        reader.feed(b"\n\n", |_| events += 1);
        assert_eq!(events, 1);
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(body in "\u{feff}?(data: ?(a|\\[DONE\\])|x|\n|\r|\r\n|:){0,40}", cut in 0usize..200) {
            for format in [EventFormat::Sse, EventFormat::JsonLines] {
                let whole = parts(format, &[body.as_bytes()]);
                let (one, two) = body.as_bytes().split_at(cut.min(body.len()));
                prop_assert_eq!(&parts(format, &[one, two]), &whole);
                let single: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
                prop_assert_eq!(&parts(format, &single), &whole);
            }
        }
    }
}
