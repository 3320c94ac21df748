//! Tasks of a contributor: tests, generated docs, packages, fuzzing.
//!
//! Started as `cargo xtask`. Tests against peers and benchmarks are in a program of their own, `conformance/`, which some
//! commands start. Nothing here links against a crate of the product, so that a task sees the same as a user.

mod conformance;
mod docs;
mod fuzz;
mod package;
mod test;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use posthaste_harness::{checkout, error, process, tools};

use checkout::Checkout;
use error::Outcome;

/// Tasks of a contributor
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run every test: those of the workspace, then the peer tests, whose programs it installs
    Test {
        /// Only the peer test of this name, without the workspace's own
        #[arg(long, value_name = "NAME")]
        only: Option<String>,
        /// Only the tests of the workspace that wait on no clock: under three minutes on two cores after the build
        #[arg(long, conflicts_with = "only")]
        fast: bool,
        /// List the peer tests
        #[arg(long)]
        list: bool,
    },
    /// Run tests next to busy processes: by default those that wait on a clock
    #[command(disable_help_flag = true)]
    Busy(Forwarded),
    /// Measure posthaste and its peers in the same run, and print tables
    #[command(disable_help_flag = true)]
    Bench(Forwarded),
    /// Build the release with profile-guided optimisation, from a profile of the study; needs rustup's llvm-tools
    #[command(disable_help_flag = true)]
    Pgo(Forwarded),
    /// Write docs/papers/predictions.md: the simulator's predictions for the packet-loss study
    #[command(disable_help_flag = true)]
    Predictions(Forwarded),
    /// Make every package from one build and test each in a clean root file system; needs root
    Package {
        /// Only this package
        name: Option<String>,
        /// List the packages
        #[arg(long)]
        list: bool,
    },
    /// Write the generated docs: command line, gateway.toml and figures
    Docs {
        /// Write nothing; fail if a page is out of date
        #[arg(long)]
        check: bool,
    },
    /// Run every fuzz target in fuzz/ for a while; needs nightly and cargo-fuzz
    Fuzz {
        /// Only this target
        name: Option<String>,
        /// Seconds for each target
        #[arg(long, value_name = "N", default_value_t = 60)]
        seconds: u64,
        /// Add the new inputs that increase the coverage to fuzz/corpus
        #[arg(long)]
        keep: bool,
    },
}

/// Arguments for the program of `conformance/`, which also has the help.
#[derive(Args)]
struct Forwarded {
    /// See --help, which builds the program of conformance/ first
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

fn main() -> ExitCode {
    let done = process::end_children_with_us().and_then(|()| start(Arguments::parse().chore));
    done.unwrap_or_else(|error| {
        eprintln!("cargo xtask: {error}");
        ExitCode::FAILURE
    })
}

fn start(chore: Chore) -> Outcome<ExitCode> {
    let checkout = Checkout::find()?;
    let forward = |command: &str, arguments: &[String]| {
        let arguments = arguments.iter().map(String::as_str);
        Err(conformance::exec(
            &checkout,
            std::iter::once(command).chain(arguments),
        ))
    };
    match chore {
        Chore::Test { list: true, .. } => test::list(&checkout)?,
        Chore::Test { fast: true, .. } => return test::run_fast(&checkout),
        Chore::Test {
            only: Some(name), ..
        } => return forward("peers", &["--only".to_owned(), name]),
        Chore::Test { .. } => return test::run(&checkout),
        Chore::Busy(forwarded) => return forward("busy", &forwarded.arguments),
        Chore::Bench(forwarded) => return forward("bench", &forwarded.arguments),
        Chore::Pgo(forwarded) => return forward("pgo", &forwarded.arguments),
        Chore::Predictions(forwarded) => return forward("predictions", &forwarded.arguments),
        Chore::Package { list: true, .. } => package::list(),
        Chore::Package { name, .. } => return package::run(checkout, name.as_deref()),
        Chore::Docs { check } => docs::run(&checkout, check)?,
        Chore::Fuzz {
            name,
            seconds,
            keep,
        } => fuzz::run(&checkout, name.as_deref(), seconds, keep)?,
    }
    Ok(ExitCode::SUCCESS)
}
