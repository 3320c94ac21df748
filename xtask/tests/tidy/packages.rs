//! Rules for the packages of others in Cargo.lock, on every platform: licence, source, versions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value;

use crate::metadata::{list, metadata};
use crate::{Finding, expect_none};

/// Licences of packages that an MIT-licensed program may contain.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];

/// Packages with another licence, with the reason why they may stay.
const LICENCE_EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "libfuzzer-sys",
        "NCSA",
        "fuzz targets only; never in a package",
    ),
    (
        "webpki-roots",
        "CDLA-Permissive-2.0",
        "locked by async-nats's `ring`, never compiled",
    ),
];

/// Source of every package outside of the workspace.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Names that are locked in two versions, with the reason. A ratchet: a new one needs a reason, a former one goes.
const DUPLICATES: &[(&str, &str)] = &[
    (
        "const-oid",
        "x509-cert 0.2, also of tokio-postgres-rustls; the hashes of postgres-protocol",
    ),
    ("fallible-iterator", "postgres-protocol and rusqlite"),
    ("getrandom", "ring is behind"),
    (
        "rand",
        "tokio-websockets: locked by async-nats's `ring`, never compiled",
    ),
    ("rand_core", "as rand"),
    ("syn", "half of the derive macros have moved to version 3"),
    ("wasi", "mio and whoami, for WebAssembly only"),
    ("webpki-roots", "as rand"),
    ("windows-sys", "ring is behind, for Windows only"),
];

/// Packages that stay at a version, with the reason.
const HELD_BACK: &[(&str, &str, &str)] = &[
    (
        "idna_adapter",
        "1.1.0",
        "version 1.2 brings ICU4X: 19 more packages",
    ),
    (
        "indexmap",
        "2.13.1",
        "version 2.14 needs a second version of hashbrown, next to that of rusqlite",
    ),
];

/// All locked packages, those of other platforms and of the workspace too.
static PACKAGES: LazyLock<Vec<Value>> = LazyLock::new(|| list(&metadata(&[])["packages"]).to_vec());

fn text<'p>(package: &'p Value, key: &str) -> &'p str {
    package[key].as_str().unwrap_or_default()
}

fn location_of(package: &Value) -> String {
    format!(
        "Cargo.lock: {} {}",
        text(package, "name"),
        text(package, "version")
    )
}

/// True if the licences that `may` permits satisfy an SPDX expression. Old packages write `/` for OR.
///
/// AND binds closer than OR; an exception (WITH) permits more, so it does not count.
fn permits(expression: &str, may: &dyn Fn(&str) -> bool) -> bool {
    let spaced = ["/", "(", ")"]
        .iter()
        .fold(expression.to_owned(), |text, sign| {
            text.replace(sign, &format!(" {sign} "))
        });
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let (is_permitted, rest) = either(&tokens, may);
    assert!(rest.is_empty(), "{expression} is no SPDX expression");
    is_permitted
}

