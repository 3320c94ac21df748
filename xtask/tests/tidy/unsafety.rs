//! `unsafe` stands only at a system call, each time with its reason.

use proc_macro2::{TokenStream, TokenTree};

use crate::files::{Source, root, rust};
use crate::{Finding, expect_none};

/// How far above `unsafe` its reason may begin: a comment of some lines and an attribute.
const REACH: usize = 8;

/// The files that may say `unsafe`, and what for.
const MAY: &[(&str, &str)] = &[(
    "crates/load/src/socket.rs",
    "TCP_INFO, which no crate wraps safely",
)];

/// The lines on which `unsafe` stands as a keyword.
fn unsafe_lines(source: &Source) -> Vec<usize> {
    fn walk(tokens: TokenStream, lines: &mut Vec<usize>) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => walk(group.stream(), lines),
                TokenTree::Ident(ident) if ident == "unsafe" => {
                    lines.push(ident.span().start().line)
                }
                _ => {}
            }
        }
    }
    let tokens: TokenStream = source
        .text
        .parse()
        .unwrap_or_else(|error| panic!("{}: {error}", source.path));
    let mut lines = Vec::new();
    walk(tokens, &mut lines);
    lines
}

#[test]
fn the_workspace_denies_unsafe() {
    let manifest =
        std::fs::read_to_string(root().join("Cargo.toml")).expect("the workspace manifest");
    let manifest: toml::Table = manifest.parse().expect("the workspace manifest is TOML");
    let lint = manifest["workspace"]["lints"]["rust"]
        .get("unsafe_code")
        .and_then(toml::Value::as_str);
    if !matches!(lint, Some("deny" | "forbid")) {
        expect_none(&[Finding::new(
            "Cargo.toml",
            "unsafe code is not denied",
            "write `unsafe_code = \"deny\"` under [workspace.lints.rust]",
        )]);
    }
}

#[test]
fn every_unsafe_has_a_place_and_a_reason() {
    let mut findings = Vec::new();
    for source in rust() {
        let lines: Vec<&str> = source.text.lines().collect();
        for line in unsafe_lines(&source) {
            if MAY.iter().all(|(path, _)| *path != source.path) {
                findings.push(Finding::new(
                    source.line(line),
                    "unsafe outside the listed files",
                    "find a safe call (rustix has most), or list the file with its reason in unsafety.rs",
                ));
            }
            let above = &lines[line.saturating_sub(1 + REACH)..line];
            if !above
                .iter()
                .any(|text| text.contains("SAFETY:") || text.contains("# Safety"))
            {
                findings.push(Finding::new(
                    source.line(line),
                    "unsafe without a reason",
                    "say above it, after `// SAFETY:`, why this is sound",
                ));
            }
        }
    }
    expect_none(&findings);
}
