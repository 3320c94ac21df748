//! Patterns: what happens to which packet, decided before the run.
//!
//! A pattern is a text that people write (`docs/reference/patterns.md`), generators make and a link follows
//! exactly: by position (the eighth packet) or by time (the millisecond in which a packet
//! arrives), after the pattern files of KauNet (Garcia, Hurtig, Brunstrom, "KauNet: Design and
//! Usage", Karlstad University Studies 2008:59). Of its six kinds, triggers are absent: they tell
//! other programs what happens, and a trace does that here.
//!
//! [`Pattern::parse`] reads the text and names line, column and remedy of what is wrong;
//! `Display` writes it in one canonical form that reads back as the same pattern. [`Draft`] takes
//! entries one by one, from the reader and from generators alike, so that both obey the same
//! rules. [`Script`] is one direction, ready to be followed by a [`Cursor`].

mod bits;
mod draft;
mod drawn;
pub mod infer;
mod mahimahi;
mod number;
mod read;
mod scan;
mod script;
mod track;
mod write;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use bits::Bits;
pub use draft::{Axis, Draft, Effect, Entry, Place, Refusal};
pub use drawn::{Chances, DrawError};
pub use mahimahi::{MahimahiError, mahimahi};
pub use read::{PatternError, ReadError};
pub(crate) use script::InForce;
pub use script::{Cursor, Script, Step};

use crate::Direction;

/// Most entries in a pattern: each range of packets, milliseconds or bits is one.
pub const ENTRIES: usize = 1_000_000;

/// The last packet and the last millisecond that can be named: 317 years of either.
pub const FARTHEST: u64 = 10_000_000_000_000;

/// Longest line of a pattern's text, in bytes.
pub const LINE: usize = 64 << 10;

/// What happens in both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    up: Arc<Script>,
    down: Arc<Script>,
}

impl Pattern {
    /// What happens in one direction, ready to be followed.
    pub fn script(&self, direction: Direction) -> &Arc<Script> {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// Every entry in canonical order.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        Direction::BOTH.into_iter().flat_map(|direction| {
            let entries = self.script(direction).entries();
            entries.map(move |(place, effect)| Entry {
                direction,
                place,
                effect,
            })
        })
    }
}
