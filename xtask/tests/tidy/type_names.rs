//! A type name has at most two meanings in the workspace, so that a search for it is of use.

use crate::comments::{Parts, is_name_part};
use crate::files::rust;
use crate::ratchet::{Found, held};
use crate::{Finding, expect_none};

/// Permitted number of definitions of one name.
const MEANINGS: usize = 2;

/// Names of siblings that share a shape, with the shape.
const SIBLINGS: &[(&str, &str)] = &[("Args", "arguments of one command, for clap")];

/// Numbers of names above that.
const RATCHETS: &[(&str, usize)] = &[];

/// Definitions of structs and enums: line and name.
fn defined(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut last = "";
    for (number, line) in (1..).zip(code.lines()) {
        let names = line.split(|character| !is_name_part(character));
        for word in names.filter(|word| !word.is_empty()) {
            if last == "struct" || last == "enum" {
                found.push((number, word));
            }
            last = word;
        }
    }
    found
}

#[test]
fn a_type_name_has_two_meanings_at_most() {
    let mut found = Found::new();
    for source in rust() {
        if source.member().is_none() {
            continue;
        }
        for (line, name) in defined(&Parts::from_text(&source.text).code) {
            found.entry(name.to_owned()).or_default().push(Finding::new(
                source.line(line),
                format!("one of many types of the name {name}"),
                "name the thing with its kind, as in `UpstreamConnection`",
            ));
        }
    }
    for (name, _) in SIBLINGS {
        let count = found.remove(*name).map_or(0, |places| places.len());
        assert!(
            count > MEANINGS,
            "{name} has {count} definitions: remove it from SIBLINGS"
        );
    }
    found.retain(|_, places| places.len() > MEANINGS);
    expect_none(&held(found, RATCHETS, file!()));
}

#[test]
fn definitions_are_seen_and_uses_are_not() {
    let code = Parts::from_text(
        "pub(crate) struct Line<'a>(&'a str);\n/// A struct Comment.\nenum\n Kind { Line }\nfn f(l: Line) -> Kind {}\n\
         const A: &str = \"struct Text\"; impl Line<'_> {}",
    )
    .code;
    assert_eq!(defined(&code), [(1, "Line"), (4, "Kind")]);
}
