//! Texts of the program say what happened in the terms of the field.
//!
//! Texts are string literals of several words outside of tests: errors, help, output, reports. The words below are
//! habits of [the style](../../../docs/contributing/style.md): each has a plain word that says more.

use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::files::{Source, rust};
use crate::{Finding, expect_none};

/// Minimum number of words in a text. Shorter literals are keys and values.
const LEAST_WORDS: usize = 3;

/// Literals that are keys, with the reason.
const KEYS: &[(&str, &str)] = &[
    ("asked of a database", "a design in records of earlier runs"),
    (
        "fetches beside each load",
        "a parameter in records of earlier runs",
    ),
    (
        "which type is asked for",
        "a random stream: another name would change the results",
    ),
];

/// The folder whose doc comments are the help of the command line.
const HELP: &str = "crates/posthaste/src/commands";

/// Files with texts in another voice, with the reason.
const OTHER_VOICES: &[(&str, &str)] = &[
    (
        "crates/lab/bookshop/src/text.rs",
        "sentences of invented books",
    ),
    (
        "crates/lab/bookshop/src/vocabulary.rs",
        "words of invented books",
    ),
];

/// Words, and better ones.
const HABITS: &[(&str, &str)] = &[
    ("anew", "again"),
    ("anybody", "any client, any process"),
    ("asked", "requested"),
    ("beside", "next to, in addition to, compared with"),
    ("dear", "expensive"),
    ("nobody", "no client, no process"),
    ("said", "reported, stated"),
    ("says", "reports, states"),
    ("stands", "is"),
    ("tells", "reports, states"),
    ("told", "reported, configured"),
    ("want", "expected"),
    ("wants", "needs, expects"),
    ("whoever", "any client that, any process that"),
    ("whom", "name the receiver"),
    ("at hand", "available"),
    ("goes on", "continues"),
    ("left out", "omitted"),
    ("let in", "admitted"),
    ("makes no sense", "is invalid"),
    ("no longer", "state what ended"),
    ("of which none", "none of them"),
    ("once more", "again"),
    ("so many", "that many"),
    ("turned away", "rejected"),
];

/// A text in the source.
struct SourceText {
    line: usize,
    /// The last line of a doc comment, which is one literal per line.
    last_doc_line: Option<usize>,
    content: String,
}

/// Texts of a file outside of tests.
fn texts(source: &Source) -> Vec<SourceText> {
    let tokens = TokenStream::from_str(&source.text)
        .unwrap_or_else(|error| panic!("{}: {error}", source.path));
    let mut texts = Vec::new();
    collect(tokens, source.path.starts_with(HELP), &mut texts);
    texts
}

/// Adds the literals of `tokens`; with `help`, doc comments too.
fn collect(tokens: TokenStream, help: bool, texts: &mut Vec<SourceText>) {
    let mut is_test = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) if is_test && group.delimiter() == Delimiter::Brace => {
                is_test = false
            }
            TokenTree::Group(group) if !help && is_doc(&group.stream()) => {}
            TokenTree::Group(group) if is_doc(&group.stream()) => add_doc(group.stream(), texts),
            TokenTree::Group(group) => {
                is_test |=
                    group.delimiter() == Delimiter::Bracket && is_test_attribute(&group.stream());
                collect(group.stream(), help, texts);
            }
            TokenTree::Literal(literal) => {
                let line = literal.span().start().line;
                if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                    texts.push(SourceText {
                        line,
                        last_doc_line: None,
                        content: text.value(),
                    });
                }
            }
            // An item without a body, such as `mod tests;`.
            TokenTree::Punct(mark) if mark.as_char() == ';' => is_test = false,
            _ => {}
        }
    }
}

