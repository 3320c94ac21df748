//! The `posthaste` command: parse, dispatch, exit code.
//!
//! Data goes to standard output; messages and progress to standard error. Exit codes: 0 success, 1 a check or threshold
//! failed, 2 usage, 3 the run failed.

#[macro_use]
mod note;

mod commands;
mod features;
mod habits;

use std::process::ExitCode;

use clap::Parser as _;
use posthaste_allocator as _;

fn main() -> ExitCode {
    let cli = match commands::Cli::try_parse() {
        Ok(cli) => cli,
        Err(mut error) => {
            if let Some(text) = features::absent(&error) {
                note!("posthaste: {text}");
                return commands::Failure::USAGE_CODE.into();
            }
            let arguments: Vec<String> = std::env::args_os()
                .skip(1)
                .map(|argument| argument.to_string_lossy().into_owned())
                .collect();
            let command = arguments.first().map_or("", String::as_str);
            habits::advise(&mut error, command, &arguments);
            // Help and version are no errors. clap chooses the stream for each.
            let _ = error.print();
            return match error.exit_code() {
                0 => ExitCode::SUCCESS,
                _ => commands::Failure::USAGE_CODE.into(),
            };
        }
    };
    match cli.run() {
        Ok(code) => code,
        Err(failure) => {
            note!("posthaste: {failure}");
            failure.code().into()
        }
    }
}
