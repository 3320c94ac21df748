//! Sentences of doc comments are direct: few of who, whom, which and what.

use std::collections::BTreeMap;

use crate::comments::{CommentKind, Parts};
use crate::documents::{SHARE, indirect};
use crate::files::rust;
use crate::ratchet::{Found, held};
use crate::{Finding, expect_none};

/// Numbers of crates above the share.
const RATCHETS: &[(&str, usize)] = &[];

/// Lines of documentation with words of indirect sentences and with all words. Fenced code is omitted.
fn counted(parts: &Parts) -> Vec<(usize, usize, usize)> {
    let docs = parts.prose().into_iter();
    docs.filter(|comment| comment.kind != CommentKind::Plain)
        .map(|comment| {
            let (these, all) = indirect(&comment.text);
            (comment.line, these, all)
        })
        .collect()
}

/// True if this number is above the permitted share.
fn is_above(these: usize, all: usize) -> bool {
    these as f64 > SHARE * all as f64
}

#[test]
fn doc_comments_are_direct() {
    let mut found = Found::new();
    let mut totals = BTreeMap::<String, usize>::new();
    for source in rust() {
        let Some(member) = source.member() else {
            continue;
        };
        for (line, these, all) in counted(&Parts::from_text(&source.text)) {
            *totals.entry(member.to_owned()).or_default() += all;
            let finding = |_| {
                Finding::new(
                    source.line(line),
                    "one of who, whom, which and what",
                    "write subject, verb, object: \"State shared by all event loops of a run\"",
                )
            };
            let places = found.entry(member.to_owned()).or_default();
            places.extend((0..these).map(finding));
        }
    }
    found.retain(|member, places| is_above(places.len(), totals[member]));
    expect_none(&held(found, RATCHETS, file!()));
}

#[test]
fn words_of_documentation_are_counted() {
    let text = "/// Shows which.\n/// ```\n/// what();\n/// ```\n// Who is no documentation.\nlet a = \"/// who\";";
    assert_eq!(counted(&Parts::from_text(text)), [(1, 1, 2)]);
}

#[test]
fn eight_in_a_thousand_are_permitted() {
    assert!(!is_above(8, 1000));
    assert!(is_above(9, 1000));
    assert!(!is_above(0, 0));
}
