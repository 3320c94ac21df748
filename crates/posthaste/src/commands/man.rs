//! `posthaste man`: manual pages, generated from the description of the command line. Hidden, because packages contain
//! the pages.

use std::path::PathBuf;

use clap::CommandFactory as _;

use super::{Cli, Failure};

/// Write a manual page for posthaste and one for each of its commands.
#[derive(clap::Args)]
#[command(
    hide = true,
    after_help = "\
Example:
  posthaste man man1
  man -l man1/posthaste-load.1"
)]
pub(crate) struct Args {
    /// The folder; made when absent
    folder: PathBuf,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let failed = |error| Failure::run(format!("{}: {error}", self.folder.display()));
        std::fs::create_dir_all(&self.folder).map_err(failed)?;
        clap_mangen::generate_to(Cli::command(), &self.folder).map_err(failed)
    }
}
