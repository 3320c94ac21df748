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

/// What happens to which packet.
#[derive(clap::Args)]
#[command(next_help_heading = "What happens to which packet")]
pub(super) struct DropArgs {
    /// Drop packets of each connection, ranges or times: down:8, up:3-5,9 or down:1s-1200ms; repeatable
    #[arg(long, value_name = "DIRECTION:PLACES")]
    drop: Vec<String>,
    /// Follow a pattern (docs/reference/patterns.md, `posthaste pattern make`)
    #[arg(long, value_name = "FILE")]
    pattern: Option<PathBuf>,
}

impl DropArgs {
    /// Returns the pattern of --pattern and --drop together.
    pub(super) fn pattern(&self) -> Result<Pattern, Failure> {
        self.pattern_with(&[])
    }

    /// The typed options, for a note below a picture: the drops, and the file of the pattern.
    pub(super) fn words(&self) -> Vec<String> {
        let drops = self.drop.iter().map(|drop| format!("drop {drop}"));
        let pattern = self.pattern.iter();
        let pattern = pattern.map(|path| format!("pattern {}", path.display()));
        drops.chain(pattern).collect()
    }

    /// Returns the pattern of --pattern and --drop together, with `more` in the form of --drop.
    pub(super) fn pattern_with(&self, more: &[String]) -> Result<Pattern, Failure> {
        let mut draft = Draft::default();
        if let Some(path) = &self.pattern {
            let named = |error: &dyn Display| {
                Failure::usage(format!("--pattern {}: {error}", path.display()))
            };
            let file = File::open(path).map_err(|error| named(&error))?;
            let pattern = Pattern::read(BufReader::new(file)).map_err(|error| named(&error))?;
            for entry in pattern.entries() {
                draft.add(entry).map_err(|error| named(&error))?;
            }
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
            .map_err(|error| refused(&format!("{}: {}", error.what, error.remedy)))?;
    }
    Ok(())
}