fn either<'w>(tokens: &'w [&'w str], may: &dyn Fn(&str) -> bool) -> (bool, &'w [&'w str]) {
    let (mut is_permitted, mut rest) = all(tokens, may);
    while let ["OR" | "/", more @ ..] = rest {
        let (next, after) = all(more, may);
        (is_permitted, rest) = (is_permitted | next, after);
    }
    (is_permitted, rest)
}

fn all<'w>(tokens: &'w [&'w str], may: &dyn Fn(&str) -> bool) -> (bool, &'w [&'w str]) {
    let (mut is_permitted, mut rest) = one(tokens, may);
    while let ["AND", more @ ..] = rest {
        let (next, after) = one(more, may);
        (is_permitted, rest) = (is_permitted & next, after);
    }
    (is_permitted, rest)
}

fn one<'w>(tokens: &'w [&'w str], may: &dyn Fn(&str) -> bool) -> (bool, &'w [&'w str]) {
    match tokens {
        ["(", inside @ ..] => match either(inside, may) {
            (is_permitted, [")", rest @ ..]) => (is_permitted, rest),
            (_, rest) => (false, rest),
        },
        [licence, "WITH", _, rest @ ..] | [licence, rest @ ..] => (may(licence), rest),
        [] => (false, tokens),
    }
}

#[test]
fn licences_are_those_of_the_list() {
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for package in PACKAGES.iter() {
        let name = text(package, "name");
        let own = LICENCE_EXCEPTIONS
            .iter()
            .filter(|(excepted, ..)| *excepted == name);
        let own: Vec<&str> = own.map(|(_, licence, _)| *licence).collect();
        let expression = text(package, "license");
        if permits(expression, &|licence| LICENCES.contains(&licence)) {
            continue;
        }
        if !permits(expression, &|licence| {
            LICENCES.contains(&licence) || own.contains(&licence)
        }) {
            findings.push(Finding::new(
                location_of(package),
                format!("its licence is {expression:?}"),
                "use another package, or give it a line with its reason in LICENCE_EXCEPTIONS",
            ));
        }
        used.insert(name);
    }
    findings.extend(stale(
        LICENCE_EXCEPTIONS.iter().map(|(name, ..)| *name),
        &used,
        "LICENCE_EXCEPTIONS",
    ));
    expect_none(&findings);
}

#[test]
fn packages_come_from_one_registry() {
    let others = PACKAGES.iter().filter(|package| {
        package["source"]
            .as_str()
            .is_some_and(|source| source != REGISTRY)
    });
    let findings: Vec<Finding> = others
        .map(|package| {
            Finding::new(
                location_of(package),
                format!("it comes from {}", text(package, "source")),
                "take a version of the registry: its checksum is in Cargo.lock",
            )
        })
        .collect();
    expect_none(&findings);
}

#[test]
fn a_name_has_one_version() {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in PACKAGES.iter() {
        let of_name = versions.entry(text(package, "name")).or_default();
        of_name.push(text(package, "version"));
    }
    versions.retain(|_, versions| versions.len() > 1);
    let known: BTreeSet<&str> = DUPLICATES.iter().map(|(name, _)| *name).collect();
    let new = versions.iter().filter(|(name, _)| !known.contains(**name));
    let mut findings: Vec<Finding> = new
        .map(|(name, versions)| {
            Finding::new(
                format!("Cargo.lock: {name}"),
                format!("it is locked in {}", versions.join(" and ")),
                "see `cargo tree -d` for what could share a version, or give it a line in DUPLICATES",
            )
        })
        .collect();
    let found = versions.keys().copied().collect();
    findings.extend(stale(known.into_iter(), &found, "DUPLICATES"));
    expect_none(&findings);
}

#[test]
fn some_packages_are_held_back() {
    let is_locked = |name: &str, version: &str| {
        let mut packages = PACKAGES.iter();
        packages.any(|package| text(package, "name") == name && text(package, "version") == version)
    };
    let missing = HELD_BACK
        .iter()
        .filter(|(name, version, _)| !is_locked(name, version));
    let findings: Vec<Finding> = missing
        .map(|(name, version, reason)| {
            Finding::new(
                format!("Cargo.lock: {name}"),
                format!("it is not locked at {version}: {reason}"),
                format!("cargo update {name} --precise {version}, or remove it from HELD_BACK"),
            )
        })
        .collect();
    expect_none(&findings);
}

/// Findings for rows of a table that nothing needs any longer.
fn stale<'n>(
    table: impl Iterator<Item = &'n str>,
    found: &BTreeSet<&str>,
    name: &str,
) -> Vec<Finding> {
    table
        .filter(|row| !found.contains(row))
        .map(|row| {
            Finding::new(
                "xtask/tests/tidy/packages.rs",
                format!("{row} needs no row any longer"),
                format!("remove it from {name}"),
            )
        })
        .collect()
}

#[test]
fn expressions_of_licences_are_read() {
    let may = |licence: &str| licence == "MIT" || licence == "ISC";
    for permitted in [
        "MIT",
        "MIT/Apache-2.0",
        "Apache-2.0 / MIT",
        "GPL-3.0 OR MIT AND ISC",
        "(MIT OR GPL-3.0) AND ISC",
        "GPL-3.0 WITH exception OR MIT WITH exception",
    ] {
        assert!(permits(permitted, &may), "{permitted}");
    }
    for refused in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR ISC) AND (GPL-3.0 OR BSL-1.0)",
    ] {
        assert!(!permits(refused, &may), "{refused}");
    }
}
