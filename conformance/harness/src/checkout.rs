//! Locations: the checkout, its build products, and the folder for foreign programs.
//!
//! Nothing is written outside `target/` except by the system's own package manager.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::error::{Outcome, TaskError};
use crate::process;

/// Features of dependencies in a debug build.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Features {
    /// Those that the built package enables.
    Package,
    /// Those that the workspace's tests enable. After `cargo xtask test` such a build needs no compiler; the other
    /// compiles dependencies and crates once more, because cargo unifies the features of the packages that it is asked
    /// for.
    Workspace,
}

/// Time limit of a build.
const BUILD: Duration = Duration::from_secs(1200);

/// The checkout that this program was built from.
pub struct Checkout {
    root: PathBuf,
    target: PathBuf,
}

impl Checkout {
    /// Finds the checkout from the location of the manifest of the running program.
    pub fn find() -> Outcome<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").ok_or_else(|| {
            TaskError::Failed("CARGO_MANIFEST_DIR is not set: start this as `cargo xtask`".into())
        })?;
        let root = Path::new(&manifest)
            .parent()
            .ok_or_else(|| TaskError::Failed("the manifest has no folder above it".into()))?
            .to_path_buf();
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| root.join("target"), |folder| root.join(folder));
        Ok(Self { root, target })
    }

    /// A path inside the checkout.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.root.join(inside)
    }

    /// The checkout itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A folder under `target/peers`, created if absent.
    pub fn peer_folder(&self, name: &str) -> Outcome<PathBuf> {
        self.folder(&format!("peers/{name}"))
    }

    /// A folder under `target`, created if absent.
    pub fn folder(&self, name: &str) -> Outcome<PathBuf> {
        let folder = self.target.join(name);
        std::fs::create_dir_all(&folder).map_err(|error| TaskError::at(&folder, error))?;
        Ok(folder)
    }

    /// Builds this program, which has its package's name, with debug checks, and returns its path.
    pub fn debug(&self, name: &str, features: Features) -> Outcome<PathBuf> {
        let selection: &[&str] = match features {
            // A test among the targets enables what tests need.
            Features::Workspace => &[
                "--workspace",
                "--all-features",
                "--bin",
                name,
                "--test",
                "cli",
            ],
            Features::Package => &["--package", name, "--all-features"],
        };
        let mut cargo = cargo(self);
        cargo.arg("build").args(selection);
        self.build(&mut cargo, self.target.join("debug").join(name))
    }

    /// Builds with this command and returns the path of the program that it made.
    pub fn build(&self, cargo: &mut Command, program: PathBuf) -> Outcome<PathBuf> {
        process::pass_through("cargo build", cargo, BUILD, |_| ())?;
        made(program)
    }
}

/// A built program of ours. Its absence is a failure; only peers may be missing.
fn made(program: PathBuf) -> Outcome<PathBuf> {
    if program.is_file() {
        Ok(program)
    } else {
        Err(TaskError::at(&program, "cargo has built it somewhere else"))
    }
}

/// The cargo that started us, in the checkout, with our target folder regardless of its configuration.
pub fn cargo(checkout: &Checkout) -> Command {
    building(
        checkout,
        std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
    )
}

/// A program that calls cargo, in the checkout, with our target folder regardless of its configuration.
///
/// Cargo's variables about our own package are removed. Otherwise build scripts that depend on such a variable
/// would run again, and their dependants would be compiled again, after each direct `cargo build`.
pub fn building(checkout: &Checkout, program: impl AsRef<OsStr>) -> Command {
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
