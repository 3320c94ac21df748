//! The test binaries of the workspace, as cargo builds them, and their runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::waiting::UNIT;
use crate::checkout::{Build, Checkout, cargo};
use crate::error::{Outcome, TaskError};
use crate::process::{self, Running};
use crate::site::Site;

/// Time limit for building the tests.
const BUILD: Duration = Duration::from_secs(2400);

/// Time limit for one run of one binary: many times that of the slowest with four busy processes.
const RUN: Duration = Duration::from_secs(1200);

/// A test binary.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Binary {
    pub(crate) package: String,
    /// The name under `tests/`, or [`UNIT`].
    pub(crate) target: String,
    program: PathBuf,
    /// The package's folder, in which cargo runs tests.
    folder: PathBuf,
}

/// The tests of a binary that run.
pub(crate) enum TestChoice {
    /// Those whose names contain one of these, or all if there is none.
    Only(Vec<String>),
    /// All but those whose names contain one of these.
    Except(Vec<String>),
}

impl TestChoice {
    /// Arguments of the test binary.
    fn arguments(&self) -> Vec<&str> {
        match self {
            Self::Only(names) => names.iter().map(String::as_str).collect(),
            Self::Except(names) => names
                .iter()
                .flat_map(|name| ["--skip", name.as_str()])
                .collect(),
        }
    }
}

/// Results of one run of a binary.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) passed: Vec<String>,
    pub(crate) failed: Vec<String>,
    /// Seconds from start to end.
    pub(crate) seconds: f64,
    /// All output, for the report of a failure.
    pub(crate) words: String,
}

/// Builds the tests of these packages, or of the whole workspace, and returns their binaries.
pub(crate) fn build(checkout: &Checkout, packages: &[&str], logs: &Path) -> Outcome<Vec<Binary>> {
    let command = || {
        let mut command = cargo(checkout);
        command.args(["test", "--no-run"]);
        match packages {
            [] => command.arg("--workspace"),
            some => command.args(some.iter().flat_map(|package| ["--package", package])),
        };
        command
    };
    // First with progress and errors on the terminal, then for the list.
    process::pass_through("cargo test", &mut command(), BUILD, |_| ())?;
    let mut listing = command();
    listing.arg("--message-format=json");
    let listed = process::run("cargo-test-list", &mut listing, BUILD, logs)?;
    Ok(listed.stdout.lines().filter_map(binary).collect())
}

/// Builds the tests of this package, and returns those of one target. Once the workspace's tests have been built, they
/// are among them, and nothing is compiled.
pub(crate) fn of_package(site: &Site, package: &str, target: &str) -> Outcome<Binary> {
    let packages = match site.build {
        Build::Tested => &[][..],
        _ => &[package],
    };
    let mut binaries = build(&site.checkout, packages, &site.logs)?.into_iter();
    let found = binaries.find(|binary| binary.package == package && binary.target == target);
    found.ok_or_else(|| TaskError::Failed(format!("{package} has no tests of the name {target}")))
}

/// The test binary in one of cargo's messages.
fn binary(message: &str) -> Option<Binary> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let program = PathBuf::from(message["executable"].as_str()?);
    let target = &message["target"];
    let is_integration = target["kind"][0] == "test";
    let name = target["name"].as_str()?;
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let folder = manifest.parent()?.to_path_buf();
    Some(Binary {
        package: package(message["package_id"].as_str()?)?,
        target: if is_integration { name } else { UNIT }.to_owned(),
        program,
        folder,
    })
}

/// The package in `path+file:///checkout/crates/load#posthaste-load@0.1.0`. The name is after the `#` only if the
/// folder has another name.
fn package(id: &str) -> Option<String> {
    let (path, version) = id.rsplit_once('#')?;
    let name = match version.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next()?,
    };
    Some(name.to_owned())
}

impl Binary {
    /// `package target`.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.package, self.target)
    }

    /// A run of the binary, without arguments.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }

    /// Names of the chosen tests.
    pub(crate) fn tests(&self, choice: &TestChoice, logs: &Path) -> Outcome<Vec<String>> {
        let mut list = self.command();
        list.args(choice.arguments()).arg("--list");
        let listed = process::run("list", &mut list, RUN, logs)?;
        let lines = listed.stdout.lines();
        let names = lines.filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }

    /// Runs the chosen tests. If the binary dies, it has failed as a whole.
    pub(crate) fn run(&self, choice: &TestChoice, logs: &Path) -> Outcome<Results> {
        let mut command = self.command();
        command.args(choice.arguments());
        let running = Running::start("chosen-tests", &mut command, logs)?;
        let finished = running.finish(RUN)?;
        let mut results = read(&finished.stdout);
        results.seconds = finished.wall.as_secs_f64();
        results.words = finished.stdout + &finished.stderr;
        if finished.code != Some(0) && results.failed.is_empty() {
            results.failed.push(format!("{} as a whole", self.name()));
        }
        Ok(results)
    }
}

/// Reads lines such as `test laws::a_constant_service ... ok`.
fn read(words: &str) -> Results {
    let mut results = Results::default();
    for line in words.lines() {
        let Some((name, end)) = line
            .strip_prefix("test ")
            .and_then(|line| line.split_once(" ... "))
        else {
            continue;
        };
        // Output that a test writes past the harness can precede the result.
        let name = name.trim().to_owned();
        if end.ends_with("FAILED") {
            results.failed.push(name);
        } else if end.ends_with("ok") {
            results.passed.push(name);
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_names_the_test_binaries() {
        let message = |kind: &str, name: &str, id: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"{id}","manifest_path":"/c/crates/x/Cargo.toml",
                "target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":true}},"executable":"/t/x-1"}}"#
            )
        };
        let of = |kind, name, id| binary(&message(kind, name, id)).map(|found| found.name());
        let id = "path+file:///c/crates/x#posthaste-x@0.1.0";
        assert_eq!(of("test", "wire", id).as_deref(), Some("posthaste-x wire"));
        assert_eq!(
            of("lib", "posthaste_x", id).as_deref(),
            Some("posthaste-x unit")
        );
        let same = "path+file:///c/xtask#0.1.0";
        assert_eq!(of("bin", "xtask", same).as_deref(), Some("xtask unit"));
        assert_eq!(
            binary(r#"{"reason":"build-finished","success":true}"#),
            None
        );
        assert_eq!(binary("Finished"), None);
    }

    #[test]
    fn results_are_read_by_name() {
        let words = "running 3 tests\ntest a::b ... ok\ntest a::c ... heard something, FAILED\ntest a::d ... ignored\n";
        let results = read(words);
        assert_eq!(results.passed, ["a::b"]);
        assert_eq!(results.failed, ["a::c"]);
    }
}
