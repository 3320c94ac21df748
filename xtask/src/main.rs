//! Development tasks of the project: all tests with their peers, benchmarks, generated docs, fuzzing.
//!
//! Started as `cargo xtask`. Tests and measurements use `posthaste` as a program. Nothing here links against a crate
//! that measures, so that a task sees the same as a user.

mod bench;
mod busy;
mod checkout;
mod docs;
mod error;
mod fuzz;
mod load;
mod nginx;
mod package;
mod peers;
mod pgo;
mod postgres;
mod predictions;
mod process;
mod site;
mod test;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use checkout::{Build, Checkout};
use error::Outcome;
use site::Site;

#[derive(Parser)]
#[command(name = "cargo xtask", about)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run every test: the workspace's own, then those against real peers, which it installs
    Test {
        /// Only the peer test of this name, without the workspace's own
        #[arg(long, value_name = "NAME")]
        only: Option<String>,
        /// Only the workspace's tests that wait on no clock: under three minutes on two cores once built
        #[arg(long, conflicts_with = "only")]
        fast: bool,
        /// List the peer tests
        #[arg(long)]
        list: bool,
    },
    /// Run tests beside processes that keep the machine busy: those that wait on a clock, or any
    Busy {
        /// Only tests whose names contain this, whether or not they wait on a clock
        filter: Option<String>,
        /// Only tests of this package
        #[arg(long, value_name = "NAME")]
        package: Option<String>,
        /// How often each test runs
        #[arg(long, value_name = "N", default_value_t = 20)]
        times: u32,
        /// How many processes are busy
        #[arg(long, value_name = "N", default_value_t = 4)]
        processes: u32,
        /// List the tests that wait on a clock: package, binary, modules
        #[arg(long)]
        list: bool,
    },
    /// Measure against peers, side by side in one run, and print tables
    Bench {
        /// Only this benchmark
        name: Option<String>,
        /// List the benchmarks
        #[arg(long)]
        list: bool,
        /// Fewer and shorter runs: to see that it works, not to quote
        #[arg(long)]
        quick: bool,
        /// Measure the build of `cargo xtask pgo`
        #[arg(long)]
        pgo: bool,
        /// Keep each run as JSON in benches/results; not with --quick
        #[arg(long)]
        write: bool,
    },
    /// Build the release by what it did in the study (profile-guided optimisation); needs rustup's llvm-tools
    Pgo,
    /// Make every package from one build and use each on a clean root; needs root
    Package {
        /// Only this package
        name: Option<String>,
        /// List the packages
        #[arg(long)]
        list: bool,
    },
    /// Write the generated docs: benchmarks, command line, gateway.toml and figures
    Docs {
        /// Write nothing; fail when something is out of date
        #[arg(long)]
        check: bool,
    },
    /// Write docs/papers/predictions.md: what the simulator says of the packet-loss study
    Predictions,
    /// Run every fuzz target in fuzz/ for a while; needs nightly and cargo-fuzz
    Fuzz {
        /// How long each target runs
        #[arg(long, value_name = "N", default_value_t = 60)]
        seconds: u64,
    },
    /// The part of a test that runs in a network namespace of its own
    #[command(hide = true)]
    Inside {
        /// The binary under test
        binary: PathBuf,
        #[command(subcommand)]
        chore: Inside,
    },
}

#[derive(Subcommand)]
enum Inside {
    /// Overload the slow server, compare with the kernel's counters
    Overload {
        #[arg(long)]
        rate: String,
        #[arg(long)]
        duration: String,
        /// Tell instead of check
        #[arg(long)]
        json: bool,
    },
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
    match chore {
        Chore::Test { list: true, .. } => test::list(),
        Chore::Test { fast: true, .. } => return test::run_fast(&checkout),
        Chore::Test { only, .. } => return test::run(checkout, only.as_deref()),
        Chore::Busy { list: true, .. } => busy::list(),
        Chore::Busy {
            filter,
            package,
            times,
            processes,
            ..
        } => {
            let wanted = busy::Wanted {
                filter,
                package,
                times,
                processes,
            };
            return busy::run(&checkout, &wanted);
        }
        Chore::Bench { list: true, .. } => bench::list(),
        Chore::Bench {
            name,
            quick,
            pgo,
            write,
            ..
        } => {
            let build = if pgo { Build::Profiled } else { Build::Dist };
            let choice = bench::BenchChoice {
                build,
                name,
                quick,
                write,
            };
            return bench::run(checkout, &choice);
        }
        Chore::Pgo => pgo::run(&checkout)?,
        Chore::Package { list: true, .. } => package::list(),
        Chore::Package { name, .. } => return package::run(checkout, name.as_deref()),
        Chore::Docs { check } => docs::run(&checkout, check)?,
        Chore::Predictions => predictions::run(&checkout)?,
        Chore::Fuzz { seconds } => fuzz::run(&checkout, seconds)?,
        Chore::Inside {
            binary,
            chore:
                Inside::Overload {
                    rate,
                    duration,
                    json,
                },
        } => {
            let site = Site::inside(checkout, binary)?;
            match json {
                true => peers::namespace::overload_told(&site, &rate, &duration)?,
                false => peers::namespace::overload_counted(&site, &rate, &duration)?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
