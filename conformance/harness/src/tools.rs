//! Installation of tools for peer tests, with each ecosystem's ordinary client.
//!
//! Debian packages are installed in the system, which needs root. Everything else goes to `target/peers` and is made
//! again only if the file that lists it has changed. A missing tool is reported with the remedy, and its test is
//! skipped.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::checkout::{self, Checkout};
use crate::error::{Outcome, TaskError};
use crate::process;

/// Time limit for one download.
pub const DOWNLOAD: Duration = Duration::from_secs(400);
/// Time limit for compiling a program, while other programs use the CPU.
pub const BUILD: Duration = Duration::from_secs(1200);

/// Makes sure that `program` is on the path. `package` is the Debian package that contains it.
pub fn debian(checkout: &Checkout, program: &str, package: &str) -> Outcome<PathBuf> {
    if let Some(path) = find(program) {
        return Ok(path);
    }
    install(checkout, package)?;
    find(program).ok_or_else(|| {
        TaskError::Missing(format!(
            "the package {package} is installed but brings no {program}"
        ))
    })
}

/// Installs a Debian package, if permitted.
pub fn install(checkout: &Checkout, package: &str) -> Outcome<()> {
    let folder = checkout.root();
    apt(
        checkout,
        package,
        &["install", "--no-install-recommends", package],
        folder,
    )
}

/// Downloads a Debian package to `folder` without installing it.
pub fn download(checkout: &Checkout, package: &str, folder: &Path) -> Outcome<()> {
    apt(checkout, package, &["download", package], folder)
}

/// Runs apt-get for a package, after one update of its lists.
fn apt(checkout: &Checkout, package: &str, arguments: &[&str], folder: &Path) -> Outcome<()> {
    static UPDATED: OnceLock<()> = OnceLock::new();
    let by_hand = format!("do it by hand: apt-get {}", arguments.join(" "));
    if find("apt-get").is_none() {
        return Err(TaskError::Missing(format!(
            "no apt-get here to get {package} with; {by_hand}"
        )));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(TaskError::Missing(format!(
            "{package} is absent and apt-get needs root; {by_hand}"
        )));
    }
    let logs = checkout.peer_folder("logs")?;
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .args(["--quiet", "--yes"])
            .args(arguments)
            .current_dir(folder)
            .env("DEBIAN_FRONTEND", "noninteractive");
        process::run("apt-get", &mut command, DOWNLOAD, &logs)
    };
    if UPDATED.set(()).is_ok() {
        apt(&["update"]).map_err(|error| missing(package, &error))?;
    }
    eprintln!("  getting {package} with apt-get");
    apt(arguments)
        .map(drop)
        .map_err(|error| missing(package, &error))
}

/// A Python with the packages of `requirements`, a file in the checkout.
pub fn python(checkout: &Checkout, name: &str, requirements: &str) -> Outcome<PathBuf> {
    debian(checkout, "python3", "python3-venv")?;
    let folder = checkout.peer_folder(name)?;
    let logs = checkout.peer_folder("logs")?;
    let venv = folder.join("venv");
    made_from(&checkout.path(requirements), &venv, || {
        let mut make = Command::new("python3");
        make.args(["-m", "venv", "--clear"]).arg(&venv);
        if process::run("venv", &mut make, DOWNLOAD, &logs).is_err() {
            // Debian's python3 does not include venv.
            install(checkout, "python3-venv")?;
            process::run("venv", &mut make, DOWNLOAD, &logs)?;
        }
        let mut pip = Command::new(venv.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--requirement"])
            .arg(checkout.path(requirements));
        process::run("pip", &mut pip, DOWNLOAD, &logs)
            .map(drop)
            .map_err(|error| missing(requirements, &error))
    })?;
    Ok(venv.join("bin/python"))
}

/// The program of this crate of the registry, with this version and only these features.
///
/// Built without optimisation and debug information. This halves the time of a release build, for a program that runs
/// for seconds.
pub fn cargo(checkout: &Checkout, name: &str, version: &str, features: &str) -> Outcome<PathBuf> {
    let wanted = format!("{name} {version} {features}");
    cargo_install(checkout, &wanted, [name, version, features], &["--debug"])
}

/// Installs a crate with a name, a version and features, unless the same was `wanted` before.
pub fn cargo_install(
    checkout: &Checkout,
    wanted: &str,
    [name, version, features]: [&str; 3],
    profile: &[&str],
) -> Outcome<PathBuf> {
    let folder = checkout.peer_folder(name)?;
    let (programs, build) = (folder.join("bin"), folder.join("build"));
    let logs = checkout.peer_folder("logs")?;
    made(wanted.as_bytes(), &programs, || {
        eprintln!("  getting {name} {version} with cargo install");
        let mut install = checkout::cargo(checkout);
        install
            .args(["install", name, "--version", version, "--locked"])
            .args(profile)
            .args(["--no-default-features", "--features", features])
            .args(["--force", "--root"])
            .arg(&folder)
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
            // The lints of a run of CI are for our own crates.
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .env("CARGO_TARGET_DIR", &build);
        process::run("cargo", &mut install, BUILD, &logs)
            .map(drop)
            .map_err(|error| missing(name, &error))?;
        // Some hundred megabytes that are no longer needed.
        let _ = std::fs::remove_dir_all(&build);
        Ok(())
    })?;
    Ok(programs.join(name))
}

/// Path of a program: on the path, or in the system folders that a user's path often lacks.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// The search path, with `folder` before all others.
pub fn first_in_path(folder: &Path) -> Outcome<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_path_buf()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).map_err(|error| TaskError::at(folder, error))
}

/// Copies a file.
pub fn copy(from: &Path, to: &Path) -> Outcome<()> {
    std::fs::copy(from, to)
        .map(drop)
        .map_err(|error| TaskError::at(from, error))
}

/// Writes a file.
pub fn write(path: &Path, text: impl AsRef<[u8]>) -> Outcome<()> {
    std::fs::write(path, text).map_err(|error| TaskError::at(path, error))
}

/// Runs `make` unless `folder` was made from exactly this `list` before.
pub fn made_from(list: &Path, folder: &Path, make: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
    let wanted = std::fs::read(list).map_err(|error| TaskError::at(list, error))?;
    made(&wanted, folder, || {
        eprintln!("  getting what {} lists", list.display());
        make()
    })
}

/// Runs `make` unless `folder` was made from exactly `wanted` before.
pub fn made(wanted: &[u8], folder: &Path, make: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
    let stamp = folder.join(".made-from");
    if std::fs::read(&stamp).is_ok_and(|made| made == wanted) {
        return Ok(());
    }
    // Files of an interrupted or older run. Usually there are none.
    let _ = std::fs::remove_dir_all(folder);
    make()?;
    write(&stamp, wanted)
}

/// An error for a tool that could not be installed.
pub fn missing(program: &str, error: &TaskError) -> TaskError {
    TaskError::Missing(format!("{program} could not be got: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_made_once_and_again_when_its_version_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("bin");
        let mut makes = 0;
        for wanted in ["server@v1", "server@v1", "server@v2", "server@v2"] {
            let make = || {
                makes += 1;
                std::fs::create_dir_all(&folder).map_err(|error| TaskError::at(&folder, error))
            };
            made(wanted.as_bytes(), &folder, make).expect("nothing fails");
        }
        assert_eq!(makes, 2);
    }
}
