//! Server-sent events (HTML standard, section 9.2): an incremental reader, and a writer.
//!
//! The reader buffers only the current line and event, both bounded, so an endless event is an error. Unlike in a
//! browser, an event without an id does not inherit the previous one. An id is a number here.

use std::io::Write as _;
use std::str::Utf8Error;

use thiserror::Error;

/// An event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Name; empty if it has none.
    pub name: String,
    /// Number; none if its id is not a number.
    pub id: Option<u64>,
    /// Data lines, joined by line feeds.
    pub data: String,
}

/// Reasons why a stream cannot be read further.
#[derive(Debug, Error)]
pub enum SseError {
    /// The line and event in progress exceed the limit.
    #[error("an event of more than {0} bytes")]
    TooLong(usize),
    /// A line is not UTF-8.
    #[error("{0}")]
    Encoding(#[from] Utf8Error),
}

/// Incremental parser of a stream.
#[derive(Debug)]
pub struct SseReader {
    limit: usize,
    /// Bytes of an incomplete line.
    line: Vec<u8>,
    /// The event in progress. Each of its data lines has a trailing line feed.
    event: SseEvent,
    /// The last line ended with a carriage return. A line feed directly after it belongs to the same line end.
    returned: bool,
    /// A line has been read. A byte order mark is only allowed before the first.
    begun: bool,
}

impl SseReader {
    /// Creates a reader of events with at most `limit` bytes.
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            event: SseEvent {
                name: String::new(),
                id: None,
                data: String::new(),
            },
            returned: false,
            begun: false,
        }
    }

    /// Returns the next complete event and advances `bytes` past it; `None` when `bytes` is used up. Do not continue
    /// after an error.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<SseEvent>, SseError> {
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        while let Some(end) = bytes.iter().position(is_end) {
            let (line, rest) = bytes.split_at(end);
            let returned = std::mem::replace(&mut self.returned, rest[0] == b'\r');
            *bytes = &rest[1..];
            if returned && rest[0] == b'\n' && line.is_empty() && self.line.is_empty() {
                continue;
            }
            self.keep(line)?;
            let mut line = std::mem::take(&mut self.line);
            let event = self.end_line(&line)?;
            line.clear();
            self.line = line;
            if event.is_some() {
                return Ok(event);
            }
        }
        self.keep(bytes)?;
        *bytes = &[];
        Ok(None)
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), SseError> {
        if self.line.len() + self.event.data.len() + part.len() > self.limit {
            return Err(SseError::TooLong(self.limit));
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// Processes a line. Returns the event if the line ends it.
    fn end_line(&mut self, line: &[u8]) -> Result<Option<SseEvent>, SseError> {
        let mut line = std::str::from_utf8(line)?;
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(self.end_event());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "id" => self.event.id = value.parse().ok(),
            "data" => {
                self.event.data.push_str(value);
                self.event.data.push('\n');
            }
            // Comments and unused fields.
            _ => {}
        }
        Ok(None)
    }

    /// Ends the event in progress. None if it has no data.
    fn end_event(&mut self) -> Option<SseEvent> {
        let mut event = std::mem::take(&mut self.event);
        event.data.pop().map(|end| {
            debug_assert_eq!(end, '\n', "each line of data ends with a line feed");
            event
        })
    }
}

/// Appends an event to `to`. `data` appends its data, which must be one line.
pub fn write_event(to: &mut Vec<u8>, name: &str, id: Option<u64>, data: impl FnOnce(&mut Vec<u8>)) {
    if let Some(id) = id {
        writeln!(to, "id: {id}").expect("memory takes all bytes");
    }
    write!(to, "event: {name}\ndata: ").expect("memory takes all bytes");
    let begin = to.len();
    data(to);
    debug_assert!(
        !to[begin..].iter().any(|byte| matches!(byte, b'\n' | b'\r')),
        "the data of an event is one line"
    );
    to.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1 << 20;

    /// Events parsed one byte at a time.
    fn read(text: &str) -> Vec<SseEvent> {
        let mut reader = SseReader::new(LIMIT);
        let events = text.as_bytes().chunks(1);
        let events = events.filter_map(|mut byte| reader.next(&mut byte).unwrap());
        events.collect()
    }

    fn event(name: &str, id: Option<u64>, data: &str) -> SseEvent {
        let (name, data) = (name.to_owned(), data.to_owned());
        SseEvent { name, id, data }
    }

    #[test]
    fn lines_end_in_three_ways_and_fields_stand_in_any_order() {
        for end in ["\n", "\r", "\r\n"] {
            let text = "\u{feff}data: 1|event:ready|id: 7||:a comment|retry: 5||event: alive|data||data:|event: begin|data: x||event: none||";
            let expected = [
                event("ready", Some(7), "1"),
                event("alive", None, ""),
                event("begin", None, "\nx"),
            ];
            assert_eq!(read(&text.replace('|', end)), expected);
        }
    }

    #[test]
    fn written_events_are_read_again() {
        let mut text = Vec::new();
        write_event(&mut text, "put", Some(3), |to| to.extend_from_slice(b"{}"));
        write_event(&mut text, "alive", None, |_| {});
        let text = String::from_utf8(text).unwrap();
        assert_eq!(
            text,
            "id: 3\nevent: put\ndata: {}\n\nevent: alive\ndata: \n\n"
        );
        let expected = [event("put", Some(3), "{}"), event("alive", None, "")];
        assert_eq!(read(&text), expected);
    }

    #[test]
    fn nothing_without_end_is_kept() {
        for endless in ["x", "data: x\n"] {
            let mut reader = SseReader::new(LIMIT);
            let piece = endless.repeat(64 << 10);
            let fed =
                (0..1_000).find_map(|fed| Some((fed, reader.next(&mut piece.as_bytes()).err()?)));
            let (fed, error) = fed.expect("an error");
            assert!(fed * piece.len() <= 4 * LIMIT, "{endless:?} {fed}");
            let message = "an event of more than 1048576 bytes";
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_rejected() {
        let mut reader = SseReader::new(LIMIT);
        assert!(reader.next(&mut &b"data: \xff\n"[..]).is_err());
    }
}
