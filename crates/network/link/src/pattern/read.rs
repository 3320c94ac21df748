//! Parser of a pattern's text, line by line, in bounded memory.
//!
//! Errors have line, column and remedy. `draft` checks the compatibility of entries.

use std::io::{self, BufRead, Read as _};

use thiserror::Error;

use super::number;
use super::scan::{Scan, Wrong, small};
use super::{Draft, Effect, LINE, Pattern, PatternEntry, PatternRange};
use crate::Direction;

/// The first line.
pub(super) const HEADER: &str = "posthaste pattern 1";
/// The last line.
pub(super) const END: &str = "end";

/// Mark that some editors write before UTF-8 text.
pub(super) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

const KINDS: &str = "write drop, flip, delay, bandwidth, loss, opportunities, hold, copy or repeat";

/// An error in a pattern's text, with its location.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {violation}: {remedy}")]
pub struct PatternError {
    /// Line number from 1.
    pub line: u64,
    /// Characters from the line's start, from 1.
    pub column: usize,
    /// The error.
    pub violation: String,
    /// Correct form.
    pub remedy: String,
}

/// Error while reading a pattern.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The text could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The text is not a valid pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

impl Pattern {
    /// Reads a pattern's text.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        match Self::read(text.as_bytes()) {
            Ok(pattern) => Ok(pattern),
            Err(ReadError::Pattern(error)) => Err(error),
            Err(ReadError::Io(error)) => Err(PatternError {
                line: 1,
                column: 1,
                violation: error.to_string(),
                remedy: "give the text again".to_owned(),
            }),
        }
    }

    /// Reads a pattern's text from `source`, one line at a time in memory.
    pub fn read(mut source: impl BufRead) -> Result<Self, ReadError> {
        let mut draft = Draft::default();
        let mut bytes = Vec::new();
        let mut ended = false;
        let mut number = 0;
        loop {
            bytes.clear();
            let limit = LINE as u64 + 1;
            let read = (&mut source).take(limit).read_until(b'\n', &mut bytes)?;
            number += 1;
            if read == 0 {
                break;
            }
            if number == 1 && bytes.starts_with(BYTE_ORDER_MARK) {
                bytes.drain(..BYTE_ORDER_MARK.len());
            }
            let line = text(&bytes).map_err(|wrong| wrong.on(number, &bytes))?;
            let outcome = match (number, ended) {
                (1, _) => header(line),
                (_, true) => nothing(line),
                (_, false) if Scan::new(line).is(END) => {
                    ended = true;
                    Ok(())
                }
                (_, false) => entries(line, &mut draft),
            };
            outcome.map_err(|wrong| wrong.on(number, &bytes))?;
        }
        if !ended {
            let (violation, remedy) = match number {
                1 => no_header(),
                _ => (
                    "the pattern is cut off: its last line should be `end`",
                    "get the rest of it, or write `end` if this is all",
                ),
            };
            return Err(Wrong::at(0, violation, remedy).on(number, &[]).into());
        }
        Ok(draft.finish())
    }
}

impl Draft {
    /// Adds the entries of one line, for example `down drop 8`. Errors give line 1.
    pub fn add_line(&mut self, line: &str) -> Result<(), PatternError> {
        entries(line, self).map_err(|wrong| wrong.on(1, line.as_bytes()))
    }
}

impl Wrong {
    fn on(self, number: u64, line: &[u8]) -> PatternError {
        let before = String::from_utf8_lossy(&line[..self.at.min(line.len())]);
        PatternError {
            line: number,
            column: before.chars().count() + 1,
            violation: self.refusal.violation,
            remedy: self.refusal.remedy,
        }
    }
}

/// A line's bytes as text, without its end.
fn text(bytes: &[u8]) -> Result<&str, Wrong> {
    let whole = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if whole.len() > LINE {
        return Err(Wrong::at(
            0,
            format!("the line is longer than {LINE} bytes"),
            "spread it over several lines; neighbours can be one range (1-1000)",
        ));
    }
    std::str::from_utf8(whole).map_err(|error| {
        Wrong::at(
            error.valid_up_to(),
            "this is not text",
            "write the pattern in UTF-8",
        )
    })
}

fn no_header() -> (&'static str, &'static str) {
    (
        "this is no pattern",
        "begin it with the line `posthaste pattern 1`",
    )
}

fn header(line: &str) -> Result<(), Wrong> {
    let mut scan = Scan::new(line);
    for word in ["posthaste", "pattern"] {
        if scan.token() != Some(word) {
            let (violation, remedy) = no_header();
            return Err(Wrong::at(0, violation, remedy));
        }
    }
    let at = scan.start();
    match scan.token() {
        Some("1") => scan.end(),
        version => Err(Wrong::at(
            at,
            match version {
                Some(version) => format!("the version {version:?} is not known"),
                None => "the version is absent".to_owned(),
            },
            "this reads version 1: `posthaste pattern 1`",
        )),
    }
}

