//! Scanner for one line of a pattern's text: words, numbers, places and values in turn.
//!
//! All errors have their position in the line. `read` interprets the words.

use super::number;
use super::{Axis, Bits, PatternRange, PatternRefusal};

const NANOS_PER_MILLI: u64 = 1_000_000;

/// An error in a line.
pub(super) struct Wrong {
    /// Start of the error, in bytes.
    pub(super) at: usize,
    pub(super) refusal: PatternRefusal,
}

impl Wrong {
    pub(super) fn at(at: usize, violation: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            at,
            refusal: PatternRefusal::new(violation, remedy),
        }
    }
}

/// A small whole number.
pub(super) fn small(text: &str) -> Result<u32, String> {
    u32::try_from(number::whole(text)?).map_err(|_| "is too large".to_owned())
}

/// A line with a read position. Blanks are allowed between any two tokens.
#[derive(Clone)]
pub(super) struct Scan<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    /// A line without its comment.
    pub(super) fn new(line: &'a str) -> Self {
        let line = line.split('#').next().unwrap_or_default().trim_end();
        Self { line, at: 0 }
    }

    /// True if the line consists of this word only.
    pub(super) fn is(&self, word: &str) -> bool {
        self.line.trim() == word
    }

    /// The rest of the line, from the next token on.
    pub(super) fn rest(&mut self) -> &'a str {
        let rest = &self.line[self.at..];
        let rest = rest.trim_start();
        self.at = self.line.len() - rest.len();
        rest
    }

    /// Start of the next token, in bytes.
    pub(super) fn start(&mut self) -> usize {
        self.rest();
        self.at
    }

    /// Text from `start` to the next blank, for a quotation.
    pub(super) fn seen(&self, start: usize) -> String {
        let rest = self.line[start..].chars();
        rest.take_while(|c| !c.is_whitespace()).take(20).collect()
    }

    /// The next word or number.
    pub(super) fn token(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | '-'))
            .unwrap_or(rest.len());
        self.at += end;
        (end > 0).then(|| &rest[..end])
    }

    pub(super) fn token_or_sign(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        (!rest.is_empty()).then_some(rest)
    }

    pub(super) fn eat(&mut self, sign: char) -> bool {
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len_utf8();
        }
        found
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let mut ahead = self.clone();
        let found = ahead.token() == Some(word);
        if found {
            *self = ahead;
        }
        found
    }

    pub(super) fn colon(&mut self, element: &str) -> Result<(), Wrong> {
        let at = self.start();
        if self.eat(':') {
            Ok(())
        } else {
            Err(Wrong::at(
                at,
                format!("{element} should follow"),
                "write a colon and then the value, for example `delay 5: 40ms`",
            ))
        }
    }

    pub(super) fn end(&mut self) -> Result<(), Wrong> {
        let at = self.start();
        match self.rest() {
            "" => Ok(()),
            _ => Err(Wrong::at(
                at,
                format!("{:?} was not expected here", self.seen(at)),
                "end the line before it, or begin a comment with #",
            )),
        }
    }

    /// A value, read by `read`.
    pub(super) fn value<T>(
        &mut self,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, Wrong> {
        let at = self.start();
        let token = self.token().unwrap_or_default();
        read(token).map_err(|wrong| match token {
            "" => Wrong::at(
                at,
                "the line ends where a value should stand",
                "write the value behind the colon",
            ),
            _ => {
                let (violation, remedy) = wrong.split_once(": ").unwrap_or((
                    &wrong,
                    "see docs/reference/patterns.md for what can stand here",
                ));
                Wrong::at(at, format!("{token:?} {violation}"), remedy)
            }
        })
    }

    /// One end of a range: a packet without a unit, or a time with its unit.
    pub(super) fn end_of_range(&mut self) -> Result<(Axis, u64), Wrong> {
        let at = self.start();
        let Some(token) = self.token() else {
            return Err(Wrong::at(
                at,
                "a packet or a time should stand here",
                "write a packet (8), a range (12-14) or a time (200ms)",
            ));
        };
        let (_, unit) = number::split(token);
        if unit.is_empty() {
            let packet = number::whole(token).map_err(|wrong| {
                Wrong::at(at, format!("{token:?} {wrong}"), "packets count 1, 2, 3")
            })?;
            return Ok((Axis::Packets, packet));
        }
        let span = number::span(token).map_err(|wrong| {
            Wrong::at(
                at,
                format!("{token:?} {}", wrong.split(": ").next().unwrap_or_default()),
                "write packets without unit (8) and times in milliseconds (200ms)",
            )
        })?;
        if !span.as_nanos().is_multiple_of(NANOS_PER_MILLI) {
            return Err(Wrong::at(
                at,
                format!("{token:?} is no whole number of milliseconds"),
                "places in time are whole milliseconds: 200ms",
            ));
        }
        Ok((Axis::Millis, span.as_nanos() / NANOS_PER_MILLI))
    }

    /// A packet, a millisecond, or a range. The end of a range of times is exclusive.
    pub(super) fn range(&mut self) -> Result<PatternRange, Wrong> {
        let at = self.start();
        let (axis, first) = self.end_of_range()?;
        if !self.eat('-') {
            return Ok(PatternRange {
                axis,
                first,
                last: first,
            });
        }
        let (until, end) = self.end_of_range()?;
        if axis != until {
            return Err(Wrong::at(
                at,
                "the range goes from a packet to a time",
                "give both ends a unit (200ms-400ms), or none (12-14)",
            ));
        }
        let (last, empty) = match axis {
            Axis::Packets => (end, end < first),
            Axis::Millis => (end.saturating_sub(1), end <= first),
        };
        if empty {
            return Err(Wrong::at(
                at,
                "the range runs backwards or is empty",
                "write the smaller end first; 200ms-201ms is one millisecond",
            ));
        }
        Ok(PatternRange { axis, first, last })
    }

    /// A list of bits and ranges of bits, to the end of the line.
    pub(super) fn bits(&mut self) -> Result<Bits, Wrong> {
        let at = self.start();
        let mut ranges = Vec::new();
        loop {
            let first = self.value(small)?;
            let last = if self.eat('-') {
                self.value(small)?
            } else {
                first
            };
            ranges.push((first, last));
            if ranges.len() > Bits::RANGES {
                let refusal = Bits::too_many_ranges();
                return Err(Wrong { at, refusal });
            }
            if !self.eat(',') {
                break;
            }
        }
        Bits::new(ranges).ok_or_else(|| {
            Wrong::at(
                at,
                "a bit is named twice, a range runs backwards, or a bit is out of reach",
                format!(
                    "name each bit once, the smaller first, from 0 to {}",
                    Bits::LAST
                ),
            )
        })
    }
}
