//! Doc comments open with a noun phrase or a verb, not with a question word.

use crate::comments::{Doc, Parts};
use crate::files::rust;
use crate::ratchet::{Found, held};
use crate::{Finding, expect_none};

/// First words of indirect questions.
const QUESTIONS: &[&str] = &[
    "what", "how", "whether", "who", "whom", "whose", "when", "where", "which",
];

/// Permitted share of the doc comments of a crate.
const SHARE: f64 = 0.01;

/// Help texts of the command line. Users know them, so they are counted apart.
const HELP: &str = "posthaste's help";
const COMMANDS: &str = "crates/posthaste/src/commands";

/// Numbers above the share.
const RATCHETS: &[(&str, usize)] = &[];

/// The question word at the beginning of a doc comment.
fn question(doc: &Doc) -> Option<&'static str> {
    let text = doc
        .lines
        .iter()
        .map(|line| line.trim())
        .find(|line| !line.is_empty())?;
    let first = text
        .split(|character: char| !character.is_alphabetic())
        .next()?;
    let first = first.to_lowercase();
    QUESTIONS.iter().find(|word| **word == first).copied()
}

/// True if this number is above the permitted share.
fn is_above(questions: usize, docs: usize) -> bool {
    questions as f64 > SHARE * docs as f64
}

#[test]
fn doc_comments_open_with_a_statement() {
    let mut found = Found::new();
    let mut docs = std::collections::BTreeMap::<String, usize>::new();
    for source in rust() {
        let key = match source.member() {
            _ if source.path.starts_with(COMMANDS) => HELP,
            Some(member) => member,
            None => continue,
        };
        for doc in Parts::from_text(&source.text).docs() {
            *docs.entry(key.to_owned()).or_default() += 1;
            if let Some(word) = question(&doc) {
                found.entry(key.to_owned()).or_default().push(Finding::new(
                    source.line(doc.line),
                    format!("the doc comment opens with \"{word}\""),
                    "open with a noun phrase or a verb: \"Requests in flight.\", \"Returns the next departure.\"",
                ));
            }
        }
    }
    found.retain(|key, places| key == HELP || is_above(places.len(), docs[key]));
    expect_none(&held(found, RATCHETS, file!()));
}

#[test]
fn questions_are_seen_at_the_beginning_only() {
    let first = |text: &str| question(&Parts::from_text(text).docs()[0]);
    assert_eq!(first("/// What all loops share."), Some("what"));
    assert_eq!(first("//!\n//! When's the next departure."), Some("when"));
    assert_eq!(first("/// State that shows what is shared."), None);
    assert_eq!(first("/// Whatever remains."), None);
    assert_eq!(first("/// `where` clauses."), None);
    assert_eq!(first("///\n///"), None);
}

#[test]
fn one_in_a_hundred_is_permitted() {
    assert!(!is_above(1, 100));
    assert!(is_above(2, 199));
    assert!(is_above(1, 50));
    assert!(!is_above(0, 0));
}
