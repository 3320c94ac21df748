//! A test name is a short statement, so that a list of failures reads as a report.
//!
//! Names come from functions with an attribute `test`, from lists of tests for all stores, and from calls of `trial`
//! with a name. Review checks that the statement is true.

use crate::comments::{Parts, is_name_part};
use crate::files::rust;
use crate::{Finding, expect_none};

/// Maximum length of a name, in characters. Longer ones are several statements.
const LONGEST: usize = 60;

/// First words of questions. Such a name has a clause in place of its subject.
const QUESTIONS: &[&str] = &[
    "what", "who", "whom", "whose", "which", "where", "how", "whether",
];

/// The macro with a list of tests that run with every kind of store.
const FOR_ALL_STORES: &str = "over_all_stores!";

/// The function that makes a test of a binary without the usual harness, split so that this file does not call it.
const TRIAL: &str = concat!("tri", "al(");

/// A test by its line and name.
type Named = (usize, String);

/// The line of a byte, counted from one.
fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

/// The name at the start of `text`.
fn name_at(text: &str) -> &str {
    text.split(|character| !is_name_part(character))
        .next()
        .unwrap_or_default()
}

/// Functions with an attribute `test` of any crate.
fn functions(code: &str) -> Vec<Named> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("#[") {
        let attribute = &code[at + 2..];
        let path = attribute
            .split(['(', ']'])
            .next()
            .unwrap_or_default()
            .trim();
        if path.rsplit("::").next() != Some("test") {
            continue;
        }
        // No word ends in `fn` but itself.
        if let Some(function) = attribute.find("fn ") {
            let name = at + 2 + function + 3;
            found.push((line_of(code, name), name_at(&code[name..]).to_owned()));
        }
    }
    found
}

/// Tests in lists for all stores.
fn for_all_stores(code: &str) -> Vec<Named> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(FOR_ALL_STORES) {
        let from = at + FOR_ALL_STORES.len();
        let list = code[from..].split('}').next().unwrap_or_default();
        let mut offset = from;
        for part in list.split_inclusive(|character| !is_name_part(character)) {
            let name = name_at(part);
            if !name.is_empty() {
                found.push((line_of(code, offset), name.to_owned()));
            }
            offset += part.len();
        }
    }
    found
}

/// Calls with a name in quotes. Their names are in strings, so the whole text is searched.
fn trials(text: &str) -> Vec<Named> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(TRIAL) {
        let rest = text[at + TRIAL.len()..].trim_start();
        if let Some(name) = rest.strip_prefix('"') {
            found.push((line_of(text, text.len() - name.len()), name_at(name).into()));
        }
    }
    found
}

/// All tests of a file.
fn tests(text: &str) -> Vec<Named> {
    let code = Parts::from_text(text).code;
    [functions(&code), for_all_stores(&code), trials(text)].concat()
}

/// The violation of a name with its remedy.
fn fault(name: &str) -> Option<(String, String)> {
    let length = name.chars().count();
    if length > LONGEST {
        let violation = format!("the test {name} has a name of {length} characters");
        let remedy = format!("state the behaviour in at most {LONGEST}: subject, verb, object");
        return Some((violation, remedy));
    }
    let (first, _) = name.split_once('_')?;
    QUESTIONS.contains(&first).then(|| {
        let violation = format!("the name of the test {name} begins with {first}");
        let remedy = "begin with the subject, as in `processes_left_by_a_command_are_ended`";
        (violation, remedy.to_owned())
    })
}

#[test]
fn test_names_are_short_and_open_with_a_subject() {
    let mut findings = Vec::new();
    for source in rust() {
        for (line, name) in tests(&source.text) {
            if let Some((violation, remedy)) = fault(&name) {
                findings.push(Finding::new(source.line(line), violation, remedy));
            }
        }
    }
    expect_none(&findings);
}

#[test]
fn tests_are_found_and_other_functions_are_not() {
    let text = "#[cfg(test)]\nmod tests {\nfn helper() {}\n\
         #[test]\n#[should_panic(expected = \"fn two\")]\nfn one() {}\n\
         // #[test] fn comment() {}\n#[tokio::test(flavor = \"current_thread\")]\nasync fn two() {}\n}\n\
         over_all_stores! {\n    three,\n    four,\n}\n";
    let text = format!("{text}{TRIAL}\n    \"five\",\n    work,\n);\n{TRIAL}name, work);\n");
    let expected = [
        (6, "one"),
        (9, "two"),
        (12, "three"),
        (13, "four"),
        (16, "five"),
    ]
    .map(|(line, name)| (line, name.to_owned()));
    assert_eq!(tests(&text), expected);
}

#[test]
fn long_names_and_questions_are_faults() {
    assert_eq!(fault(&"a".repeat(LONGEST)), None);
    assert!(fault(&"a".repeat(LONGEST + 1)).is_some_and(|(violation, _)| violation.contains("61")));
    let (violation, remedy) = fault("what_is_left_is_ended").expect("a question");
    assert!(
        violation.contains("what_is_left_is_ended begins with what"),
        "{violation}"
    );
    assert!(remedy.contains("the subject"), "{remedy}");
    for name in [
        "whatever_is_left_is_ended",
        "however",
        "how",
        "nothing_is_where_it_was",
    ] {
        assert_eq!(fault(name), None, "{name}");
    }
}
