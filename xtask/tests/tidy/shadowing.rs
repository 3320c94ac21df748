//! A block binds a name twice at most: a value and its final form.
//!
//! In a longer chain, the meaning of the name depends on the line. Each step gets a name of its own, or the steps become
//! one expression. Sections of a test with the same names become tests or functions of their own.

use std::collections::BTreeMap;

use syn::visit::Visit;

use crate::files::rust;
use crate::{Finding, expect_none};

/// Maximum number of `let` statements with the same name in one block.
const BINDINGS: usize = 2;

/// The bindings above the limit: line and name.
#[derive(Default)]
struct Chains(Vec<(usize, String)>);

impl<'ast> Visit<'ast> for Chains {
    fn visit_block(&mut self, block: &'ast syn::Block) {
        let mut bindings = BTreeMap::<String, usize>::new();
        for statement in &block.stmts {
            let syn::Stmt::Local(local) = statement else {
                continue;
            };
            let pattern = match &local.pat {
                syn::Pat::Type(typed) => &*typed.pat,
                pattern => pattern,
            };
            if let syn::Pat::Ident(pattern) = pattern {
                let count = bindings.entry(pattern.ident.to_string()).or_default();
                *count += 1;
                if *count == BINDINGS + 1 {
                    let line = pattern.ident.span().start().line;
                    self.0.push((line, pattern.ident.to_string()));
                }
            }
        }
        syn::visit::visit_block(self, block);
    }
}

/// The chains of a file.
fn chains(file: &syn::File) -> Vec<(usize, String)> {
    let mut chains = Chains::default();
    chains.visit_file(file);
    chains.0
}

#[test]
fn a_block_binds_a_name_twice_at_most() {
    let mut findings = Vec::new();
    for source in rust() {
        for (line, name) in chains(&source.parsed()) {
            findings.push(Finding::new(
                source.line(line),
                format!("{name} is bound more than {BINDINGS} times in its block"),
                "name each step by its content, or divide the function",
            ));
        }
    }
    expect_none(&findings);
}

#[test]
fn chains_are_counted_by_block() {
    let file = syn::parse_file(
        "fn f() { let a = 1; let a: u8 = a; { let a = a; }\nlet mut a = a; let a = a; let (a, b) = (a, a); }",
    );
    assert_eq!(chains(&file.expect("valid Rust")), [(2, "a".to_owned())]);
}
