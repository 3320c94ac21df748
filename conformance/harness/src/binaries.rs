//! The test binaries of the workspace, as cargo builds them, and their runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::checkout::{Checkout, cargo};
use crate::error::{Outcome, TaskError};
use crate::output::{self, Results};
use crate::process::{self, Running};
use crate::waiting::{UNIT, WAITING};

/// Time limit for building the tests.
const BUILD: Duration = Duration::from_secs(2400);

/// Time limit for one run of one binary: many times that of the slowest with four busy processes.
const RUN: Duration = Duration::from_secs(1200);

/// Interval between checks of a running binary.
const LOOK: Duration = Duration::from_millis(10);

/// A test binary.
#[derive(Debug, PartialEq, Eq)]
pub struct Binary {
    /// The package of the tests.
    pub package: String,
    /// The name under `tests/`, or [`UNIT`].
    pub target: String,
    program: PathBuf,
    /// The package's folder, in which cargo runs tests.
    folder: PathBuf,
}

/// The tests of a binary that run.
pub enum TestChoice {
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

/// Builds the tests of these packages, or of the whole workspace, and returns their binaries.
pub fn build(checkout: &Checkout, packages: &[&str]) -> Outcome<Vec<Binary>> {
    let failed = |broken: Vec<String>| TaskError::Failed(format!("build: {}", broken.join(", ")));
    try_build(checkout, packages).map_err(failed)
}

/// The same. The error has an entry for each target that cannot be compiled.
pub fn try_build(checkout: &Checkout, packages: &[&str]) -> Result<Vec<Binary>, Vec<String>> {
    let mut command = cargo(checkout);
    command.args([
        "test",
        "--no-run",
        "--all-features",
        "--message-format=json",
    ]);
    match packages {
        [] => command.arg("--workspace"),
        some => command.args(some.iter().flat_map(|package| ["--package", package])),
    };
    let (mut binaries, mut broken) = (Vec::new(), Vec::new());
    let ended = process::follow("cargo test --no-run", &mut command, BUILD, |line| {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            return;
        };
        binaries.extend(binary(&message));
        if let Some(text) = message["message"]["rendered"].as_str() {
            eprint!("{text}");
        }
        broken.extend(broken_target(&message));
    });
    broken.sort();
    broken.dedup();
    match ended {
        Ok(()) => {
            binaries.sort_by_key(Binary::name);
            Ok(binaries)
        }
        Err(error) if broken.is_empty() => Err(vec![error.to_string()]),
        Err(_) => Err(broken),
    }
}

/// Package and target of an error of the compiler.
fn broken_target(message: &Value) -> Option<String> {
    let is_error = message["message"]["level"] == "error";
    let target = message["target"]["name"].as_str().filter(|_| is_error)?;
    let package = package(message["package_id"].as_str()?)?;
    Some(format!("{package} {target}"))
}

