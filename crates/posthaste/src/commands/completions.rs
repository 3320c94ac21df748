//! `posthaste completions`: completion scripts for shells, generated from the description of the command line.

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Cli, Failure, print};

/// Print a completion script for a shell.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  For this user, from the next bash on:
    posthaste completions bash > ~/.local/share/bash-completion/completions/posthaste
  For this zsh only:
    source <(posthaste completions zsh)
  For fish:
    posthaste completions fish > ~/.config/fish/completions/posthaste.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "posthaste", &mut script);
        print(&String::from_utf8_lossy(&script))
    }
}
