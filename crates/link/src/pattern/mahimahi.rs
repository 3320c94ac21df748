//! Conversion of Mahimahi's traces of a link's capacity into changes of bandwidth.
//!
//! A trace has one line for each time, in milliseconds, at which 1,500 bytes can leave the queue (mm-link(1)). At its
//! end it repeats. Here the bytes of each time are spread evenly over the time since the previous one. A queue of
//! full-sized packets leaves at exactly mahimahi's milliseconds, and the capacity up to each time is the same.
//! Differences: mahimahi wastes an opportunity if no packet waits then, and lets small packets share 1,500 bytes at
//! once.

use std::io::{self, BufRead, Read as _};

use posthaste_units::BitRate;
use thiserror::Error;

use super::{Draft, Effect, PatternEntry, PatternRange, PatternRefusal};
use crate::Direction;

/// Capacity of each line, in bits.
const OPPORTUNITY: u64 = 1500 * 8;
const MILLIS_PER_SECOND: u64 = 1000;
/// Longest line: a number of twenty digits and some blanks.
const LINE: u64 = 64;

/// Error in a trace.
#[derive(Debug, Error)]
pub enum MahimahiError {
    /// The trace could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
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
    /// The pattern cannot hold the change.
    #[error("line {line}: {refusal}")]
    Refused {
        /// Line number from 1.
        line: u64,
        /// Reason.
        refusal: PatternRefusal,
    },
}

/// Adds a trace to one direction of a pattern. Returns the trace's length in milliseconds, and its number of packets of
/// 1,500 bytes.
pub fn mahimahi(
    mut source: impl BufRead,
    direction: Direction,
    draft: &mut Draft,
) -> Result<(u64, u64), MahimahiError> {
    let mut bytes = Vec::new();
    let (mut line, mut packets) = (0, 0);
    // Times at 0 belong to the end, where the trace repeats.
    let (mut at_zero, mut from, mut until, mut count) = (0, 0, 0, 0u64);
    let mut add = |line, at, effect| {
        let place = PatternRange::millis(at, at);
        let entry = PatternEntry {
            direction,
            place,
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
        let text = String::from_utf8_lossy(&bytes);
        let at: u64 = text.trim().parse().map_err(|_| MahimahiError::NotATime {
            line,
            text: text.trim().chars().take(20).collect(),
        })?;
        packets += 1;
        match at {
            0 if until == 0 => at_zero += 1,
            _ if at < until => return Err(MahimahiError::Backwards { line, at }),
            _ if at == until => count += 1,
            _ => {
                if until > 0 {
                    add(line, from, rate(count, until - from))?;
                }
                (from, until, count) = (until, at, 1);
            }
        }
    }
    if until == 0 {
        return Err(MahimahiError::Empty);
    }
    add(line, from, rate(count + at_zero, until - from))?;
    add(line, until, Effect::Repeat)?;
    Ok((until, packets))
}

fn rate(packets: u64, millis: u64) -> Effect {
    let bits = packets.saturating_mul(OPPORTUNITY * MILLIS_PER_SECOND) / millis;
    Effect::BandwidthFrom(BitRate::per_second(bits.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(trace: &str) -> Result<String, String> {
        let mut draft = Draft::default();
        mahimahi(trace.as_bytes(), Direction::Down, &mut draft)
            .map_err(|error| error.to_string())?;
        Ok(draft.finish().to_string())
    }

    #[test]
    fn a_trace_is_its_capacity_between_moments() {
        let lines = |text: &str| {
            let body = text.strip_prefix("posthaste pattern 1\n").unwrap();
            body.strip_suffix("end\n").unwrap().to_owned()
        };
        assert_eq!(
            lines(&made("1\n").unwrap()),
            "down repeat 1ms\ndown bandwidth from 0ms: 12Mbit\n"
        );
        let twelve: String = (0..100).map(|ms| format!("{ms}\n")).collect();
        let twelve = lines(&made(&twelve).unwrap());
        let expected =
            "down repeat 99ms\ndown bandwidth from 0ms: 12Mbit\ndown bandwidth from 98ms: 24Mbit\n";
        assert_eq!(twelve, expected, "the one at 0 ms is the next round's");
        let gap = lines(&made("1\n1\n1\n101\n").unwrap());
        let expected = "down repeat 101ms\ndown bandwidth from 0ms: 36Mbit\ndown bandwidth from 1ms: 120kbit\n";
        assert_eq!(gap, expected);
    }

    #[test]
    fn what_is_no_trace_is_refused_by_line() {
        assert!(made("").unwrap_err().contains("no time after 0"));
        assert!(made("0\n0\n").unwrap_err().contains("no time after 0"));
        assert!(
            made("3\n2\n")
                .unwrap_err()
                .starts_with("line 2: 2 is earlier")
        );
        assert!(made("3\n\n").unwrap_err().contains("\"\" is not a time"));
        assert!(made("soon").unwrap_err().contains("whole milliseconds"));
        let far = made("99999999999999999\n").unwrap_err();
        assert!(far.contains("out of reach"), "{far}");
    }
}
