//! Names that nobody would search for, and functions whose parameters are tuples.
//!
//! A name is found by the word for its meaning: `Histogram::from_samples`, `message`, `violation`. The names below say
//! nothing of theirs.

use syn::visit::Visit;

use crate::files::rust;
use crate::{Finding, expect_none};

/// Names of functions, variables, fields and modules that are not used, with better ones.
const BANNED: &[(&str, &str)] = &[
    (
        "of",
        "a constructor says from which value: `from_samples`, `for_plan`",
    ),
    (
        "told",
        "use the name of the value, as in `notice` or `reported`",
    ),
    (
        "said",
        "use the name of the value, as in `message` or `output`",
    ),
    (
        "asked",
        "use the name of the value, as in `request` or `requested`",
    ),
    (
        "words",
        "use the name of the value, as in `message`, `options` or `fields`",
    ),
    (
        "place",
        "use the name of the value, as in `location`, `position` or `path`",
    ),
    (
        "turn",
        "use the name of the value, as in `next` or `rotation`",
    ),
    (
        "what",
        "use the name of the value, as in `subject` or `violation`",
    ),
];

/// Definitions of banned names, and destructured tuples as parameters.
#[derive(Default)]
struct NamesFound {
    /// Line and name.
    banned: Vec<(usize, String)>,
    /// Lines.
    tuples: Vec<usize>,
}

impl NamesFound {
    fn check(&mut self, ident: &syn::Ident) {
        let name = ident.to_string();
        if BANNED.iter().any(|(banned, _)| *banned == name) {
            self.banned.push((ident.span().start().line, name));
        }
    }
}

impl<'ast> Visit<'ast> for NamesFound {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.check(&signature.ident);
        for input in &signature.inputs {
            if let syn::FnArg::Typed(input) = input
                && let syn::Pat::Tuple(_) = &*input.pat
            {
                self.tuples.push(signature.ident.span().start().line);
            }
        }
        syn::visit::visit_signature(self, signature);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.check(&pattern.ident);
        syn::visit::visit_pat_ident(self, pattern);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(ident) = &field.ident {
            self.check(ident);
        }
        syn::visit::visit_field(self, field);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.check(&item.ident);
        syn::visit::visit_item_mod(self, item);
    }
}

/// The names in a file.
fn names(file: &syn::File) -> NamesFound {
    let mut names = NamesFound::default();
    names.visit_file(file);
    names
}

#[test]
fn names_can_be_searched_for() {
    let mut findings = Vec::new();
    for source in rust() {
        let found = names(&source.parsed());
        for (line, name) in found.banned {
            let (_, remedy) = BANNED
                .iter()
                .find(|(banned, _)| *banned == name)
                .expect("a banned name");
            let violation = format!("the name {name}");
            findings.push(Finding::new(source.line(line), violation, *remedy));
        }
        findings.extend(found.tuples.into_iter().map(|line| {
            Finding::new(
                source.line(line),
                "a destructured tuple as a parameter",
                "pass its parts by name, or a struct",
            )
        }));
    }
    expect_none(&findings);
}

#[test]
fn definitions_are_found_and_uses_are_not() {
    let file = syn::parse_file(
        "mod turn { struct A { what: u8, kind: u8 } }\nfn of(said: u8, (a, b): (u8, u8)) {\n\
         let (x, words) = x.what;\nif let Some(place) = told() { f(|asked| asked) } }",
    )
    .expect("valid Rust");
    let found = names(&file);
    let banned: Vec<(usize, &str)> = found
        .banned
        .iter()
        .map(|(line, name)| (*line, name.as_str()))
        .collect();
    let expected = [
        (1, "turn"),
        (1, "what"),
        (2, "of"),
        (2, "said"),
        (3, "words"),
        (4, "place"),
        (4, "asked"),
    ];
    assert_eq!(banned, expected);
    assert_eq!(found.tuples, [2]);
}
