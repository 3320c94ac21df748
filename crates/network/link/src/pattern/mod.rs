//! Patterns: effects on single packets, decided before the run.
//!
//! A pattern is a text that people write (`docs/reference/patterns.md`), generators create and a link follows exactly:
//! by position (the eighth packet) or by time (the millisecond in which a packet arrives), after the pattern files of
//! KauNet (Garcia, Hurtig, Brunstrom, "KauNet: Design and Usage", Karlstad University Studies 2008:59). Of KauNet's six
//! kinds, triggers are absent. They notify other programs of events; here, a trace does that.
//!
//! [`Pattern::parse`] reads the text, and reports errors with line, column and remedy. `Display` writes it in one
//! canonical form that reads back as the same pattern. [`Draft`] takes single entries, from the parser and from
//! generators, so that both obey the same rules. [`Script`] is one direction, to be followed by a [`Cursor`].

mod bits;
mod coverage;
mod draft;
mod drawn;
pub mod infer;
mod mahimahi;
mod make;
mod number;
mod read;
mod scan;
mod script;
mod strips;
mod timeline;
mod track;
mod write;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use bits::Bits;
pub use coverage::{Coverage, EffectKind, Extent, coverage_table};
pub use draft::{Axis, Draft, Effect, PatternEntry, PatternRange, PatternRefusal};
pub use drawn::{Chances, DrawError};
pub use mahimahi::{MahimahiError, mahimahi};
pub use make::{DrawOptions, PacketDrawError};
pub use number::LossShare;
pub use read::{PatternError, ReadError};
pub(crate) use script::InForce;
pub use script::{Cursor, PacketEffects, Script};
pub use strips::strips;
pub use timeline::{TimelineError, timeline};

use crate::Direction;

/// Maximum number of entries in a pattern: each range of packets, milliseconds or bits is one.
pub const ENTRIES: usize = 1_000_000;

/// Largest position and millisecond; as milliseconds, 317 years.
pub const FARTHEST: u64 = 10_000_000_000_000;

/// Longest line of a pattern's text, in bytes.
pub const LINE: usize = 64 << 10;

/// A pattern for both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    up: Arc<Script>,
    down: Arc<Script>,
}

impl Pattern {
    /// The script of one direction.
    pub fn script(&self, direction: Direction) -> &Arc<Script> {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// All entries in canonical order.
    pub fn entries(&self) -> impl Iterator<Item = PatternEntry> + '_ {
        Direction::BOTH.into_iter().flat_map(|direction| {
            let entries = self.script(direction).entries();
            entries.map(move |(range, effect)| PatternEntry {
                direction,
                range,
                effect,
            })
        })
    }
}
