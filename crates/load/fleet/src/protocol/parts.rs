//! Cuts a long body into numbered messages, and joins them in any order within bounds.
//!
//! Each message has a sequence number of its own. Parts of a body have consecutive numbers, so the number of part `i`
//! less `i` identifies the body.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use thiserror::Error;

use crate::protocol::envelope::MAX_DECODED;

/// Maximum number of parts of a body.
pub const MAX_PARTS: u32 = 1024;

/// Maximum number of bytes that wait for the rest of their bodies.
const MAX_WAITING: usize = 2 * MAX_DECODED;

/// Maximum number of bodies that wait for parts.
const MAX_INCOMPLETE: usize = 64;

/// Position of a part, written as `index/count` with indices from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartNumber {
    index: u32,
    count: u32,
}

/// A part that does not fit.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PartError {
    /// Not `index/count` in its only form.
    #[error(
        "{0:?} is not a part: write index/count, with an index below the count of at most {MAX_PARTS}"
    )]
    Number(String),
    /// Longer than a body may be.
    #[error("the message needs more than {MAX_PARTS} parts")]
    TooMany,
    /// A part number above its sequence number.
    #[error("part {1} cannot have the sequence number {0}")]
    Sequence(u64, PartNumber),
    /// Parts of different bodies claim the same numbers.
    #[error("the messages before and after {0} belong to different bodies")]
    Overlap(u64),
    /// Too much waits for missing parts.
    #[error("too many incomplete messages")]
    Full,
}

/// Parts of bodies that are not complete.
#[derive(Debug, Default)]
pub struct PartJoiner {
    /// By the sequence number of part 0.
    incomplete: BTreeMap<u64, IncompleteBody>,
    waiting_bytes: usize,
}

#[derive(Debug)]
struct IncompleteBody {
    count: u32,
    parts: BTreeMap<u32, Bytes>,
}

impl PartNumber {
    /// The only part of a body.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Part `index` of `count`. `None` if there is no such part.
    pub fn new(index: u32, count: u32) -> Option<Self> {
        let exists = index < count && count <= MAX_PARTS;
        exists.then_some(Self { index, count })
    }

    /// Number of parts.
    pub fn count(self) -> u32 {
        self.count
    }

    /// Sequence number of the first part, for a part with this number.
    pub fn first_seq(self, seq: u64) -> Result<u64, PartError> {
        let first = seq.checked_sub(self.index.into());
        first.ok_or(PartError::Sequence(seq, self))
    }
}

/// Cuts a body into parts of at most `most` bytes, at least one.
pub fn cut(body: Bytes, most: usize) -> Result<Vec<(PartNumber, Bytes)>, PartError> {
    assert!(most > 0, "a part has bytes");
    let count = body.len().div_ceil(most).max(1);
    let count = u32::try_from(count).map_err(|_| PartError::TooMany)?;
    if count > MAX_PARTS {
        return Err(PartError::TooMany);
    }
    let part = |index: u32| {
        let start = index as usize * most;
        let end = body.len().min(start + most);
        (PartNumber { index, count }, body.slice(start..end))
    };
    let parts: Vec<_> = (0..count).map(part).collect();
    debug_assert_eq!(
        parts.iter().map(|(_, part)| part.len()).sum::<usize>(),
        body.len(),
        "the parts hold each byte once"
    );
    Ok(parts)
}

impl PartJoiner {
    /// Adds a part that was not added before. Returns the number of the first part and the body if it is complete.
    pub fn add(
        &mut self,
        seq: u64,
        part: PartNumber,
        bytes: Bytes,
    ) -> Result<Option<(u64, Bytes)>, PartError> {
        let first = part.first_seq(seq)?;
        self.check_neighbours(first, part)?;
        if part.count == 1 {
            return Ok(Some((first, bytes)));
        }
        let is_new = !self.incomplete.contains_key(&first);
        if self.waiting_bytes + bytes.len() > MAX_WAITING
            || (is_new && self.incomplete.len() == MAX_INCOMPLETE)
        {
            return Err(PartError::Full);
        }
        let body = self
            .incomplete
            .entry(first)
            .or_insert_with(|| IncompleteBody {
                count: part.count,
                parts: BTreeMap::new(),
            });
        if body.parts.contains_key(&part.index) {
            return Err(PartError::Overlap(seq));
        }
        self.waiting_bytes += bytes.len();
        body.parts.insert(part.index, bytes);
        if body.parts.len() < body.count as usize {
            return Ok(None);
        }
        let body = self.incomplete.remove(&first).expect("it was found above");
        let joined: Vec<u8> = body.parts.into_values().flatten().collect();
        self.waiting_bytes -= joined.len();
        debug_assert!(
            !self.incomplete.is_empty() || self.waiting_bytes == 0,
            "bytes wait for incomplete bodies only"
        );
        Ok(Some((first, joined.into())))
    }

    /// Refuses a part whose numbers belong to another incomplete body.
    fn check_neighbours(&self, first: u64, part: PartNumber) -> Result<(), PartError> {
        let end = first.saturating_add(part.count.into());
        let before = self.incomplete.range(..end).next_back();
        let Some((other, body)) = before else {
            return Ok(());
        };
        let is_apart = other.saturating_add(body.count.into()) <= first;
        let is_same = *other == first && body.count == part.count;
        if is_apart || is_same {
            Ok(())
        } else {
            Err(PartError::Overlap(first))
        }
    }
}

impl fmt::Display for PartNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for PartNumber {
    type Err = PartError;

    fn from_str(text: &str) -> Result<Self, PartError> {
        let number = |text: &str| text.parse().ok();
        let read = text
            .split_once('/')
            .and_then(|(index, count)| Self::new(number(index)?, number(count)?));
        // Leading zeros and signs parse, and are no part of the form.
        let read = read.filter(|part| part.to_string() == text);
        read.ok_or_else(|| PartError::Number(text.chars().take(32).collect()))
    }
}
