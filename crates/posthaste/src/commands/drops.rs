//! Effects on single packets, for every command that offers them: `--pattern FILE`, and `--drop` as a short form of a
//! direction and positions, `down:8`.
//!
//! The pattern format defines the positions.

use std::fmt::Display;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use posthaste_link::pattern::{Draft, Pattern};

use super::Failure;

/// Effects on single packets.
#[derive(clap::Args)]
#[command(next_help_heading = "What happens to which packet")]
pub(super) struct DropArgs {
    /// Drop packets: numbers of each connection (down:8, up:3-5,9), or times of the link
    /// (down:1s-1200ms); repeatable
    #[arg(long, value_name = "DIRECTION:PLACES")]
    drop: Vec<String>,
    /// Follow a pattern (docs/reference/patterns.md, `posthaste pattern make`)
    #[arg(long, value_name = "FILE")]
    pattern: Option<PathBuf>,
    /// A pattern from elsewhere, instead of a file.
    #[arg(skip)]
    received: Pattern,
}

impl DropArgs {
    /// True if a file has the pattern.
    #[cfg(feature = "agents")]
    pub(super) const fn has_file(&self) -> bool {
        self.pattern.is_some()
    }

    /// Follows a pattern from elsewhere.
    #[cfg(feature = "agents")]
    pub(super) fn follow(&mut self, pattern: Pattern) {
        self.received = pattern;
    }

    /// The pattern in the file of --pattern alone.
    fn filed(&self) -> Result<Pattern, Failure> {
        let Some(path) = &self.pattern else {
            return Ok(self.received.clone());
        };
        let named =
            |error: &dyn Display| Failure::usage(format!("--pattern {}: {error}", path.display()));
        let file = File::open(path).map_err(|error| named(&error))?;
        Pattern::read(BufReader::new(file)).map_err(|error| named(&error))
    }

    /// The text of the pattern in the file of --pattern.
    #[cfg(feature = "agents")]
    pub(super) fn filed_text(&self) -> Result<Option<String>, Failure> {
        let filed = self.has_file().then(|| self.filed()).transpose()?;
        Ok(filed.map(|pattern| pattern.to_string()))
    }

    /// Returns the pattern of --pattern and --drop together.
    #[cfg(feature = "net")]
    pub(super) fn pattern(&self) -> Result<Pattern, Failure> {
        self.pattern_with(&[])
    }

    /// The typed options, for a note below a picture: the drops, and the file of the pattern.
    pub(super) fn options(&self) -> Vec<String> {
        let drops = self.drop.iter().map(|drop| format!("drop {drop}"));
        let pattern = self.pattern.iter();
        let pattern = pattern.map(|path| format!("pattern {}", path.display()));
        drops.chain(pattern).collect()
    }

    /// Returns the pattern of --pattern and --drop together, with `more` in the form of --drop.
    pub(super) fn pattern_with(&self, more: &[String]) -> Result<Pattern, Failure> {
        let mut draft = Draft::default();
        for entry in self.filed()?.entries() {
            draft.add(entry).map_err(Failure::usage)?;
        }
        add(&self.drop, &mut draft)?;
        add(more, &mut draft)?;
        Ok(draft.finish())
    }
}

/// Adds the given drops to the draft, which refuses contradictions.
pub(super) fn add(given: &[String], draft: &mut Draft) -> Result<(), Failure> {
    for given in given {
        let refused = |why: &str| Failure::usage(format!("--drop {given}: {why}"));
        let (direction, places) = given
            .split_once(':')
            .ok_or_else(|| refused("write a direction first: down:8"))?;
        draft
            .add_line(&format!("{direction} drop {places}"))
            .map_err(|error| refused(&format!("{}: {}", error.violation, error.remedy)))?;
    }
    Ok(())
}
