//! The features of the command, each alone: tests of the table in `crates/posthaste/src/features.rs`, a use of the
//! gateway alone, and the packages that it must not have.
//!
//! The tests build the command with one feature and everything below it as the workspace's tests did, so that only the
//! command itself is compiled. `cargo check` of two features alone then finds what a crate uses without asking for it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use posthaste_harness::output;
use posthaste_harness::tally::TestTally;

use crate::checkout::{Checkout, cargo};
use crate::error::{Outcome, TaskError, check};
use crate::process;

/// Time limit for one feature.
const LIMIT: Duration = Duration::from_secs(1200);

/// Time limit for a command that prints and ends.
const MOMENT: Duration = Duration::from_secs(20);

/// The manifest with the features.
const MANIFEST: &str = "crates/posthaste/Cargo.toml";

/// Features that are checked without the rest of the workspace: one has a package, and the other is without PostgreSQL.
/// They share most packages, none of them with the tests; a check of all features takes several times as long.
/// `.github/workflows/ci.yml` builds each.
const ALONE: [&str; 2] = ["gateway", "broker"];

/// Packages that the gateway alone must not have: SQLite, load generator, emulator.
const NOT_IN_GATEWAY: [&str; 3] = ["rusqlite", "posthaste-load", "posthaste-emulator"];

/// Tests all features.
pub(super) fn run(checkout: &Checkout, tally: &mut TestTally) {
    let mut note = |name: &str, outcome: Outcome<usize>| match outcome {
        Ok(count) => tally.passed += count,
        Err(error) => tally.fail(&format!("feature {name}"), &error.to_string()),
    };
    match features(checkout) {
        Ok(features) => {
            for feature in features {
                note(&feature, table(checkout, &feature));
            }
        }
        Err(error) => note("list", Err(error)),
    }
    note("gateway", gateway(checkout).map(|()| 1));
    note("gateway", packages(checkout).map(|()| 1));
    for feature in ALONE {
        note(feature, alone(checkout, feature).map(|()| 1));
    }
}

/// The features in the manifest.
fn features(checkout: &Checkout) -> Outcome<Vec<String>> {
    let path = checkout.path(MANIFEST);
    let text = std::fs::read_to_string(&path).map_err(|error| TaskError::at(&path, error))?;
    Ok(keys(&text).map(str::to_owned).collect())
}

/// The keys of the section `[features]`, without `default`.
fn keys(manifest: &str) -> impl Iterator<Item = &str> {
    manifest
        .lines()
        .skip_while(|line| *line != "[features]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| Some(line.split_once(" = [")?.0))
        .filter(|name| *name != "default")
}

/// A command on the workspace with this feature of `posthaste`, and the features of the workspace's tests elsewhere.
fn with_feature(checkout: &Checkout, verb: &str, feature: &str) -> Command {
    let features =
        format!("posthaste/{feature},posthaste-broker/postgres,posthaste-papers/postgres");
    let mut command = cargo(checkout);
    command
        .args([verb, "--workspace", "--bin", "posthaste"])
        .args(["--no-default-features", "--features", &features]);
    command
}

/// Tests the table of commands. Returns the number of tests.
fn table(checkout: &Checkout, feature: &str) -> Outcome<usize> {
    let mut command = with_feature(checkout, "test", feature);
    command.args(["--", "features::"]);
    let mut passed = 0;
    process::pass_through("cargo test", &mut command, LIMIT, |line| {
        if let Some(counts) = line.strip_prefix("test result: ") {
            passed += output::count(counts, "passed");
        }
    })?;
    check(passed > 0, || {
        "its binary has no tests of the table".to_owned()
    })?;
    Ok(passed)
}

/// Uses a binary with the feature `gateway` only.
fn gateway(checkout: &Checkout) -> Outcome<()> {
    let mut build = with_feature(checkout, "build", "gateway");
    // A test among the targets enables what tests need in dependencies.
    build.args(["--test", "tidy"]);
    process::pass_through("cargo build", &mut build, LIMIT, |_| ())?;
    let binary = checkout.folder("debug")?.join("posthaste");
    let logs = checkout.peer_folder("logs")?;
    uses_gateway(&binary, &logs)
}

/// Checks a binary of the gateway alone: help, schema, and the error of a command that it has not.
pub(crate) fn uses_gateway(binary: &Path, logs: &Path) -> Outcome<()> {
    let start = |arguments: &[&str]| {
        let mut command = Command::new(binary);
        command.args(arguments);
        process::Running::start("gateway-alone", &mut command, logs)?.finish(MOMENT)
    };
    let help = start(&["--help"])?.stdout;
    let lists = |name: &str| {
        help.lines()
            .any(|line| line.starts_with(&format!("  {name} ")))
    };
    check(lists("gateway") && !lists("load") && !lists("net"), || {
        format!("the help of the gateway alone is\n{help}")
    })?;
    let schema = start(&["gateway", "--schema"])?;
    check(
        schema.code == Some(0) && schema.stdout.contains("upstream"),
        || format!("`gateway --schema` printed\n{}", schema.stdout),
    )?;
    let load = start(&["load", "http://127.0.0.1/"])?;
    let expected = "`load` is not in this binary";
    check(
        load.code == Some(2) && load.stderr.contains(expected),
        || format!("`load` ended with {:?}:\n{}", load.code, load.stderr),
    )
}

/// Checks the packages of the gateway alone.
fn packages(checkout: &Checkout) -> Outcome<()> {
    let mut tree = cargo(checkout);
    tree.args([
        "tree",
        "--package",
        "posthaste",
        "--edges",
        "normal",
        "--prefix",
        "none",
    ])
    .args(["--no-default-features", "--features", "gateway"]);
    let logs = checkout.peer_folder("logs")?;
    let listed = process::run("cargo tree", &mut tree, LIMIT, &logs)?.stdout;
    let names = listed.lines().filter_map(|line| line.split(' ').next());
    match names.into_iter().find(|name| NOT_IN_GATEWAY.contains(name)) {
        None => Ok(()),
        Some(name) => Err(TaskError::Failed(format!(
            "the gateway alone depends on {name}; `cargo tree --invert {name}` shows why"
        ))),
    }
}

/// Checks the command with one feature and without the features that other members enable.
fn alone(checkout: &Checkout, feature: &str) -> Outcome<()> {
    let mut command = cargo(checkout);
    command.args(["check", "--package", "posthaste"]).args([
        "--no-default-features",
        "--features",
        feature,
    ]);
    process::pass_through("cargo check", &mut command, LIMIT, |_| ())
}

#[cfg(test)]
mod tests {
    use super::keys;

    #[test]
    fn features_are_read_from_the_manifest() {
        let manifest = "[package]\nname = [\n[features]\n# A.\ndefault = [\"a\"]\na = [\n    \"dep:x\",\n]\nb-c = []\n[lib]\nd = []\n";
        assert_eq!(keys(manifest).collect::<Vec<_>>(), ["a", "b-c"]);
    }
}
