//! `cargo xtask pgo`: the release again, optimised by what it did in the study.
//!
//! Profile-guided optimisation takes three steps: a build that counts which way each branch goes, a run of
//! it, and a build that lays out its code by those counts. The run is figures of the study, which has load,
//! lines, gateways and brokers at work in one process; one more is a line more in [`FIGURES`].

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::checkout::{Build, Checkout};
use crate::process::{self, Running};
use crate::trouble::{Outcome, Trouble, check};

/// What is run to be counted: load on a service, emulated and simulated lines, codings, gateways, brokers.
const FIGURES: [&str; 7] = [
    "overload/fig-08",
    "packet-loss/fig-06",
    "packet-loss/remedies",
    "wsqos/codecs-2026",
    "wsqos/promises-2026",
    "wsqos/fig-57",
    "wsqos/fig-62",
];

/// Longest time for all of them; they take four minutes on two cores.
const TRAINING: Duration = Duration::from_secs(1200);
/// Longest time for what takes a moment.
const MOMENT: Duration = Duration::from_secs(60);

/// Counts anew and builds by it.
pub(crate) fn run(checkout: &Checkout) -> Outcome<()> {
    // Looked for first, since all else takes minutes.
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
    // 1 says that a figure came out too late or too noisy to be quoted: it ran all the same.
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

/// Has `cargo` build the release so that it counts; returns the folder of what is built.
pub(crate) fn counting(checkout: &Checkout, cargo: &mut Command) -> Outcome<PathBuf> {
    let counts = checkout.folder("pgo/counts")?;
    let flag = format!("-Cprofile-generate={}", counts.display());
    release(checkout, cargo, &flag, "pgo/counting")
}

/// Has `cargo` build the release by what was counted; returns the folder of what is built.
pub(crate) fn profiled(checkout: &Checkout, cargo: &mut Command) -> Outcome<PathBuf> {
    let profile = profile(checkout)?;
    check(profile.is_file(), || {
        "nothing was counted yet: run `cargo xtask pgo` first, a quarter of an hour".to_owned()
    })?;
    let flag = format!("-Cprofile-use={}", profile.display());
    release(checkout, cargo, &flag, "pgo/profiled")
}

/// With the target named, flags do not go to build scripts and macros.
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

/// Where rustc keeps what belongs to this machine: `lib/rustlib/HOST` of the toolchain.
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