fn nothing(line: &str) -> Result<(), Wrong> {
    let mut scan = Scan::new(line);
    let at = scan.start();
    match scan.token_or_sign() {
        None => Ok(()),
        Some(_) => Err(Wrong::at(
            at,
            "text after `end`",
            "make `end` the last line",
        )),
    }
}

/// Adds the entries of one line.
fn entries(line: &str, draft: &mut Draft) -> Result<(), Wrong> {
    let mut scan = Scan::new(line);
    if scan.rest().is_empty() {
        return Ok(());
    }
    let at = scan.start();
    let direction = match scan.token() {
        Some("up") => Direction::Up,
        Some("down") => Direction::Down,
        _ => {
            return Err(Wrong::at(
                at,
                format!("{:?} is no direction", scan.seen(at)),
                "write up (from the client) or down (from the server)",
            ));
        }
    };
    let at = scan.start();
    let kind = scan.token().unwrap_or_default();
    match kind {
        "repeat" => {
            let (at, (axis, first)) = (scan.start(), scan.end_of_range()?);
            let range = PatternRange {
                axis,
                first,
                last: first,
            };
            scan.end()?;
            add(draft, at, direction, range, Effect::Repeat)
        }
        "delay" | "bandwidth" | "loss" if scan.eat_word("from") => {
            change(scan, draft, direction, kind)
        }
        "bandwidth" => Err(Wrong::at(
            scan.start(),
            "a bandwidth holds from a packet or a time on",
            "write `bandwidth from 200ms: 160kbit`",
        )),
        "loss" => Err(Wrong::at(
            scan.start(),
            "a probability of loss holds from a packet or a time on",
            "write `loss from 200ms: 2%`, or `drop 8` for certain packets",
        )),
        "drop" | "flip" | "delay" | "opportunities" | "hold" | "copy" => {
            places(scan, draft, direction, kind)
        }
        _ => Err(Wrong::at(
            at,
            match kind {
                "" => "the line ends where it should say what happens".to_owned(),
                _ => format!("{kind:?} is nothing that happens to packets"),
            },
            KINDS,
        )),
    }
}

/// The rest of `DIRECTION delay from PLACE: VALUE`, the same for a bandwidth or a loss.
fn change(
    mut scan: Scan<'_>,
    draft: &mut Draft,
    direction: Direction,
    kind: &str,
) -> Result<(), Wrong> {
    let (at, (axis, first)) = (scan.start(), scan.end_of_range()?);
    scan.colon("a value")?;
    let default = scan.eat_word("default");
    let effect = match (kind, default) {
        ("delay", true) => Effect::DelayFrom(None),
        ("delay", false) => Effect::DelayFrom(Some(scan.value(number::span)?)),
        ("loss", true) => Effect::LossFrom(None),
        ("loss", false) => Effect::LossFrom(Some(scan.value(number::loss_share)?)),
        (_, true) => Effect::BandwidthFrom(None),
        (_, false) => Effect::BandwidthFrom(Some(scan.value(number::bandwidth)?)),
    };
    scan.end()?;
    let range = PatternRange {
        axis,
        first,
        last: first,
    };
    add(draft, at, direction, range, effect)
}

/// The rest of `DIRECTION KIND PLACE, PLACE: VALUE`.
fn places(
    mut scan: Scan<'_>,
    draft: &mut Draft,
    direction: Direction,
    kind: &str,
) -> Result<(), Wrong> {
    let mut list = scan.clone();
    list.range()?;
    while list.eat(',') {
        list.range()?;
    }
    let effect = match kind {
        "drop" => Effect::Drop,
        "flip" => {
            list.colon("the bits that flip")?;
            Effect::Flip(list.bits()?)
        }
        "delay" => {
            list.colon("a delay")?;
            Effect::Delay(list.value(number::span)?)
        }
        "opportunities" => {
            list.colon("how many delivery opportunities there are")?;
            Effect::Opportunities(list.value(small)?)
        }
        "hold" => {
            list.colon("how many later packets go first")?;
            Effect::Hold(list.value(small)?)
        }
        _ => {
            list.colon("how many copies follow")?;
            Effect::Copy(list.value(small)?)
        }
    };
    list.end()?;
    // The value is known now. The places are read again, one at a time.
    loop {
        let (at, range) = (scan.start(), scan.range()?);
        add(draft, at, direction, range, effect.clone())?;
        if !scan.eat(',') {
            return Ok(());
        }
    }
}

fn add(
    draft: &mut Draft,
    at: usize,
    direction: Direction,
    range: PatternRange,
    effect: Effect,
) -> Result<(), Wrong> {
    let entry = PatternEntry {
        direction,
        range,
        effect,
    };
    draft.add(entry).map_err(|refusal| Wrong { at, refusal })
}
