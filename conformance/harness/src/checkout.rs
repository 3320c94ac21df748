//! Locations: the checkout, its build products, and the folder for foreign software.
//!
//! Nothing is written outside `target/` except by the system's own package manager.

pub(crate) mod profile_guided;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::error::{Outcome, TaskError};
use crate::process;

/// Build of the binary: with debug checks for tests, or like packages for measurements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    Dev,
    /// The same, with the features that the workspace's tests enable in dependencies. After `cargo test --workspace` it
    /// needs no compiler; `Dev` compiles dependencies and crates once more, because cargo unifies the features of the
    /// packages that it is asked for.
    Tested,
    /// The profile `dist`.
    Dist,
    /// The same, instrumented to count branches.
    Counting,
    /// The same, optimised with these counts.
    Profiled,
}

/// The checkout that this program was built from.
pub(crate) struct Checkout {
    root: PathBuf,
    target: PathBuf,
}

impl Checkout {
    /// Finds the checkout from the location of xtask's own manifest.
    pub(crate) fn find() -> Outcome<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").ok_or_else(|| {
            TaskError::Failed("CARGO_MANIFEST_DIR is not set: start this as `cargo xtask`".into())
        })?;
        let root = Path::new(&manifest)
            .parent()
            .ok_or_else(|| TaskError::Failed("xtask has no folder above it".into()))?
            .to_path_buf();
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| root.join("target"), |folder| root.join(folder));
        Ok(Self { root, target })
    }

    /// A path inside the checkout.
    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        self.root.join(inside)
    }

    /// The checkout itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A folder under `target/peers`, created if absent.
    pub(crate) fn peer_folder(&self, name: &str) -> Outcome<PathBuf> {
        self.folder(&format!("peers/{name}"))
    }

    /// A folder under `target`, created if absent.
    pub(crate) fn folder(&self, name: &str) -> Outcome<PathBuf> {
        let folder = self.target.join(name);
        std::fs::create_dir_all(&folder).map_err(|error| TaskError::at(&folder, error))?;
        Ok(folder)
    }

    /// Builds `posthaste` and returns its path.
    pub(crate) fn binary(&self, build: Build) -> Outcome<PathBuf> {
        let what: &[&str] = match build {
            // A test among the targets enables what tests need.
            Build::Tested => &["--workspace", "--bin", "posthaste", "--test", "cli"],
            _ => &["--package", "posthaste"],
        };
        self.built(build, what, "posthaste")
    }

    /// Builds the emulator's example for benchmarks and returns its path.
    pub(crate) fn measure(&self) -> Outcome<PathBuf> {
        let what = ["--package", "posthaste-emulator", "--example", "measure"];
        self.built(Build::Dist, &what, "examples/measure")
    }

    /// Builds the fleet's example for benchmarks and returns its path.
    pub(crate) fn simulated_agents(&self) -> Outcome<PathBuf> {
        let what = [
            "--package",
            "posthaste-fleet",
            "--example",
            "simulated_agents",
        ];
        self.built(Build::Dist, &what, "examples/simulated_agents")
    }

    fn built(&self, build: Build, what: &[&str], program: &str) -> Outcome<PathBuf> {
        let mut cargo = cargo(self);
        cargo.arg("build").args(what);
        let folder = match build {
            Build::Dev | Build::Tested => self.target.join("debug"),
            Build::Dist => {
                cargo.args(["--profile", "dist"]);
                self.target.join("dist")
            }
            Build::Counting => profile_guided::counting(self, &mut cargo)?,
            Build::Profiled => profile_guided::profiled(self, &mut cargo)?,
        };
        process::pass_through("cargo build", &mut cargo, Duration::from_secs(1200), |_| ())?;
        made(folder.join(program))
    }
}

/// A built program of ours. Its absence is a failure; only peers may be missing.
fn made(program: PathBuf) -> Outcome<PathBuf> {
    match program.is_file() {
        true => Ok(program),
        false => Err(TaskError::at(&program, "cargo has built it somewhere else")),
    }
}

/// The cargo that started us, in the checkout, with our target folder regardless of its configuration.
pub(crate) fn cargo(checkout: &Checkout) -> Command {
    building(
        checkout,
        std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
    )
}

/// A program that calls cargo, in the checkout, with our target folder regardless of its configuration.
///
/// Cargo's variables about xtask's own package are removed. Otherwise build scripts that depend on such a variable
/// would run again, and their dependants would be compiled again, after each direct `cargo build`.
pub(crate) fn building(checkout: &Checkout, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(checkout.root())
        .env("CARGO_TARGET_DIR", &checkout.target);
    for (name, _) in std::env::vars_os() {
        if is_about_a_package(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
    command
}

/// True for a variable that cargo sets for a program of one package.
fn is_about_a_package(name: &str) -> bool {
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_builds_where_we_look() {
        let checkout = Checkout {
            root: "/checkout".into(),
            target: "/elsewhere".into(),
        };
        let command = cargo(&checkout);
        let mut set = command.get_envs();
        let found = set.find(|(name, _)| *name == "CARGO_TARGET_DIR");
        let folder = found.and_then(|(_, value)| value);
        assert_eq!(folder, Some(OsStr::new("/elsewhere")));
    }

    #[test]
    fn a_program_of_ours_that_is_absent_is_a_failure_and_no_skip() {
        let folder = tempfile::tempdir().expect("a folder");
        let absent = made(folder.path().join("posthaste"));
        assert!(matches!(absent, Err(TaskError::Failed(_))));
    }
}
