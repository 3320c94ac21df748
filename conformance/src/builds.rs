//! Builds of `posthaste` and of the examples that tests and benchmarks start.

use std::path::PathBuf;
use std::process::Command;

use crate::checkout::{Checkout, Features, cargo};
use crate::error::Outcome;

use crate::profile_guided;

/// Build of the binary: with debug checks for tests, or like packages for measurements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// With debug checks.
    Dev,
    /// The same, as the workspace's tests built it.
    Tested,
    /// The profile `dist`.
    Dist,
    /// The same, instrumented to count branches.
    Counting,
    /// The same, optimised with these counts.
    Profiled,
}

impl Build {
    /// Builds `posthaste` and returns its path.
    pub(crate) fn binary(self, checkout: &Checkout) -> Outcome<PathBuf> {
        const NAME: &str = "posthaste";
        let mut cargo = cargo(checkout);
        cargo.args(["build", "--package", NAME, "--all-features"]);
        let folder = match self {
            Self::Dev => return checkout.debug(NAME, Features::Package),
            Self::Tested => return checkout.debug(NAME, Features::Workspace),
            Self::Dist => dist(checkout, &mut cargo)?,
            Self::Counting => profile_guided::counting(checkout, &mut cargo)?,
            Self::Profiled => profile_guided::profiled(checkout, &mut cargo)?,
        };
        checkout.build(&mut cargo, folder.join(NAME))
    }
}

/// Builds an example of a package for benchmarks and returns its path.
pub(crate) fn example(checkout: &Checkout, package: &str, name: &str) -> Outcome<PathBuf> {
    let mut cargo = cargo(checkout);
    cargo.args(["build", "--package", package, "--example", name]);
    let folder = dist(checkout, &mut cargo)?;
    checkout.build(&mut cargo, folder.join("examples").join(name))
}

/// Makes `cargo` build the profile `dist`. Returns the folder of the products.
fn dist(checkout: &Checkout, cargo: &mut Command) -> Outcome<PathBuf> {
    cargo.args(["--profile", "dist"]);
    checkout.folder("dist")
}
