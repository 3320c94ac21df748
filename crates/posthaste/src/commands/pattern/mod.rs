//! `posthaste pattern`: effects on single packets, made and shown.

#[cfg(feature = "net")]
mod captures;
mod make;
mod picture;
mod show;

use clap::Subcommand;

use super::Failure;

/// Make and show patterns: which packet is dropped, delayed, damaged, exactly
///
/// A pattern is a text (docs/reference/patterns.md) that `posthaste net --pattern` follows packet by packet.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    posthaste pattern make --drop down:8 --out eighth.pattern\n  \
    posthaste pattern show eighth.pattern")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Make(Box<make::Args>),
    Show(show::Args),
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Make(args) => args.run(),
            Command::Show(args) => args.run(),
        }
    }
}