/// The test binary in one of cargo's messages.
fn binary(message: &Value) -> Option<Binary> {
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

/// The package in `path+file:///checkout/crates/load/load#posthaste-load@0.1.0`. The name is after the `#` only if the
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
    pub fn name(&self) -> String {
        format!("{} {}", self.package, self.target)
    }

    /// True if some of its tests wait on a clock.
    pub fn waits(&self) -> bool {
        let rows = WAITING.iter();
        rows.filter(|row| row.package == self.package)
            .any(|row| row.target == self.target)
    }

    /// A run of the binary, without arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }

    /// Names of the chosen tests.
    pub fn tests(&self, choice: &TestChoice, logs: &Path) -> Outcome<Vec<String>> {
        let mut list = self.command();
        list.args(choice.arguments()).arg("--list");
        let listed = process::run("list", &mut list, RUN, logs)?;
        let lines = listed.stdout.lines();
        let names = lines.filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    }

    /// Runs the chosen tests. A test without a result has failed; if none is known, the binary has failed as a whole.
    pub fn run(&self, choice: &TestChoice, logs: &Path) -> Outcome<Results> {
        let mut command = self.command();
        command.args(choice.arguments());
        let since = Instant::now();
        let running = Running::start("chosen-tests", &mut command, logs)?;
        while !running.has_ended() && since.elapsed() < RUN {
            std::thread::sleep(LOOK);
        }
        let (end, output) = if running.has_ended() {
            let finished = running.finish(RUN)?;
            let end = finished
                .code
                .map_or_else(|| "a signal".into(), |code| format!("exit {code}"));
            (end, finished.stdout + &finished.stderr)
        } else {
            let end = format!("no end within {} s", RUN.as_secs());
            (end, running.output())
        };
        let mut results = self.judge(&end, output);
        results.seconds = since.elapsed().as_secs_f64();
        Ok(results)
    }

    /// Results in the output of a run that ended like this.
    fn judge(&self, end: &str, output: String) -> Results {
        let mut results = output::read(&output);
        let is_complete = output.contains("\ntest result: ");
        let is_explained = match end {
            "exit 0" => is_complete,
            "exit 101" => is_complete && !results.failed.is_empty(),
            _ => false,
        };
        if !is_explained {
            let mut names = output::without_end(&output, &results);
            if names.is_empty() {
                names.push("as a whole".to_owned());
            }
            let names = names.into_iter().map(|name| format!("{name}: {end}"));
            results.failed.extend(names);
        }
        results.output = output;
        results
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_names_the_test_binaries() {
        let message = |kind: &str, name: &str, id: &str| {
            let text = format!(
                r#"{{"reason":"compiler-artifact","package_id":"{id}","manifest_path":"/c/crates/x/Cargo.toml",
                "target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":true}},"executable":"/t/x-1"}}"#
            );
            serde_json::from_str::<Value>(&text).expect("JSON")
        };
        let name_of = |kind, name, id| binary(&message(kind, name, id)).map(|found| found.name());
        let id = "path+file:///c/crates/x#posthaste-x@0.1.0";
        assert_eq!(
            name_of("test", "wire", id).as_deref(),
            Some("posthaste-x wire")
        );
        assert_eq!(
            name_of("lib", "posthaste_x", id).as_deref(),
            Some("posthaste-x unit")
        );
        let same = "path+file:///c/xtask#0.1.0";
        assert_eq!(name_of("bin", "xtask", same).as_deref(), Some("xtask unit"));
        let finished = serde_json::json!({"reason": "build-finished", "success": true});
        assert_eq!(binary(&finished), None);
    }

    #[test]
    fn errors_of_the_compiler_name_their_target() {
        let error = |level| {
            serde_json::json!({
                "package_id": "path+file:///c/xtask#0.1.0", "target": {"name": "tidy"}, "message": {"level": level}
            })
        };
        assert_eq!(
            broken_target(&error("error")).as_deref(),
            Some("xtask tidy")
        );
        assert_eq!(broken_target(&error("warning")), None);
    }

    #[test]
    fn a_run_without_its_results_has_failed() {
        let binary = Binary {
            package: "x".to_owned(),
            target: UNIT.to_owned(),
            program: PathBuf::new(),
            folder: PathBuf::new(),
        };
        let failed = |end, output: &str| {
            binary
                .judge(end, format!("running 2 tests\n{output}"))
                .failed
        };
        let (passed, broken) = ("test a ... ok\n", "test b ... FAILED\n");
        assert!(failed("exit 0", "test a ... ok\n\ntest result: ok.").is_empty());
        assert_eq!(
            failed("exit 101", &format!("{broken}\ntest result: FAILED.")),
            ["b"]
        );
        assert_eq!(failed("exit 0", passed), ["as a whole: exit 0"]);
        assert_eq!(failed("a signal", broken), ["b", "as a whole: a signal"]);
        let slow = "test c has been running for over 60 seconds\n";
        assert_eq!(failed("no end within 1 s", slow), ["c: no end within 1 s"]);
    }
}
