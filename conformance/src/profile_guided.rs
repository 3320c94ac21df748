//! Builds of the release that count, and that use the counts.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::checkout::Checkout;
use crate::error::{Outcome, TaskError, check};
use crate::process;

/// Time limit for asking the compiler.
pub(crate) const MOMENT: Duration = Duration::from_secs(60);

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

pub(crate) fn profile(checkout: &Checkout) -> Outcome<PathBuf> {
    Ok(checkout.folder("pgo")?.join("study.profdata"))
}

/// rustc's folder for this machine: `lib/rustlib/HOST` of the toolchain.
pub(crate) struct Toolchain(PathBuf);

impl Toolchain {
    pub(crate) fn ask(checkout: &Checkout) -> Outcome<Self> {
        let mut rustc = Command::new("rustc");
        rustc
            .args(["--print", "target-libdir"])
            .current_dir(checkout.root());
        let logs = checkout.folder("pgo/logs")?;
        let output = process::run("rustc", &mut rustc, MOMENT, &logs)?.stdout;
        let mut folder = PathBuf::from(output.trim());
        folder.pop();
        Ok(Self(folder))
    }

    fn host(&self) -> Outcome<String> {
        let name = self.0.file_name().and_then(|name| name.to_str());
        name.map(str::to_owned)
            .ok_or_else(|| TaskError::at(&self.0, "is no folder of rustc's"))
    }

    /// The program that merges counts, of the same LLVM as the compiler.
    pub(crate) fn profdata(&self) -> Outcome<PathBuf> {
        let program = self.0.join("bin/llvm-profdata");
        if program.is_file() {
            return Ok(program);
        }
        let remedy = "no llvm-profdata next to rustc: `rustup component add llvm-tools`";
        Err(TaskError::Missing(remedy.to_owned()))
    }
}
