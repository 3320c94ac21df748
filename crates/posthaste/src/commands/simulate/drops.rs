//! Effects on single packets, and the typed ones among them.
//!
//! A typed position means a packet that must come. A pattern is made for runs of any length, and may continue after the
//! last packet of a connection.

use clap::{ArgMatches, Args, Command, FromArgMatches};
use posthaste_link::pattern::{Draft, Pattern};

use crate::commands::Failure;
use crate::commands::drops::{self, DropArgs};

/// --drop and --pattern, with the same help as in all commands.
pub(super) struct RequiredDrops {
    both: DropArgs,
    /// The values of --drop.
    typed: Vec<String>,
}

impl Args for RequiredDrops {
    fn augment_args(command: Command) -> Command {
        DropArgs::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        DropArgs::augment_args_for_update(command)
    }
}

impl FromArgMatches for RequiredDrops {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = matches.get_many::<String>("drop");
        Ok(Self {
            both: DropArgs::from_arg_matches(matches)?,
            typed: typed.into_iter().flatten().cloned().collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl RequiredDrops {
    /// The drops and the pattern, as given.
    #[cfg(feature = "agents")]
    pub(super) const fn given(&self) -> &DropArgs {
        &self.both
    }

    /// Follows a pattern from elsewhere.
    #[cfg(feature = "agents")]
    pub(super) fn follow(&mut self, pattern: Pattern) {
        self.both.follow(pattern);
    }

    /// The pattern of --pattern and --drop together, with `more` in the form of --drop.
    pub(super) fn pattern_with(&self, more: &[String]) -> Result<Pattern, Failure> {
        self.both.pattern_with(more)
    }

    /// The typed options, for a note below a picture.
    pub(super) fn options(&self) -> Vec<String> {
        self.both.options()
    }

    /// The pattern of --drop alone, with `more` in the form of --drop.
    pub(super) fn typed_with(&self, more: &[String]) -> Result<Pattern, Failure> {
        let mut draft = Draft::default();
        drops::add(&self.typed, &mut draft)?;
        drops::add(more, &mut draft)?;
        Ok(draft.finish())
    }
}
