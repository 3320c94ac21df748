//! Rules for Cargo.toml files: dependencies point down, and each one is used.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::comments::{Parts, is_name_part};
use crate::files::{Source, root, rust, tracked};
use crate::layers::{CRATES, CrateKind, NETWORK, crate_rule};
use crate::metadata::{list, metadata};
use crate::{Finding, expect_none};

/// Crates that a pure crate must not name, for any purpose.
const IMPURE: &[&str] = &[
    "libc",
    "linux-raw-sys",
    "rustix",
    "nix",
    "mio",
    "signal-hook",
    "tracing-subscriber",
];

struct Manifest {
    source: Source,
    table: Table,
}

impl Manifest {
    /// The names under `[dependencies]`, `[dev-dependencies]` and `[build-dependencies]`.
    fn dependencies(&self) -> Vec<String> {
        ["dependencies", "dev-dependencies", "build-dependencies"]
            .iter()
            .filter_map(|section| self.table.get(*section).and_then(Value::as_table))
            .flat_map(|table| table.keys().cloned())
            .collect()
    }

    /// The line that names a dependency.
    fn location_of(&self, dependency: &str) -> String {
        self.source
            .lines()
            .find(|(_, line)| {
                line.strip_prefix(dependency)
                    .is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
            })
            .map_or_else(
                || self.source.path.clone(),
                |(number, _)| self.source.line(number),
            )
    }
}

fn manifests() -> Vec<Manifest> {
    tracked()
        .into_iter()
        .filter(|source| source.path.ends_with("Cargo.toml") && !source.path.starts_with("fuzz/"))
        .map(|source| {
            let table = source
                .text
                .parse()
                .unwrap_or_else(|error| panic!("{}: {error}", source.path));
            Manifest { source, table }
        })
        .collect()
}

/// A dependency on another crate of the workspace, as that crate's name.
fn as_crate(dependency: &str) -> Option<&str> {
    dependency
        .strip_prefix("posthaste-")
        .or((dependency == "posthaste").then_some(dependency))
}

#[test]
fn dependencies_point_down() {
    let mut findings = Vec::new();
    for manifest in manifests() {
        let Some(name) = manifest.source.crate_name() else {
            continue;
        };
        let Some(rule) = crate_rule(name) else {
            continue;
        };
        for dependency in manifest.dependencies() {
            if as_crate(&dependency).is_some_and(|below| !rule.permits(below)) {
                findings.push(Finding::new(
                    manifest.location_of(&dependency),
                    format!("{name} depends on {dependency}, which stands beside or above it"),
                    "move what both need into a crate below them, or pass it in from above",
                ));
            }
        }
    }
    expect_none(&findings);
}

#[test]
fn network_crates_stay_in_the_shell() {
    let mut findings = Vec::new();
    for manifest in manifests() {
        let Some(rule) = manifest.source.crate_name().and_then(crate_rule) else {
            continue;
        };
        for dependency in manifest.dependencies() {
            let wrong = match NETWORK.iter().find(|(network, _)| *network == dependency) {
                Some((_, crates)) => !crates.contains(&rule.name()),
                None => rule.kind == CrateKind::Pure && IMPURE.contains(&dependency.as_str()),
            };
            if wrong {
                findings.push(Finding::new(
                    manifest.location_of(&dependency),
                    format!("{} names {dependency}", rule.folder),
                    "use what posthaste-serve offers, or add the crate with its reason to NETWORK",
                ));
            }
        }
    }
    expect_none(&findings);
}

/// True if the code names this identifier, not only a longer one.
fn names(text: &str, ident: &str) -> bool {
    let code = Parts::from_text(text).code;
    code.split(|character| !is_name_part(character))
        .any(|word| word == ident)
}

#[test]
fn every_dependency_is_used() {
    let sources = rust();
    let manifests = manifests();
    let mut findings = Vec::new();
    let mut named = BTreeSet::new();
    for manifest in &manifests {
        let folder = manifest.source.path.trim_end_matches("Cargo.toml");
        for dependency in manifest.dependencies() {
            let ident = dependency.replace('-', "_");
            let used = sources
                .iter()
                .any(|source| source.path.starts_with(folder) && names(&source.text, &ident));
            if !used {
                findings.push(Finding::new(
                    manifest.location_of(&dependency),
                    format!("{dependency} is not used"),
                    "remove the line",
                ));
            }
            named.insert(dependency);
        }
    }
    let workspace = manifests
        .iter()
        .find(|manifest| manifest.source.path == "Cargo.toml");
    let workspace = workspace.expect("the workspace has a manifest");
    for dependency in workspace.table["workspace"]["dependencies"]
        .as_table()
        .expect("a table")
        .keys()
    {
        if !named.contains(dependency) {
            findings.push(Finding::new(
                workspace.location_of(dependency),
                format!("no member depends on {dependency}"),
                "remove the line",
            ));
        }
    }
    expect_none(&findings);
}

#[test]
fn every_member_takes_the_workspace_lints() {
    let findings: Vec<Finding> = manifests()
        .iter()
        .filter(|manifest| manifest.source.path != "Cargo.toml")
        .filter(|manifest| {
            let lints = manifest
                .table
                .get("lints")
                .and_then(|lints| lints.get("workspace"));
            lints.and_then(Value::as_bool) != Some(true)
        })
        .map(|manifest| {
            Finding::new(
                &manifest.source.path,
                "the workspace's lints are not taken",
                "write `workspace = true` under `[lints]`",
            )
        })
        .collect();
    expect_none(&findings);
}

#[test]
fn every_crate_is_named_like_its_folder_and_in_its_group() {
    let mut findings = Vec::new();
    for manifest in manifests() {
        let Some((group, folder, _)) = manifest.source.in_crate() else {
            continue;
        };
        let name = manifest.table["package"]["name"]
            .as_str()
            .unwrap_or_default();
        if as_crate(name) != Some(folder) {
            findings.push(Finding::new(
                manifest.location_of("name"),
                format!("the package in {folder}/ is called {name}"),
                format!("call it posthaste-{folder}"),
            ));
        }
        let folder_path =
            group.map_or_else(|| folder.to_owned(), |group| format!("{group}/{folder}"));
        if CRATES.iter().all(|rule| rule.folder != folder_path) {
            findings.push(Finding::new(
                &manifest.source.path,
                format!("{folder_path} is not in the table of crates"),
                "give it a line in xtask/tests/tidy/layers.rs, in its group and at its height",
            ));
        }
    }
    expect_none(&findings);
}

/// `rust-version` is the highest version that a dependency on Linux requires.
#[test]
fn the_rust_version_is_that_of_the_dependencies() {
    let metadata = metadata(&["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let resolved = list(&metadata["resolve"]["nodes"]);
    let is_used = |package: &serde_json::Value| {
        package["source"].is_string() && resolved.iter().any(|node| node["id"] == package["id"])
    };
    let packages = list(&metadata["packages"]);
    let needed = packages.iter().filter(|package| is_used(package));
    let needed = needed.filter_map(|package| package["rust_version"].as_str());
    let number = |version: &str| -> Vec<u32> {
        version
            .split('.')
            .take(2)
            .map(|part| part.parse().unwrap())
            .collect()
    };
    let most = needed.map(number).max().unwrap();
    let manifest: Table = std::fs::read_to_string(root().join("Cargo.toml"))
        .unwrap()
        .parse()
        .unwrap();
    let ours = manifest["workspace"]["package"]["rust-version"]
        .as_str()
        .unwrap();
    assert_eq!(
        number(ours),
        most,
        "set rust-version in Cargo.toml to what the dependencies need"
    );
}
