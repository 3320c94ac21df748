//! Tests of `posthaste` against foreign software, and benchmarks next to it.
//!
//! `cargo xtask` starts this program for `test`, `busy`, `bench`, `pgo` and `predictions`. Tests and measurements use
//! `posthaste` as a program. Nothing here links against a crate that measures, so that a test sees the same as a user.

mod bench;
mod builds;
mod busy;
mod cores;
mod load;
mod nginx;
mod peers;
mod pgo;
mod postgres;
mod predictions;
mod profile_guided;
mod site;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use posthaste_harness::{checkout, error, process};

use builds::Build;
use checkout::Checkout;
use error::Outcome;
use site::Site;

/// Tests against peers and benchmarks
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run the peer tests, whose programs it installs: `cargo xtask test`
    Peers {
        /// Only the peer test of this name
        #[arg(long, value_name = "NAME")]
        only: Option<String>,
        /// Use the build of the workspace's tests, and omit the last lines, which the caller prints
        #[arg(long)]
        tested: bool,
    },
    /// Measure posthaste and its peers in the same run, and print tables
    Bench {
        /// Only this benchmark
        name: Option<String>,
        /// List the benchmarks
        #[arg(long)]
        list: bool,
        /// Write docs/benchmarks.md from the kept runs, without a measurement
        #[arg(long, conflicts_with = "name")]
        page: bool,
        /// Fewer and shorter runs: a test of the benchmark, no results to quote
        #[arg(long)]
        quick: bool,
        /// Measure the build of `cargo xtask pgo`
        #[arg(long)]
        pgo: bool,
        /// Keep each run as JSON in conformance/results, and write docs/benchmarks.md; not with --quick
        #[arg(long)]
        write: bool,
    },
    /// Run tests next to busy processes: by default those that wait on a clock
    Busy {
        /// Only tests whose names contain this, also those that wait on no clock
        filter: Option<String>,
        /// Only tests of this package
        #[arg(long, value_name = "NAME")]
        package: Option<String>,
        /// Number of runs of each test
        #[arg(long, value_name = "N", default_value_t = 20)]
        times: u32,
        /// Number of busy processes
        #[arg(long, value_name = "N", default_value_t = 4)]
        processes: u32,
        /// List the tests that wait on a clock: package, binary, modules
        #[arg(long)]
        list: bool,
    },
    /// Build the release with profile-guided optimisation, from a profile of the study; needs rustup's llvm-tools
    Pgo,
    /// Write docs/papers/predictions.md: the simulator's predictions for the packet-loss study
    Predictions,
    /// The part of a test inside its own network namespace
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
    /// Overload the slow server and compare the outcomes with the kernel's counters
    Overload {
        #[arg(long)]
        rate: String,
        #[arg(long)]
        duration: String,
        /// Print the counts instead of checking them
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
        Chore::Peers { only, tested } => return peers::run(checkout, only.as_deref(), tested),
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
        Chore::Bench { page: true, .. } => bench::write_page(&checkout)?,
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
        Chore::Predictions => predictions::run(&checkout)?,
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
            if json {
                peers::namespace::overload_told(&site, &rate, &duration)?;
            } else {
                peers::namespace::overload_counted(&site, &rate, &duration)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
