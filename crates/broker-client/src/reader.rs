//! Incremental parser of server-sent events (HTML standard, section 9.2.6).
//!
//! Buffers only the current line and event, both bounded, so an endless event is an error. Unlike in a browser, an
//! event without an id does not inherit the previous one.

use posthaste_qos::bounds;

use crate::error::Error;
use crate::events::Event;

/// Maximum bytes of an event: a document's limit, several times over because of JSON's overhead.
const LONGEST: usize = 8 * bounds::BYTES;

/// Parser of a stream of changes.
#[derive(Debug, Default)]
pub struct EventReader {
    /// Bytes of an incomplete line.
    line: Vec<u8>,
    name: String,
    number: Option<u64>,
    /// Data lines, each with a trailing line feed.
    data: String,
    /// The last line ended with a carriage return. A line feed directly after it belongs to the same line end.
    returned: bool,
    /// A line has been read. A byte order mark is only allowed before the first.
    begun: bool,
}

impl EventReader {
    /// Returns the next complete event and advances `bytes` past it; `None` when `bytes` is used up. Do not continue
    /// after an error.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Event>, Error> {
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

    fn keep(&mut self, part: &[u8]) -> Result<(), Error> {
        if self.line.len() + self.data.len() + part.len() > LONGEST {
            let words = format!("an event of more than {LONGEST} bytes");
            return Err(Error::Senseless(words));
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// Processes a line. Returns the event if the line ends it.
    fn end_line(&mut self, line: &[u8]) -> Result<Option<Event>, Error> {
        let line = std::str::from_utf8(line);
        let mut line = line.map_err(|error| Error::Senseless(error.to_string()))?;
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "id" => self.number = value.parse().ok(),
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            // Comments and unused fields.
            _ => {}
        }
        Ok(None)
    }

    fn end_event(&mut self) -> Result<Option<Event>, Error> {
        let (name, number) = (std::mem::take(&mut self.name), self.number.take());
        let data = std::mem::take(&mut self.data);
        match data.strip_suffix('\n') {
            None => Ok(None),
            Some(data) => Event::read(&name, number, data).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events parsed one byte at a time, until the end or an error.
    fn read(text: &str) -> (Vec<Event>, Option<String>) {
        let (mut reader, mut events) = (EventReader::default(), Vec::new());
        for byte in text.as_bytes() {
            match reader.next(&mut &[*byte][..]) {
                Ok(event) => events.extend(event),
                Err(error) => return (events, Some(error.to_string())),
            }
        }
        (events, None)
    }

    #[test]
    fn lines_end_in_three_ways_and_fields_stand_in_any_order() {
        for end in ["\n", "\r", "\r\n"] {
            let text = "\u{feff}data: 1|event:ready|id: 7||:a comment|retry: 5||event: alive|data||data:|event: begin||";
            let (events, error) = read(&text.replace('|', end));
            assert_eq!(events, [Event::Ready(7), Event::Alive, Event::Begin]);
            assert_eq!(error, None);
        }
    }

    #[test]
    fn an_event_has_its_own_number_or_none() {
        let data = r#"data: {"type":"books",|data: "provider":"ada","name":"Gold"}||"#;
        let text = format!("id: 3|event: withdrawn|{data}event: withdrawn|{data}");
        let (events, _) = read(&text.replace('|', "\n"));
        let numbers = events.iter().map(|event| match event {
            Event::Changed { number, .. } => *number,
            other => panic!("{other:?}"),
        });
        assert_eq!(numbers.collect::<Vec<_>>(), [Some(3), None]);
    }

    #[test]
    fn nothing_without_end_is_kept() {
        for endless in ["x", "data: x\n"] {
            let mut reader = EventReader::default();
            let piece = endless.repeat(64 << 10);
            let fed =
                (0..1_000).find_map(|fed| Some((fed, reader.next(&mut piece.as_bytes()).err()?)));
            let (fed, error) = fed.expect("an error");
            assert!(fed * piece.len() <= 4 * LONGEST, "{endless:?} {fed}");
            assert!(
                error.to_string().contains("more than 8388608 bytes"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_no_event_is_refused() {
        for (text, words) in [
            ("data: x\n\n", "an event \"\""),
            ("event: put\ndata: {}\n\n", "missing field"),
        ] {
            let (events, error) = read(text);
            assert_eq!(events, []);
            assert!(error.unwrap().contains(words), "{text:?}");
        }
        let mut reader = EventReader::default();
        assert!(reader.next(&mut &b"data: \xff\n"[..]).is_err());
    }
}