/// Adds a line of a doc comment, to the line before it if there is one.
fn add_doc(attribute: TokenStream, texts: &mut Vec<SourceText>) {
    let mut lines = Vec::new();
    collect(attribute.into_iter().skip(2).collect(), false, &mut lines);
    for SourceText { line, content, .. } in lines {
        match texts.last_mut() {
            Some(text) if text.last_doc_line == Some(line - 1) => {
                text.content.push_str(&content);
                text.last_doc_line = Some(line);
            }
            _ => texts.push(SourceText {
                line,
                last_doc_line: Some(line),
                content,
            }),
        }
    }
}

/// True for the content of a doc comment's attribute.
fn is_doc(tokens: &TokenStream) -> bool {
    let first = tokens.clone().into_iter().next();
    matches!(first, Some(TokenTree::Ident(name)) if name == "doc")
}

/// True for the content of `#[test]` and `#[cfg(test)]`.
fn is_test_attribute(tokens: &TokenStream) -> bool {
    let text: String = tokens.to_string().split_whitespace().collect();
    text == "test" || text == "cfg(test)" || text.ends_with("::test")
}

/// The habits in a text, as whole words.
fn habits(text: &str) -> Vec<(&'static str, &'static str)> {
    let is_key = KEYS.iter().any(|(key, _)| *key == text);
    if is_key || text.split_whitespace().count() < LEAST_WORDS {
        return Vec::new();
    }
    let text = text.to_lowercase();
    let is_whole = |at: usize, word: &str| {
        let is_part =
            |character: char| character.is_alphanumeric() || "_-{.\"`'".contains(character);
        !text[..at].ends_with(is_part)
            && !text[at + word.len()..].starts_with(|character: char| {
                character.is_alphanumeric() || "_-`\"".contains(character)
            })
    };
    let has = |word: &str| text.match_indices(word).any(|(at, _)| is_whole(at, word));
    HABITS
        .iter()
        .copied()
        .filter(|(word, _)| has(word))
        .collect()
}

#[test]
fn texts_use_plain_words() {
    let mut findings = Vec::new();
    for source in rust() {
        let is_test = source.path.contains("/tests/") || source.path.ends_with("tests.rs");
        let is_other = OTHER_VOICES.iter().any(|(path, _)| *path == source.path);
        if is_test || is_other || source.member().is_none() {
            continue;
        }
        for text in texts(&source) {
            for (word, instead) in habits(&text.content) {
                findings.push(Finding::new(
                    source.line(text.line),
                    format!("\"{word}\" in the text {:?}", text.content),
                    format!("write {instead}, or rephrase"),
                ));
            }
        }
    }
    expect_none(&findings);
}

#[test]
fn habits_are_whole_words_of_texts() {
    assert_eq!(habits("nobody has this token").len(), 1);
    assert_eq!(habits("the broker said: {reason}").len(), 1);
    assert!(habits("unknown token, wanted").is_empty());
    assert!(habits("said so").is_empty(), "a key");
    assert!(
        habits("write {said} or `told` here").is_empty(),
        "names of values"
    );
}

#[test]
fn texts_of_tests_are_not_read() {
    let source = Source {
        path: "crates/base/units/src/a.rs".to_owned(),
        text: "/// Doc.\n#[cfg(test)]\nmod tests { const A: &str = \"a\"; }\n#[cfg(test)]\nmod tests;\n\
               #[error(\"b\")]\nconst B: &str = \"c\";\n#[test]\nfn d() { f(\"d\"); }\nfn e() { format!(\"e\"); }\n"
            .to_owned(),
    };
    let found: Vec<String> = texts(&source)
        .into_iter()
        .map(|text| text.content)
        .collect();
    assert_eq!(found, ["b", "c", "e"]);
}

#[test]
fn help_is_read_across_lines() {
    let source = Source {
        path: format!("{HELP}/a.rs"),
        text: "/// It is sent once\n/// more.\n///\n/// B.\nstruct A {\n/// C.\n b: u8 }\n"
            .to_owned(),
    };
    let found: Vec<String> = texts(&source)
        .into_iter()
        .map(|text| text.content)
        .collect();
    assert_eq!(found, [" It is sent once more. B.", " C."]);
    assert_eq!(habits(&found[0]).len(), 1);
}
