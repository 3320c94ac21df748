//! `cargo xtask pgo`: the release build, optimised with a profile of the study.
//!
//! Profile-guided optimisation takes three steps: a build that counts the direction of each branch, a run of it, and a
//! build that arranges its code by these counts. The run consists of figures of the study, in which load, links,
//! gateways and brokers run in one process. Each figure is a line in [`FIGURES`].

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::checkout::{Build, Checkout};
use crate::process::{self, Running};
use crate::trouble::{Outcome, Trouble, check};

/// Figures to count: load on a service, emulated and simulated links, codings, gateways, brokers.
const FIGURES: [&str; 7] = [
    "overload/fig-08",
    "packet-loss/fig-06",
    "packet-loss/remedies",
    "wsqos/codecs-2026",
    "wsqos/promises-2026",
    "wsqos/fig-57",
    "wsqos/fig-62",
];

/// Time limit for all of them. They take four minutes on two cores.
const TRAINING: Duration = Duration::from_secs(1200);
/// Time limit for short steps.
const MOMENT: Duration = Duration::from_secs(60);

/// Counts, and builds with the counts.
pub(crate) fn run(checkout: &Checkout) -> Outcome<()> {
    // Checked first, because everything else takes minutes.
    let profdata = Toolchain::ask(checkout)?.profdata()?;
    let counting = checkout.binary(Build::Counting)?;
    let counts = checkout.folder("pgo/counts")?;
    std::fs::remove_dir_all(&counts).map_err(|error| Trouble::at(&counts, error))?;
    let logs = checkout.folder("pgo/logs")?;
    println!(
        "running {} figures to count: {}",
        FIGURES.len(),
        FIGURES.join(", ")
    );
    let mut study = Command::new(counting);
    study
        .args(["reproduce", "--out"])
        .arg(checkout.folder("pgo/results")?)
        .args(FIGURES)
        .env("LLVM_PROFILE_FILE", counts.join("%p.profraw"));
    let done = Running::start("study", &mut study, &logs)?.finish(TRAINING)?;
    // Exit code 1 means that a figure was too late or too noisy to be quoted. It still ran.
    if done.code != Some(1) {
        done.succeeded("the study")?;
    }
    let mut merge = Command::new(profdata);
    merge
        .args(["merge", "--output"])
        .arg(profile(checkout)?)
        .arg(&counts);
    process::run("llvm-profdata", &mut merge, MOMENT, &logs)?;
    println!("{}", checkout.binary(Build::Profiled)?.display());
    Ok(())
}

/// Makes `cargo` build the release with counters. Returns the folder of the products.
pub(crate) fn counting(checkout: &Checkout, cargo: &mut Command) -> Outcome<PathBuf> {
    let counts = checkout.folder("pgo/counts")?;
    let flag = format!("-Cprofile-generate={}", counts.display());
    release(checkout, cargo, &flag, "pgo/counting")
}

/// Makes `cargo` build the release with the counts. Returns the folder of the products.
pub(crate) fn profiled(checkout: &Checkout, cargo: &mut Command) -> Outcome<PathBuf> {
    let profile = profile(checkout)?;
    check(profile.is_file(), || {
        "nothing was counted yet: run `cargo xtask pgo` first, a quarter of an hour".to_owned()
    })?;
    let flag = format!("-Cprofile-use={}", profile.display());
    release(checkout, cargo, &flag, "pgo/profiled")
}

/// With an explicit target, flags do not apply to build scripts and macros.
fn release(checkout: &Checkout, cargo: &mut Command, flag: &str, folder: &str) -> Outcome<PathBuf> {
    let host = Toolchain::ask(checkout)?.host()?;
    let folder = checkout.folder(folder)?;
    cargo
        .args(["--profile", "dist", "--target", &host, "--target-dir"])
        .arg(&folder)
        .env("CARGO_ENCODED_RUSTFLAGS", flag);
    Ok(folder.join(host).join("dist"))
}

fn profile(checkout: &Checkout) -> Outcome<PathBuf> {
    Ok(checkout.folder("pgo")?.join("study.profdata"))
}

/// rustc's folder for this machine: `lib/rustlib/HOST` of the toolchain.
struct Toolchain(PathBuf);

impl Toolchain {
    fn ask(checkout: &Checkout) -> Outcome<Self> {
        let mut rustc = Command::new("rustc");
        rustc
            .args(["--print", "target-libdir"])
            .current_dir(checkout.root());
        let logs = checkout.folder("pgo/logs")?;
        let said = process::run("rustc", &mut rustc, MOMENT, &logs)?.stdout;
        let mut folder = PathBuf::from(said.trim());
        folder.pop();
        Ok(Self(folder))
    }

    fn host(&self) -> Outcome<String> {
        let name = self.0.file_name().and_then(|name| name.to_str());
        name.map(str::to_owned)
            .ok_or_else(|| Trouble::at(&self.0, "is no folder of rustc's"))
    }

    /// The program that merges counts, of the same LLVM as the compiler.
    fn profdata(&self) -> Outcome<PathBuf> {
        let program = self.0.join("bin/llvm-profdata");
        if program.is_file() {
            return Ok(program);
        }
        let remedy = "no llvm-profdata beside rustc: `rustup component add llvm-tools`";
        Err(Trouble::Missing(remedy.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::FIGURES;

    #[test]
    fn what_is_run_is_in_the_study() {
        let study = include_str!("../../docs/papers/figures.md");
        for figure in FIGURES {
            assert!(study.contains(&format!("`{figure}`")), "{figure}");
        }
    }
}
