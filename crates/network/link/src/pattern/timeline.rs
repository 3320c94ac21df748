//! Timelines: bandwidth, delay and loss of a direction by time, from CSV.
//!
//! The header names the columns with their units: `time_ms`, and any of `bandwidth_kbit`, `delay_ms` and
//! `loss_percent`, in any order. Each row holds until the time of the next. An empty cell keeps the value of the row
//! before. The last row holds to the end, unless it has a time only: then the timeline repeats from its beginning at
//! that time. Values are exact or refused, as in a pattern's text.

use std::io::{self, BufRead, Read as _};

use thiserror::Error;

use super::read::BYTE_ORDER_MARK;
use super::{Draft, Effect, PatternEntry, PatternRange, number};
use crate::Direction;

/// Longest line, in bytes.
const LINE: u64 = 1024;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// Values that a column can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimelineColumn {
    Time,
    Bandwidth,
    Delay,
    Loss,
}

/// All columns: name in the header, quantity, and unit in a pattern's text.
const COLUMNS: &[(&str, TimelineColumn, &str)] = &[
    ("time_ms", TimelineColumn::Time, "ms"),
    ("time_s", TimelineColumn::Time, "s"),
    ("bandwidth_bit", TimelineColumn::Bandwidth, "bit"),
    ("bandwidth_kbit", TimelineColumn::Bandwidth, "kbit"),
    ("bandwidth_mbit", TimelineColumn::Bandwidth, "Mbit"),
    ("delay_us", TimelineColumn::Delay, "us"),
    ("delay_ms", TimelineColumn::Delay, "ms"),
    ("delay_s", TimelineColumn::Delay, "s"),
    ("loss_percent", TimelineColumn::Loss, "%"),
];

const HEADER: &str = "write a header such as time_ms,bandwidth_kbit,delay_ms,loss_percent";

/// Error in a timeline.
#[derive(Debug, Error)]
pub enum TimelineError {
    /// The file could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file has no row.
    #[error("no row in it: {HEADER}, and a row for each change")]
    Empty,
    /// Error in a line.
    #[error("line {line}: {violation}")]
    Line {
        /// Line number from 1.
        line: u64,
        /// The error, with its remedy.
        violation: String,
    },
}

/// A row with its time in milliseconds, and its effects.
struct TimelineRow {
    at: u64,
    effects: Vec<Effect>,
}

/// Adds a timeline to one direction of a pattern. Returns its number of rows, and its length in milliseconds if it
/// repeats.
///
/// # Errors
///
/// The first line that is not valid, or that contradicts the draft.
pub fn timeline(
    mut source: impl BufRead,
    direction: Direction,
    draft: &mut Draft,
) -> Result<(u64, Option<u64>), TimelineError> {
    let mut columns = None::<Vec<(TimelineColumn, &str)>>;
    let (mut rows, mut before, mut repeats) = (0, None, None);
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        if (&mut source).take(LINE + 1).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let located = |violation: String| TimelineError::Line { line, violation };
        let text = text(line, &bytes).map_err(located)?;
        if text.is_empty() {
            continue;
        }
        let Some(columns) = &columns else {
            columns = Some(header(text).map_err(located)?);
            continue;
        };
        if let Some(period) = repeats {
            let violation = format!(
                "the row before has a time only, {period} ms, and so ends the timeline: give it values"
            );
            return Err(located(violation));
        }
        let TimelineRow { at, effects } = row(text, columns).map_err(located)?;
        if let Some(before) = before.filter(|before| at <= *before) {
            let violation = format!(
                "{at} ms is not later than the row before, {before} ms: sort the rows by time"
            );
            return Err(located(violation));
        }
        if effects.is_empty() && rows == 0 {
            return Err(located(
                "the first row has a time only: give it values".to_owned(),
            ));
        }
        if effects.is_empty() {
            repeats = Some(at);
        }
        before = Some(at);
        rows += 1;
        let repeat = repeats.map(|_| Effect::Repeat);
        add(draft, direction, at, effects.into_iter().chain(repeat)).map_err(located)?;
    }
    if rows == 0 {
        return Err(TimelineError::Empty);
    }
    Ok((rows, repeats))
}

/// A line without its end, its comment and a byte-order mark.
fn text(line: u64, bytes: &[u8]) -> Result<&str, String> {
    if bytes.len() as u64 > LINE {
        return Err(format!(
            "it is longer than {LINE} bytes: write one row a line"
        ));
    }
    let marked = bytes.strip_prefix(BYTE_ORDER_MARK).filter(|_| line == 1);
    let text = std::str::from_utf8(marked.unwrap_or(bytes))
        .map_err(|_| "it is not text: write the file in UTF-8".to_owned())?;
    Ok(text.split('#').next().unwrap_or_default().trim())
}

