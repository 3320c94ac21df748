//! The tarball: a prefix with binary, manual pages and completion scripts, for `/usr/local` or another location.

use std::process::Command;

use super::built::BuildVariant;
use super::root::{OLD, Root};
use super::{Made, Packages, VERSION};
use crate::error::{Outcome, TaskError};
use crate::tools::copy;

/// Makes it, unpacks it in `/usr/local` of an older distribution, and uses it.
pub(super) fn make(packages: &Packages) -> Outcome<Made> {
    let built = packages.built(BuildVariant::Complete)?;
    let name = format!("posthaste-{VERSION}-x86_64-linux");
    let folder = packages.empty("tarball")?.join(&name);
    let programs = folder.join("bin");
    std::fs::create_dir_all(&programs).map_err(|error| TaskError::at(&programs, error))?;
    copy(&built.binary, &programs.join("posthaste"))?;
    let mut share = Command::new("cp");
    share
        .arg("--recursive")
        .arg(built.prefix.join("share"))
        .arg(&folder);
    packages.run("cp", &mut share, 20)?;
    for file in ["LICENSE", "README.md", "CHANGELOG.md"] {
        copy(&packages.checkout.path(file), &folder.join(file))?;
    }
    let file = packages.folder.join(format!("{name}.tar.gz"));
    let mut pack = Command::new("tar");
    pack.args([
        "--create",
        "--gzip",
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
    ])
    .arg("--directory")
    .arg(packages.folder.join("tarball"))
    .arg("--file")
    .arg(&file)
    .arg(&name);
    packages.run("tar", &mut pack, 120)?;

    let root = Root::fresh(packages, &OLD)?;
    let inside = root.take(&file)?;
    let unpack = format!(
        "chroot \"$ROOT\" tar -xf {inside} -C /usr/local --strip-components=1 --no-same-owner
         cd \"$ROOT/usr/local\"
         test -f share/man/man1/posthaste-load.1.gz && test -f share/bash-completion/completions/posthaste"
    );
    root.script("", &unpack)?;
    root.using(&file, "`tar` into /usr/local", "/usr/local/bin/posthaste")
}
