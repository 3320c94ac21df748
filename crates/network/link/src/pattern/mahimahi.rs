//! Mahimahi's traces of a link's capacity, as delivery opportunities.
//!
//! A trace has one line for each time, in milliseconds, at which a packet can leave the queue (mm-link(1)). At its end it
//! repeats. mahimahi refuses empty lines, and what `strtol` does not read to the end; it reads blanks before a number.
//! A byte-order mark, and CR or blanks after a number, are accepted here in addition: they have one meaning.

use std::io::{self, BufRead, Read as _};

use thiserror::Error;

use super::read::BYTE_ORDER_MARK;
use super::{Draft, Effect, PatternEntry, PatternRange, PatternRefusal};
use crate::Direction;

/// Longest line: a number of twenty digits and some blanks.
const LINE: u64 = 64;

/// Error in a trace.
#[derive(Debug, Error)]
pub enum MahimahiError {
    /// The trace could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An empty line.
    #[error(
        "line {line}: it is empty: write whole milliseconds, one a line, and nothing after the last"
    )]
    EmptyLine {
        /// Line number from 1.
        line: u64,
    },
    /// A line that is not a number.
    #[error("line {line}: {text:?} is not a time: write whole milliseconds, one a line")]
    NotATime {
        /// Line number from 1.
        line: u64,
        /// Text of the line, shortened.
        text: String,
    },
    /// A time before its predecessor.
    #[error("line {line}: {at} is earlier than the line before: sort the file by time")]
    Backwards {
        /// Line number from 1.
        line: u64,
        /// The time, in milliseconds.
        at: u64,
    },
    /// No time after 0.
    #[error("no time after 0 in it: write one time in milliseconds a line, for example 1")]
    Empty,
    /// The pattern cannot hold the trace.
    #[error("line {line}: {refusal}")]
    Refused {
        /// Line number from 1.
        line: u64,
        /// Reason.
        refusal: PatternRefusal,
    },
}

/// Adds a trace to one direction of a pattern. Returns the trace's length in milliseconds, and its number of
/// opportunities.
pub fn mahimahi(
    mut source: impl BufRead,
    direction: Direction,
    draft: &mut Draft,
) -> Result<(u64, u64), MahimahiError> {
    let mut bytes = Vec::new();
    let (mut line, mut opportunities) = (0, 0);
    // The end of a round is the beginning of the next. Nothing waits at the beginning of the first.
    let (mut at_zero, mut until, mut count) = (0u32, 0, 0u32);
    let mut add = |line, at, effect| {
        let range = PatternRange::millis(at, at);
        let entry = PatternEntry {
            direction,
            range,
            effect,
        };
        draft
            .add(entry)
            .map_err(|refusal| MahimahiError::Refused { line, refusal })
    };
    loop {
        bytes.clear();
        if (&mut source).take(LINE).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        line += 1;
        let at = time(line, &bytes)?;
        opportunities += 1;
        match at {
            0 if until == 0 => at_zero = at_zero.saturating_add(1),
            _ if at < until => return Err(MahimahiError::Backwards { line, at }),
            _ if at == until => count = count.saturating_add(1),
            _ => {
                if until > 0 {
                    add(line, until, Effect::Opportunities(count))?;
                }
                (until, count) = (at, 1);
            }
        }
    }
    if until == 0 {
        return Err(MahimahiError::Empty);
    }
    add(
        line,
        0,
        Effect::Opportunities(count.saturating_add(at_zero)),
    )?;
    add(line, until, Effect::Repeat)?;
    Ok((until, opportunities))
}

/// The time of one line, in milliseconds.
fn time(line: u64, bytes: &[u8]) -> Result<u64, MahimahiError> {
    let marked = bytes.strip_prefix(BYTE_ORDER_MARK).filter(|_| line == 1);
    let text = String::from_utf8_lossy(marked.unwrap_or(bytes));
    let text = text.trim();
    if text.is_empty() {
        return Err(MahimahiError::EmptyLine { line });
    }
    text.parse().map_err(|_| MahimahiError::NotATime {
        line,
        text: text.chars().take(20).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(trace: &[u8]) -> Result<String, String> {
        let mut draft = Draft::default();
        mahimahi(trace, Direction::Down, &mut draft).map_err(|error| error.to_string())?;
        let text = draft.finish().to_string();
        let body = text.strip_prefix("posthaste pattern 1\n").unwrap();
        Ok(body.strip_suffix("end\n").unwrap().replace("down ", ""))
    }

    #[test]
    fn a_trace_is_its_opportunities() {
        let twelve: String = (0..100).map(|ms| format!("{ms}\n")).collect();
        for (trace, expected) in [
            ("1\n", "repeat 1ms\nopportunities 0ms: 1\n"),
            (
                &*twelve,
                "repeat 99ms\nopportunities 0ms: 2\nopportunities 1ms-99ms: 1\n",
            ),
            (
                "1\n1\n1\n101\n",
                "repeat 101ms\nopportunities 0ms: 1\nopportunities 1ms: 3\n",
            ),
        ] {
            assert_eq!(made(trace.as_bytes()).as_deref(), Ok(expected), "{trace:?}");
        }
    }

    #[test]
    fn spellings_with_one_meaning_are_read() {
        let plain = made(b"1\n2\n3\n");
        assert!(plain.is_ok());
        for trace in [
            &b"1\r\n2\r\n3\r\n"[..],
            b"\xef\xbb\xbf1\n2\n3\n",
            b"1\n2\n3",
            b"1 \n 2\n\t3\n",
        ] {
            assert_eq!(made(trace), plain, "{trace:?}");
        }
    }

    #[test]
    fn an_invalid_trace_is_refused_by_line() {
        for (trace, expected) in [
            ("", "no time after 0"),
            ("0\n0\n", "no time after 0"),
            ("5\n3\n", "line 2: 3 is earlier"),
            ("1\n2\n3\n\n", "line 4: it is empty"),
            ("# comment\n1\n2\n", "line 1: \"# comment\" is not a time"),
            ("0,10\n1,20\n", "line 1: \"0,10\" is not a time"),
            ("1.5\n2.5\n", "line 1: \"1.5\" is not a time"),
            ("-1\n3\n", "line 1: \"-1\" is not a time"),
            ("1\n\u{feff}2\n", "line 2: "),
            ("soon", "whole milliseconds"),
            ("99999999999999999\n", "out of reach"),
        ] {
            let error = made(trace.as_bytes()).unwrap_err();
            assert!(error.contains(expected), "{trace:?}: {error}");
        }
    }
}