/// The columns that a header names.
fn header(text: &str) -> Result<Vec<(TimelineColumn, &'static str)>, String> {
    let mut columns: Vec<(TimelineColumn, &'static str)> = Vec::new();
    for name in text.split(',').map(str::trim) {
        let known = COLUMNS
            .iter()
            .find(|(known, ..)| known.eq_ignore_ascii_case(name));
        let Some((name, quantity, unit)) = known else {
            let names: Vec<&str> = COLUMNS.iter().map(|(name, ..)| *name).collect();
            return Err(format!(
                "{name:?} is no column: {HEADER}; columns are {}",
                names.join(", ")
            ));
        };
        if columns.iter().any(|(other, _)| other == quantity) {
            return Err(format!("{name} repeats a column: name each quantity once"));
        }
        columns.push((*quantity, *unit));
    }
    let has_time = columns
        .iter()
        .any(|(quantity, _)| *quantity == TimelineColumn::Time);
    if !has_time || columns.len() < 2 {
        return Err(format!("a time and a value are needed: {HEADER}"));
    }
    Ok(columns)
}

/// The cells of a line, by its columns.
fn row(text: &str, columns: &[(TimelineColumn, &str)]) -> Result<TimelineRow, String> {
    let cells: Vec<&str> = text.split(',').map(str::trim).collect();
    if cells.len() != columns.len() {
        let (cells, columns) = (cells.len(), columns.len());
        return Err(format!(
            "{cells} cells for {columns} columns: write a comma for each empty cell too"
        ));
    }
    let (mut at, mut effects) = (None, Vec::new());
    for (cell, (quantity, unit)) in cells.iter().zip(columns) {
        let wrong = |why: String| format!("{cell:?} ({unit}) {why}");
        let value = format!("{cell}{unit}");
        match quantity {
            TimelineColumn::Time => at = Some(number::span(&value).map_err(wrong)?),
            _ if cell.is_empty() => {}
            TimelineColumn::Bandwidth => {
                let bandwidth = number::bandwidth(&value).map_err(|why| {
                    wrong(why.replace("drop the packets instead", "write a loss of 100 percent"))
                })?;
                effects.push(Effect::BandwidthFrom(Some(bandwidth)));
            }
            TimelineColumn::Delay => {
                let delay = number::span(&value).map_err(wrong)?;
                effects.push(Effect::DelayFrom(Some(delay)));
            }
            TimelineColumn::Loss => {
                let share = number::loss_share(&value).map_err(wrong)?;
                effects.push(Effect::LossFrom(Some(share)));
            }
        }
    }
    let at = at.expect("a header has a time").as_nanos();
    if !at.is_multiple_of(NANOS_PER_MILLI) {
        return Err("the time is no whole number of milliseconds: round it".to_owned());
    }
    Ok(TimelineRow {
        at: at / NANOS_PER_MILLI,
        effects,
    })
}

fn add(
    draft: &mut Draft,
    direction: Direction,
    at: u64,
    effects: impl Iterator<Item = Effect>,
) -> Result<(), String> {
    for effect in effects {
        let entry = PatternEntry {
            direction,
            range: PatternRange::millis(at, at),
            effect,
        };
        draft.add(entry).map_err(|refusal| refusal.to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pattern::Pattern;

    fn made(text: &str) -> Result<(String, Option<u64>), String> {
        let mut draft = Draft::default();
        let read = timeline(text.as_bytes(), Direction::Down, &mut draft);
        let (_, repeats) = read.map_err(|error| error.to_string())?;
        let text = draft.finish().to_string();
        assert!(Pattern::parse(&text).is_ok(), "{text}");
        let body = text.strip_prefix("posthaste pattern 1\n").unwrap();
        Ok((
            body.strip_suffix("end\n").unwrap().replace("down ", ""),
            repeats,
        ))
    }

    #[test]
    fn rows_hold_until_the_next() {
        let text =
            "time_s,bandwidth_Mbit,delay_ms,loss_percent\n0,5,20,0\n1.5,0.25,,2.5\n2,,80.5,\n";
        let expected = "\
delay from 0ms: 20ms
delay from 2000ms: 80500us
bandwidth from 0ms: 5Mbit
bandwidth from 1500ms: 250kbit
loss from 0ms: 0%
loss from 1500ms: 2.5%
";
        assert_eq!(made(text), Ok((expected.to_owned(), None)));
        let other = format!("\u{feff}# a drive\n{}\n\n", text.replace('\n', " # x\r\n"));
        assert_eq!(made(&other), made(text));
    }

    #[test]
    fn a_last_row_without_values_repeats() {
        let (text, repeats) = made("delay_us,time_ms\n300,0\n500,10\n,20\n").unwrap();
        assert_eq!(repeats, Some(20));
        assert_eq!(
            text,
            "repeat 20ms\ndelay from 0ms: 300us\ndelay from 10ms: 500us\n"
        );
    }

    #[test]
    fn a_text_that_is_no_timeline_is_refused_by_line() {
        for (text, expected) in [
            ("", "no row in it: write a header such as time_ms,"),
            ("time_ms,delay_ms\n", "no row in it"),
            (
                "0,10\n",
                "line 1: \"0\" is no column: write a header such as",
            ),
            ("time_ms,rate\n", "line 1: \"rate\" is no column"),
            ("time_ms\n1\n", "line 1: a time and a value are needed"),
            ("delay_ms,delay_us\n", "line 1: delay_us repeats a column"),
            ("time_ms,delay_ms\n0\n", "line 2: 1 cells for 2 columns"),
            (
                "time_ms,delay_ms\n0,5\n0,6\n",
                "line 3: 0 ms is not later than the row before, 0 ms",
            ),
            (
                "time_ms,delay_ms\n\n5,5\n3,6\n",
                "line 4: 3 ms is not later",
            ),
            (
                "time_ms,delay_ms\n0.5,5\n",
                "line 2: the time is no whole number",
            ),
            ("time_ms,delay_ms\n,5\n", "line 2: \"\" (ms) is not a time"),
            (
                "time_ms,delay_ms\n0,-5\n",
                "line 2: \"-5\" (ms) is not a time",
            ),
            (
                "time_ms,delay_ms\n0,4000000\n",
                "line 2: a delay of more than an hour",
            ),
            (
                "time_ms,loss_percent\n0,101\n",
                "line 2: \"101\" (%) is more than all packets",
            ),
            (
                "time_ms,bandwidth_bit\n0,0\n",
                "line 2: \"0\" (bit) is no bandwidth: write a loss of 100 percent",
            ),
            (
                "time_ms,delay_ms\n0,\n",
                "line 2: the first row has a time only",
            ),
            (
                "time_ms,delay_ms\n0,5\n9,\n10,6\n",
                "line 4: the row before has a time only, 9 ms",
            ),
        ] {
            let error = made(text).unwrap_err();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
        let long = format!("time_ms,delay_ms\n{}", "0".repeat(2000));
        assert!(
            made(&long)
                .unwrap_err()
                .starts_with("line 2: it is longer than 1024 bytes")
        );
        let mut draft = Draft::default();
        draft.add_line("down opportunities 5ms: 1").unwrap();
        let rows = &b"time_ms,bandwidth_kbit\n0,10\n"[..];
        let error = timeline(rows, Direction::Down, &mut draft)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("line 2: it has both a bandwidth and"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(time_ms,(delay_ms|loss_percent),bandwidth_kbit\n)?([0-9.,\\-#\r\n ]|[a-z_]){0,80}") {
            if let Ok((_, Some(period))) = made(&text) {
                prop_assert!(period > 0);
            }
        }

        #[test]
        fn each_row_is_in_force_until_the_next(
            rows in proptest::collection::vec((1u64..50, proptest::option::of(0u64..1000)), 1..20),
        ) {
            let mut at = 0;
            let mut text = "time_ms,delay_ms,bandwidth_kbit\n".to_owned();
            let (mut expected, mut delay) = (Vec::new(), None);
            for (gap, cell) in rows {
                delay = cell.or(delay);
                expected.push((at, delay));
                let cell = cell.map_or(String::new(), |cell| cell.to_string());
                text += &format!("{at},{cell},1\n");
                at += gap;
            }
            let mut draft = Draft::default();
            timeline(text.as_bytes(), Direction::Up, &mut draft).unwrap();
            let pattern = draft.finish();
            let mut cursor = pattern.script(Direction::Up).cursor();
            for millis in 0..at {
                let row = expected.iter().rev().find(|(from, _)| *from <= millis).unwrap();
                let step = cursor.step(1, posthaste_units::Span::from_millis(millis));
                prop_assert_eq!(step.delay, row.1.map(posthaste_units::Span::from_millis));
            }
        }
    }
}
