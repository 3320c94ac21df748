//! Pure crates name no clock, socket, file, thread or async, so that a seed repeats them exactly.
//!
//! Paths are read from the syntax tree, with `use` groups unfolded. Contents of macro calls are not read. rustfmt does
//! not read them either, and no macro of ours hides a path. `EXCEPTIONS` lists the files that may name one of them.

use syn::spanned::Spanned;
use syn::visit::Visit;

use crate::files::rust;
use crate::layers::{CrateKind, crate_rule};
use crate::{Finding, expect_none};

/// Beginnings of paths that a pure crate must not use.
const IMPURE: &[&str] = &[
    "std::env",
    "std::fs",
    "std::io::stderr",
    "std::io::stdin",
    "std::io::stdout",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
];

/// Files that may name one of them, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    // quinn-proto takes instants of the standard library as arguments. This file converts virtual time to them, from an
    // arbitrary origin.
    ("crates/network/quic-sim/src/epoch.rs", "std::time::Instant"),
];

/// Addresses are numbers, regardless of their module.
const ADDRESSES: &[&str] = &[
    "std::net::IpAddr",
    "std::net::Ipv4Addr",
    "std::net::Ipv6Addr",
    "std::net::SocketAddr",
];

/// Every path and every async form in a file, with its line.
#[derive(Default)]
pub(crate) struct Names(pub(crate) Vec<(String, usize)>);

impl Names {
    fn unfold(&mut self, before: &str, tree: &syn::UseTree) {
        let join = |name: &str| {
            if before.is_empty() {
                name.into()
            } else {
                format!("{before}::{name}")
            }
        };
        match tree {
            syn::UseTree::Path(path) => self.unfold(&join(&path.ident.to_string()), &path.tree),
            syn::UseTree::Name(name) => self.note(join(&name.ident.to_string()), name),
            syn::UseTree::Rename(rename) => self.note(join(&rename.ident.to_string()), rename),
            syn::UseTree::Glob(glob) => self.note(before.to_owned(), glob),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.unfold(before, tree);
                }
            }
        }
    }

    fn note(&mut self, name: String, node: &impl Spanned) {
        self.0.push((name, node.span().start().line));
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.unfold("", &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path
            .segments
            .iter()
            .map(|part| part.ident.to_string())
            .collect();
        self.note(segments.join("::"), path);
        syn::visit::visit_path(self, path);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if signature.asyncness.is_some() {
            self.note("async".into(), signature);
        }
        syn::visit::visit_signature(self, signature);
    }

    fn visit_expr_async(&mut self, expression: &'ast syn::ExprAsync) {
        self.note("async".into(), expression);
        syn::visit::visit_expr_async(self, expression);
    }
}

/// True if a pure crate must not name this. A module imported as a whole counts as all of its content.
fn is_impure(name: &str) -> bool {
    let within = |path: &str, module: &str| {
        path == module
            || path
                .strip_prefix(module)
                .is_some_and(|rest| rest.starts_with("::"))
    };
    name == "async"
        || (!ADDRESSES.iter().any(|address| name.starts_with(address))
            && IMPURE
                .iter()
                .any(|impure| within(name, impure) || (name != "std" && within(impure, name))))
}

#[test]
fn pure_crates_name_nothing_impure() {
    let mut findings = Vec::new();
    for source in rust() {
        let pure = source
            .crate_name()
            .and_then(crate_rule)
            .is_some_and(|rule| rule.kind == CrateKind::Pure);
        if !pure || !source.path.contains("/src/") {
            continue;
        }
        let mut names = Names::default();
        names.visit_file(&source.parsed());
        let excepted = |name: &str| {
            EXCEPTIONS
                .iter()
                .any(|(path, permitted)| *path == source.path && name.starts_with(permitted))
        };
        let impure = |(name, _): &(String, usize)| is_impure(name) && !excepted(name);
        findings.extend(names.0.into_iter().filter(impure).map(|(name, line)| {
            Finding::new(
                source.line(line),
                format!("a pure crate names {name}"),
                "take the time, the bytes or the address as an argument and do this in a shell crate",
            )
        }));
    }
    expect_none(&findings);
}

#[test]
fn each_exception_is_used() {
    for (path, permitted) in EXCEPTIONS {
        let source = rust().into_iter().find(|source| source.path == *path);
        let mut names = Names::default();
        names.visit_file(&source.expect("a tracked file").parsed());
        let is_used = names.0.iter().any(|(name, _)| name.starts_with(permitted));
        assert!(is_used, "{path} no longer names {permitted}");
    }
}

#[test]
fn impurity_is_seen_through_groups_and_whole_modules() {
    let impure_in = |text: &str| {
        let mut names = Names::default();
        names.visit_file(&syn::parse_file(text).expect("Rust"));
        names
            .0
            .into_iter()
            .filter(|(name, _)| is_impure(name))
            .count()
    };
    assert_eq!(
        impure_in("use std::{collections::BTreeMap, time::{Duration, Instant}};"),
        1
    );
    assert_eq!(impure_in("use std::time;"), 1);
    assert_eq!(impure_in("fn now() { std::time::SystemTime::now(); }"), 1);
    assert_eq!(impure_in("async fn wait() {}"), 1);
    assert_eq!(
        impure_in("use std::net::SocketAddrV4; use std::time::Duration; use std::io;"),
        1
    );
    assert_eq!(impure_in("use std::fmt; fn f(a: std::net::IpAddr) {}"), 0);
}
