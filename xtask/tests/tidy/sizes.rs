//! A struct with behaviour stays small: few fields, and few methods over all its `impl` blocks in the crate.
//!
//! A method may touch every field of its struct. Both numbers together say how much a reader has to hold at once. The
//! fields count if a method changes them (`&mut self`): a record that is only read is as long as its format.

use std::cmp::Reverse;

use syn::visit::Visit;

use crate::cycles::{Module, is_test, members};
use crate::{Finding, expect_none};

/// Maximum number of fields of a struct that changes itself.
const FIELDS: usize = 20;
/// Maximum number of functions in all `impl` blocks of a type without a trait.
const METHODS: usize = 40;

/// Records that change themselves in one way only, with the reason.
const RECORDS: &[(&str, &str)] = &[
    (
        "LoadTally",
        "the message of a loop: `merge` and `clear` name each field",
    ),
    (
        "Report",
        "the form of report.json: `check` sets the results of the assertions",
    ),
];

/// A type of a crate, with all its methods.
struct TypeSize {
    module: Module,
    name: String,
    location: String,
    fields: usize,
    methods: usize,
    changes_itself: bool,
}

/// One `impl` block.
struct MethodBlock {
    module: Module,
    name: String,
    count: usize,
    has_mutable_receiver: bool,
}

/// Types and `impl` blocks of a file.
#[derive(Default)]
struct TypesFound {
    module: Module,
    path: String,
    types: Vec<TypeSize>,
    methods: Vec<MethodBlock>,
}

impl TypesFound {
    fn add_type(&mut self, ident: &syn::Ident, fields: usize) {
        self.types.push(TypeSize {
            module: self.module.clone(),
            name: ident.to_string(),
            location: format!("{}:{}", self.path, ident.span().start().line),
            fields,
            methods: 0,
            changes_itself: false,
        });
    }
}

impl<'ast> Visit<'ast> for TypesFound {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add_type(&item.ident, item.fields.len());
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add_type(&item.ident, 0);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let syn::Type::Path(path) = &*item.self_ty else {
            return;
        };
        if is_test(&item.attrs) {
            return;
        }
        let functions = item.items.iter().filter_map(|item| match item {
            syn::ImplItem::Fn(function) if !is_test(&function.attrs) => Some(&function.sig),
            _ => None,
        });
        let has_mutable_receiver = |signature: &syn::Signature| {
            let receiver = signature.receiver();
            receiver.is_some_and(|receiver| {
                receiver.reference.is_some() && receiver.mutability.is_some()
            })
        };
        let name = path.path.segments.last().expect("a path has a segment");
        self.methods.push(MethodBlock {
            module: self.module.clone(),
            name: name.ident.to_string(),
            // The methods of a trait are those of its contract.
            count: if item.trait_.is_some() {
                0
            } else {
                functions.clone().count()
            },
            has_mutable_receiver: functions.clone().any(has_mutable_receiver),
        });
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }
}

/// The types of a crate with their methods. A block belongs to the nearest type of its name.
fn with_methods(found: TypesFound) -> Vec<TypeSize> {
    let mut types = found.types;
    for block in found.methods {
        let shared = |module: &Module| {
            let pairs = module.iter().zip(&block.module);
            pairs.take_while(|(one, other)| one == other).count()
        };
        let candidates = types.iter_mut().filter(|size| size.name == block.name);
        // Of two at the same distance, the one that is less deep: a parent before a sibling.
        let nearest =
            candidates.max_by_key(|size| (shared(&size.module), Reverse(size.module.len())));
        if let Some(size) = nearest {
            size.methods += block.count;
            size.changes_itself |= block.has_mutable_receiver;
        }
    }
    types
}

/// The violation of one type.
fn fault(size: &TypeSize) -> Option<Finding> {
    let is_record = RECORDS.iter().any(|(name, _)| *name == size.name);
    let has_many_fields = size.fields > FIELDS && size.changes_itself && !is_record;
    (has_many_fields || size.methods > METHODS).then(|| {
        let TypeSize { name, fields, methods, .. } = size;
        Finding::new(
            size.location.clone(),
            format!("{name} has {fields} fields and {methods} methods"),
            format!("divide it into parts with fields of their own: at most {FIELDS} fields and {METHODS} methods"),
        )
    })
}

#[test]
fn structs_with_behaviour_stay_small() {
    let mut findings = Vec::new();
    for files in members().into_values() {
        let mut found = TypesFound::default();
        for (module, source) in files {
            found.module = module;
            found.path.clone_from(&source.path);
            found.visit_file(&source.parsed());
        }
        findings.extend(with_methods(found).iter().filter_map(fault));
    }
    expect_none(&findings);
}

#[cfg(test)]
fn sample(files: &[(&str, &str)]) -> Vec<TypeSize> {
    let mut found = TypesFound::default();
    for (module, text) in files {
        found.module = module.split("::").map(str::to_owned).collect();
        found.visit_file(&syn::parse_file(text).expect("valid Rust"));
    }
    with_methods(found)
}

#[test]
fn methods_of_other_files_count() {
    let types = sample(&[
        (
            "a",
            "struct A { b: u8, c: u8 } impl A { fn d(&self) {} #[cfg(test)] fn e(&self) {} }",
        ),
        (
            "a::b",
            "impl super::A { fn f(&mut self) {} } impl Drop for A { fn drop(&mut self) {} }",
        ),
        ("g", "struct A; impl A { fn h(self) {} }"),
    ]);
    let sizes: Vec<_> = types
        .iter()
        .map(|size| (size.fields, size.methods, size.changes_itself))
        .collect();
    assert_eq!(sizes, [(2, 2, true), (0, 1, false)]);
}

#[test]
fn records_may_have_many_fields() {
    let fields: String = (0..=FIELDS)
        .map(|number| format!("f{number}: u8,"))
        .collect();
    for (receiver, is_fault) in [("&self", false), ("&mut self", true)] {
        let text = format!("struct A {{ {fields} }} impl A {{ fn f({receiver}) {{}} }}");
        assert_eq!(
            sample(&[("a", &text)])
                .iter()
                .any(|size| fault(size).is_some()),
            is_fault
        );
    }
    let methods: String = (0..=METHODS)
        .map(|number| format!("fn f{number}() {{}}"))
        .collect();
    let types = sample(&[("a", &format!("struct A; impl A {{ {methods} }}"))]);
    assert!(fault(&types[0]).is_some_and(|finding| finding.violation.contains("41 methods")));
}
