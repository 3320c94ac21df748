//! Files open with their purpose, stay short, and contain nothing unfinished or specific to one machine.

use crate::files::{Source, root, rust, tracked};
use crate::{Finding, expect_none};

/// Maximum length of a file, in lines.
const FILE: usize = 600;
/// Maximum length of the README, in lines.
const README: usize = 120;
/// Last README line at which the first command may appear.
const FIRST_COMMAND: usize = 25;

/// Words of unfinished work, split in two so that this file does not find itself.
const UNFINISHED: &[(&str, &str)] = &[
    (concat!("to", "do!"), "write it, or leave it out"),
    (concat!("unimple", "mented!"), "write it, or leave it out"),
    (
        concat!("FIX", "ME"),
        "fix it, or write down what holds instead",
    ),
    (
        concat!("#[ig", "nore"),
        "mend the test, or remove it; a test without its peer: `= \"needs PEER: COMMAND runs it\"`",
    ),
    (
        concat!("allow(cl", "ippy"),
        "do what clippy asks, or change the lint for everybody",
    ),
    (concat!("allow(dead", "_code"), "remove what nobody uses"),
];

/// An ignored test that has a reason: its peer is absent in most runs.
const NEEDS: &str = concat!("#[ig", "nore = \"needs ");

/// Paths that are valid on one machine only.
const MACHINE: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/fa", "rm/"),
];

#[test]
fn every_file_opens_with_what_it_is() {
    let findings: Vec<Finding> = rust()
        .iter()
        .filter(|source| !source.text.starts_with("//! "))
        .map(|source| {
            Finding::new(
                source.line(1),
                "the file does not say what it is",
                "open it with `//!`: what it is, what it leaves to others, why this shape",
            )
        })
        .collect();
    expect_none(&findings);
}

#[test]
fn files_stay_short() {
    let findings: Vec<Finding> = rust()
        .iter()
        .filter(|source| source.lines().count() > FILE)
        .map(|source| {
            let lines = source.lines().count();
            Finding::new(
                &source.path,
                format!("{lines} lines"),
                format!("keep it under {FILE}: one idea per file"),
            )
        })
        .collect();
    expect_none(&findings);
}

#[test]
fn nothing_is_unfinished() {
    let mut findings = Vec::new();
    for source in rust() {
        for (word, remedy) in UNFINISHED {
            let lines = source.lines();
            let unfinished = lines.filter(|(_, line)| line.contains(word) && !line.contains(NEEDS));
            findings.extend(
                unfinished.map(|(line, _)| Finding::new(source.line(line), *word, *remedy)),
            );
        }
    }
    expect_none(&findings);
}

#[test]
fn no_path_of_one_machine() {
    let mut findings = Vec::new();
    for source in tracked() {
        for path in MACHINE {
            findings.extend(places(&source, path).map(|location| {
                Finding::new(
                    location,
                    format!("names {path}"),
                    "say it relative to the checkout",
                )
            }));
        }
    }
    expect_none(&findings);
}

#[test]
fn the_readme_is_one_screen_and_starts_with_a_command() {
    let Ok(text) = std::fs::read_to_string(root().join("README.md")) else {
        return;
    };
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > README {
        findings.push(Finding::new(
            "README.md",
            format!("{lines} lines"),
            format!("keep it under {README}: the rest belongs into docs/"),
        ));
    }
    if !text
        .lines()
        .take(FIRST_COMMAND)
        .any(|line| line.starts_with("```"))
    {
        findings.push(Finding::new(
            format!("README.md:{FIRST_COMMAND}"),
            "no command yet",
            "show the first one earlier, in a fenced block",
        ));
    }
    expect_none(&findings);
}

/// Builds the binary and compares its help and its list of figures with the generated pages.
#[test]
fn generated_docs_are_fresh() {
    let check = std::process::Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["docs", "--check"])
        .output()
        .expect("xtask starts");
    assert!(
        check.status.success(),
        "{}",
        String::from_utf8_lossy(&check.stderr)
    );
}

/// Each file of one figure has a line in FIGURES. The compiler finds unlisted figures of the other files.
#[test]
fn every_figure_file_is_listed() {
    let sources = rust();
    let list: Vec<&Source> = sources
        .iter()
        .filter(|source| source.crate_name() == Some("papers"))
        .filter(|source| source.text.contains(" FIGURES:"))
        .collect();
    let findings: Vec<Finding> = sources
        .iter()
        .filter_map(|source| Some((source, figure(&source.path)?)))
        .filter(|(_, figure)| !list.iter().any(|list| list.text.contains(figure)))
        .map(|(source, figure)| {
            Finding::new(
                &source.path,
                format!("{figure} is not in FIGURES"),
                "give it a line there",
            )
        })
        .collect();
    expect_none(&findings);
}

/// `crates/lab/papers/src/overload/fig_05.rs` as `overload::fig_05`.
fn figure(path: &str) -> Option<String> {
    let inside = path
        .strip_prefix("crates/lab/papers/src/")?
        .strip_suffix(".rs")?;
    let (paper, file) = inside.split_once('/')?;
    (file.starts_with("fig_") || file.starts_with("table_")).then(|| format!("{paper}::{file}"))
}

/// Positions of a word in a file.
fn places<'a>(source: &'a Source, word: &'a str) -> impl Iterator<Item = String> + 'a {
    source
        .lines()
        .filter(move |(_, line)| line.contains(word))
        .map(|(number, _)| source.line(number))
}
