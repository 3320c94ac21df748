//! Markdown: links lead somewhere, lines are short, and the language is plain.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::files::{Source, root, tracked};
use crate::{Finding, expect_none};

/// Maximum length of a line, in characters. Rows of tables and lines with one long address are exempt.
const LINE: usize = 120;

/// Words of indirect sentences, and their maximum share of all words.
const INDIRECT: &[&str] = &["who", "whom", "which", "what"];
pub(crate) const SHARE: f64 = 0.008;

/// Pages that programs write.
const EXEMPT: &[&str] = &[
    "docs/benchmarks.md",
    "docs/papers/figures.md",
    "docs/papers/predictions.md",
    "docs/reference/cli.md",
];

/// Pages outside `docs/`.
const OUTSIDE: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "conformance/README.md",
    "fuzz/README.md",
];

/// Descriptions of peer tests and benchmarks, which `cargo xtask` prints: a file, and the text before each of them.
const DESCRIPTIONS: &[(&str, &str)] = &[
    ("conformance/peers.txt", ""),
    ("conformance/src/bench/list.rs", "about: \""),
];

fn documents() -> Vec<Source> {
    let all = tracked().into_iter();
    all.filter(|source| source.path.ends_with(".md")).collect()
}

/// Pages for users and contributors.
fn pages() -> Vec<Source> {
    let is_page = |source: &Source| {
        (OUTSIDE.contains(&&*source.path) || source.path.starts_with("docs/"))
            && !EXEMPT.contains(&&*source.path)
    };
    documents().into_iter().filter(is_page).collect()
}

/// Lines outside fenced code, with their numbers.
fn prose(source: &Source) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (number, line) in source.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            lines.push((number, line));
        }
    }
    lines
}

/// Targets of links in a line: the text between `](` and `)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
}

/// The anchor that renderers give a heading.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .chars()
        .filter_map(|character| match character {
            ' ' => Some('-'),
            '-' | '_' => Some(character),
            character if character.is_alphanumeric() => Some(character.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}

fn anchors(path: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(anchor).collect()
}

/// A path without `..` and `.`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Numbers of words of indirect sentences, and of all words.
pub(crate) fn indirect(text: &str) -> (usize, usize) {
    let tokens: Vec<String> = text
        .split(|character: char| !character.is_alphabetic())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let is_indirect = |word: &&String| INDIRECT.contains(&&***word);
    (tokens.iter().filter(is_indirect).count(), tokens.len())
}

#[test]
fn links_lead_somewhere() {
    let mut findings = Vec::new();
    for source in documents() {
        let file = root().join(&source.path);
        for (number, line) in prose(&source) {
            for target in targets(line).filter(|target| !target.contains("://")) {
                let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
                let there = match path {
                    "" => file.clone(),
                    path => plain(&file.parent().unwrap().join(path)),
                };
                let is_there = there.exists()
                    && (anchor.is_empty()
                        || there.extension().is_none_or(|ending| ending != "md")
                        || anchors(&there).contains(anchor));
                if !is_there {
                    findings.push(Finding::new(
                        source.line(number),
                        format!("the link to {target} leads nowhere"),
                        "name a file of the checkout, and a heading in it",
                    ));
                }
            }
        }
    }
    expect_none(&findings);
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let contents = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed: BTreeSet<&str> = contents.lines().flat_map(targets).collect();
    let findings: Vec<Finding> = documents()
        .iter()
        .filter_map(|source| source.path.strip_prefix("docs/"))
        .filter(|path| *path != "SUMMARY.md" && !listed.contains(path))
        .map(|path| {
            let location = format!("docs/{path}");
            Finding::new(
                location,
                "no reader finds this page",
                "list it in docs/SUMMARY.md",
            )
        })
        .collect();
    expect_none(&findings);
}

#[test]
fn lines_are_short() {
    let mut findings = Vec::new();
    for source in documents() {
        if EXEMPT.contains(&&*source.path) {
            continue;
        }
        for (number, line) in prose(&source) {
            let is_exempt = line.starts_with('|') || !line.trim().contains(' ');
            if line.chars().count() > LINE && !is_exempt {
                findings.push(Finding::new(
                    source.line(number),
                    format!("the line has {} characters", line.chars().count()),
                    format!("break it at {LINE}"),
                ));
            }
        }
    }
    expect_none(&findings);
}

#[test]
fn descriptions_ask_no_questions() {
    let all = tracked();
    let mut findings = Vec::new();
    for (path, before) in DESCRIPTIONS {
        let source = all.iter().find(|source| source.path == *path);
        let source = source.expect("a tracked file");
        let mut descriptions = 0;
        for (number, line) in source.lines() {
            let Some((_, description)) = line.split_once(before) else {
                continue;
            };
            descriptions += 1;
            if indirect(description).0 > 0 || has_question(description) {
                findings.push(Finding::new(
                    source.line(number),
                    "the description is a question",
                    "name the subject and its property: \"CPU time per request, compared with wrk\"",
                ));
            }
        }
        assert!(
            descriptions > 0,
            "{path} has no description after {before:?}"
        );
    }
    expect_none(&findings);
}

/// True for a description with `how` or `whether`.
fn has_question(description: &str) -> bool {
    let mut parts = description.split(|character: char| !character.is_alphabetic());
    parts.any(|word| ["how", "whether"].contains(&word.to_lowercase().as_str()))
}

#[test]
fn questions_are_found_as_words() {
    assert!(has_question("packets, and how they arrive"));
    assert!(!has_question("whatever shows the packets"));
}

#[test]
fn sentences_are_direct() {
    let mut findings = Vec::new();
    for source in pages() {
        let text: String = prose(&source)
            .iter()
            .flat_map(|(_, line)| [line, " "])
            .collect();
        let (these, all) = indirect(&text);
        if these as f64 > SHARE * all as f64 {
            findings.push(Finding::new(
                source.path,
                format!("{these} of {all} words are who, whom, which or what"),
                "write subject, verb, object: \"Compressed responses get a weak ETag\"",
            ));
        }
    }
    expect_none(&findings);
}

#[test]
fn words_of_indirect_sentences_are_counted() {
    assert_eq!(indirect("What it does, and for whom: whatever."), (2, 7));
    assert_eq!(indirect("Compressed replies get a weak `ETag`."), (0, 6));
}
