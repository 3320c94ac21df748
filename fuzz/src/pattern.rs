//! Patterns: what is read can be written and read again, and is followed the same from anywhere.

use posthaste_link::Direction;
use posthaste_link::pattern::{
    Draft, ENTRIES, Pattern, PatternError, ReadError, mahimahi, timeline,
};
use posthaste_units::Span;

use crate::within;

/// Bytes that may be allocated for each byte read: a packet of two characters is an entry in a tree
/// and then in a list that grows.
const PER_BYTE: usize = 200;

/// Bytes that may be allocated whatever the length: the buffer of the longest line, an error's words.
const FIXED: usize = 256 << 10;

/// Any bytes as a pattern, as one line of it, as a trace and as a timeline.
pub fn pattern(bytes: &[u8]) {
    let read = within("Pattern::read", bytes.len(), PER_BYTE, FIXED, || {
        Pattern::read(bytes)
    });
    match read {
        Ok(pattern) => holds(&pattern),
        Err(ReadError::Pattern(error)) => placed(&error, bytes),
        Err(ReadError::Io(error)) => panic!("{error}"),
    }
    let mut draft = Draft::default();
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Err(error) = draft.add_line(text)
    {
        assert_eq!(error.line, 1);
    }
    holds(&draft.finish());
    trace(bytes);
    rows(bytes);
}

fn holds(pattern: &Pattern) {
    assert!(pattern.entries().count() <= ENTRIES);
    let text = pattern.to_string();
    let again = Pattern::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(&again, pattern, "{text}");
    assert_eq!(again.to_string(), text);
    for direction in Direction::BOTH {
        let script = pattern.script(direction);
        let mut walked = script.cursor();
        for entry in pattern.entries().take(50) {
            for bound in [entry.range.first, entry.range.last, entry.range.last + 1] {
                let elapsed = Span::from_millis(1) * bound;
                // Times begin at 0, positions at 1.
                let position = bound.max(1);
                let fresh = script.cursor().step(position, elapsed);
                assert_eq!(walked.step(position, elapsed), fresh, "{bound}: {text}");
                assert!(!fresh.drop || fresh.flips.is_empty() && fresh.copies == 0);
            }
        }
    }
}

/// An error names a place in the text, or the line behind its end where something is missing.
fn placed(error: &PatternError, bytes: &[u8]) {
    assert!(!error.violation.is_empty() && !error.remedy.is_empty());
    let lines = bytes.split(|byte| *byte == b'\n').count() as u64;
    assert!((1..=lines + 1).contains(&error.line), "{error}");
    let line = bytes
        .split(|byte| *byte == b'\n')
        .nth(error.line as usize - 1);
    let length = line.map_or(0, <[u8]>::len);
    assert!((1..=length + 1).contains(&error.column), "{error}");
}

fn trace(bytes: &[u8]) {
    let mut draft = Draft::default();
    let read = within("mahimahi", bytes.len(), PER_BYTE, FIXED, || {
        mahimahi(bytes, Direction::Up, &mut draft)
    });
    match read {
        Ok((millis, packets)) => {
            assert!(millis > 0 && packets > 0);
            let pattern = draft.finish();
            holds(&pattern);
            assert!(pattern.entries().count() >= 2, "opportunities and a repeat");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn rows(bytes: &[u8]) {
    let mut draft = Draft::default();
    let read = within("timeline", bytes.len(), PER_BYTE, FIXED, || {
        timeline(bytes, Direction::Up, &mut draft)
    });
    match read {
        Ok((rows, repeats)) => {
            assert!(rows > 0 && repeats != Some(0));
            let pattern = draft.finish();
            holds(&pattern);
            assert!(pattern.entries().count() > 0, "a row has a value");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
