//! Outside effects of `serve`, `gateway` and `broker-client` go through `serve::environment`, so that a simulation can
//! replace them (docs/decisions/0026-seam-for-virtual-time.md). Test modules may have effects of their own.

use syn::visit::Visit as _;

use crate::files::{Source, rust};
use crate::purity::Names;
use crate::{Finding, expect_none};

/// Crates that run in a simulation.
const CRATES: &[&str] = &["broker-client", "gateway", "resolver", "serve"];

/// Paths of effects, or their ends.
const EFFECTS: &[&str] = &[
    "RandomState",
    "SystemTime::now",
    "TcpListener::bind",
    "TcpStream::connect",
    "Timestamp::now",
    "clock_gettime",
    "getrandom",
    "lookup_host",
    "std::thread",
    "std::time::Instant",
    "tokio::spawn",
];

/// Files with an effect, and the reason.
const PERMITTED: &[(&str, &str, &str)] = &[
    (
        "crates/gateway/gateway/src/record/access_log.rs",
        "std::thread",
        "not in a simulation",
    ),
    (
        "crates/gateway/resolver/src/lib.rs",
        "std::time::Instant",
        "hickory's",
    ),
    (
        "crates/gateway/gateway/src/upstream/names.rs",
        "std::thread",
        "not in a simulation",
    ),
    (
        "crates/http/serve/src/background.rs",
        "std::thread",
        "not in a simulation",
    ),
    (
        "crates/http/serve/src/client/mod.rs",
        "lookup_host",
        "not in a simulation",
    ),
    (
        "crates/http/serve/src/client/mod.rs",
        "tokio::spawn",
        "not in a simulation",
    ),
    (
        "crates/http/serve/src/client/connect.rs",
        "TcpStream::connect",
        "not in a simulation",
    ),
    (
        "crates/http/serve/src/environment.rs",
        "SystemTime::now",
        "the seam",
    ),
    (
        "crates/http/serve/src/environment.rs",
        "clock_gettime",
        "the seam",
    ),
    (
        "crates/http/serve/src/environment.rs",
        "getrandom",
        "the seam",
    ),
    (
        "crates/http/serve/src/http3/local_runtime.rs",
        "std::time::Instant",
        "HTTP/3",
    ),
    (
        "crates/http/serve/src/http3/reply.rs",
        "SystemTime::now",
        "HTTP/3",
    ),
    (
        "crates/http/serve/src/server.rs",
        "std::thread",
        "not in a simulation",
    ),
    (
        "crates/http/serve/src/handler/slow.rs",
        "clock_gettime",
        "experiments",
    ),
];

/// Effects in a file outside its test modules, with their lines.
fn effects(source: &Source) -> Vec<(&'static str, usize)> {
    let mut file = source.parsed();
    file.items.retain(|item| !is_test(item));
    let mut names = Names::default();
    names.visit_file(&file);
    let names = names.0.into_iter();
    names
        .filter_map(|(name, line)| {
            let is_in = |effect: &&&str| {
                let is_end = name
                    .strip_suffix(**effect)
                    .is_some_and(|before| before.is_empty() || before.ends_with("::"));
                is_end
                    || name
                        .strip_prefix(**effect)
                        .is_some_and(|rest| rest.starts_with("::"))
            };
            Some((*EFFECTS.iter().find(is_in)?, line))
        })
        .collect()
}

fn is_test(item: &syn::Item) -> bool {
    let syn::Item::Mod(module) = item else {
        return false;
    };
    let mut attributes = module.attrs.iter();
    attributes.any(|attribute| attribute.path().is_ident("cfg"))
}

fn simulated() -> impl Iterator<Item = Source> {
    rust().into_iter().filter(|source| {
        let member = source.member().unwrap_or_default();
        let inside = source.inside().unwrap_or_default();
        CRATES.contains(&member) && inside.starts_with("src/") && !inside.ends_with("tests.rs")
    })
}

#[test]
fn effects_go_through_the_environment() {
    let mut findings = Vec::new();
    let mut used = vec![false; PERMITTED.len()];
    for source in simulated() {
        for (effect, line) in effects(&source) {
            let is_it = |row: &(&str, &str, &str)| row.0 == source.path && row.1 == effect;
            match PERMITTED.iter().position(is_it) {
                Some(row) => used[row] = true,
                None => findings.push(Finding::new(
                    source.line(line),
                    format!("{effect} in a crate that runs in a simulation"),
                    "use serve::environment, tokio's clock or Background, or list the file in seam.rs",
                )),
            }
        }
    }
    expect_none(&findings);
    for ((path, effect, _), used) in PERMITTED.iter().zip(used) {
        assert!(
            used,
            "{path} no longer has {effect}: remove the row from seam.rs"
        );
    }
}
