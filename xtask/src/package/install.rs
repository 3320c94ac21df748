//! `cargo install` from a checkout, as in README.md, with the plain release profile.

use std::time::Duration;

use super::root::Root;
use super::{Made, Packages};
use crate::checkout::cargo;
use crate::error::Outcome;
use crate::process;

/// Time limit of the build.
const BUILD: Duration = Duration::from_secs(3600);

/// Installs into a folder of its own and uses it on this machine, because it is built for the machine's glibc.
pub(super) fn make(packages: &Packages) -> Outcome<Made> {
    let folder = packages.empty("install")?;
    let mut install = cargo(&packages.checkout);
    install
        .args(["install", "--locked", "--path", "crates/posthaste"])
        // By default its list of installed programs is in the user's own folder.
        .arg("--root")
        .arg(&folder);
    process::pass_through("cargo install", &mut install, BUILD, |_| ())?;
    let program = folder.join("bin/posthaste");
    let root = Root::own(packages)?;
    root.using(
        &program,
        "`cargo install --locked`",
        &program.display().to_string(),
    )
}
