//! The `posthaste` command: parse, dispatch, exit code.
//!
//! Data goes to standard output; words and progress to standard error. Exit codes: 0 all
//! well, 1 a check or threshold failed, 2 usage, 3 the run failed.

mod commands;

use std::process::ExitCode;

use clap::Parser as _;

/// Services live long and see crowds come and go. The C library's allocator keeps what a crowd needed and
/// searches through it: a gateway that had served 1,000 connections stayed at 60 MB, where this one is
/// back at 15, and a request costs it some 5 % less.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match commands::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; clap knows where each belongs.
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
            eprintln!("posthaste: {failure}");
            failure.code().into()
        }
    }
}
