//! The program of `conformance/`: tests against peers, and benchmarks.
//!
//! It is a program and no library of ours, so that other tasks do not compile it.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::checkout::{Checkout, Features, building, cargo};
use crate::error::{Outcome, TaskError};

/// Its package.
pub(crate) const PACKAGE: &str = "posthaste-conformance";

/// Replaces this process by it, with these arguments. Returns only if that failed.
pub(crate) fn exec<'a>(
    checkout: &Checkout,
    arguments: impl IntoIterator<Item = &'a str>,
) -> TaskError {
    let mut cargo = cargo(checkout);
    cargo.args(["run", "--quiet", "--package", PACKAGE, "--"]);
    let error = cargo.args(arguments).exec();
    TaskError::Failed(format!("cargo run --package {PACKAGE}: {error}"))
}

/// Builds it like the workspace's tests, and returns the command that runs it.
pub(crate) fn tested(checkout: &Checkout) -> Outcome<Command> {
    let program = checkout.debug(PACKAGE, Features::Workspace)?;
    let mut command = building(checkout, program);
    command.env("CARGO_MANIFEST_DIR", checkout.path("conformance"));
    Ok(command)
}
