//! Modules of a crate form no cycles by `crate::`, `self::` and `super::`, parent and child aside.
//!
//! A module is a file; modules inside a file belong to it. A cycle of a module with its descendants is none; cycles
//! among the descendants are. Not read: test code (`cfg(test)` and files under `tests`), contents of macro calls, and
//! paths that start at a child.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use syn::spanned::Spanned;
use syn::visit::Visit;

use crate::files::{Source, rust};
use crate::{Finding, expect_none};

/// Cycles that the past left: member, size of the largest, and number.
const RATCHETS: &[(&str, usize, usize)] = &[];

/// A module's path inside its crate; the root is empty.
pub(crate) type Module = Vec<String>;

/// Modules with the modules that they name, and the first place of each name.
pub(crate) type Graph = BTreeMap<Module, BTreeMap<Module, String>>;

/// A strongly connected component.
pub(crate) struct Cycle {
    pub(crate) modules: Vec<Module>,
    /// A place where the first module names another one.
    pub(crate) location: String,
}

/// `crates/network/link/src/queue/mod.rs` as member `link` and module `queue`.
fn module_of(source: &Source) -> Option<(String, Module)> {
    let member = source.member()?;
    let inside = source.inside()?.strip_prefix("src/")?;
    let module = inside.strip_suffix(".rs")?;
    let mut parts: Module = module.split('/').map(str::to_owned).collect();
    let is_folder = parts.last().is_some_and(|last| last == "mod");
    let is_root = parts.len() == 1 && (parts[0] == "lib" || parts[0] == "main");
    if is_folder || is_root {
        parts.pop();
    }
    let is_test = parts.iter().any(|part| part == "tests");
    (!is_test).then(|| (member.to_owned(), parts))
}

/// Paths to modules and items of the crate, made absolute.
struct Paths {
    /// The module of the current item, with modules inside the file.
    here: Module,
    /// With their lines.
    found: Vec<(Module, usize)>,
}

impl Paths {
    fn note(&mut self, path: &[String], node: &impl Spanned) {
        let mut at = match path[0].as_str() {
            "crate" => Module::new(),
            "self" if path.len() > 1 => self.here.clone(),
            "super" => self.here[..self.here.len().saturating_sub(1)].to_vec(),
            _ => return,
        };
        for part in &path[1..] {
            if part == "super" {
                at.pop();
            } else if part != "self" {
                at.push(part.clone());
            }
        }
        self.found.push((at, node.span().start().line));
    }

    fn unfold(&mut self, before: &[String], tree: &syn::UseTree) {
        let join = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.unfold(&join(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.note(&join(&name.ident), name),
            syn::UseTree::Rename(rename) => self.note(&join(&rename.ident), rename),
            syn::UseTree::Glob(glob) if !before.is_empty() => self.note(before, glob),
            syn::UseTree::Glob(_) => {}
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.unfold(before, tree);
                }
            }
        }
    }
}

/// True for `#[cfg(test)]`, also within `all`.
pub(crate) fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let arguments = list.tokens.to_string();
            let mut arguments = arguments.split(|character: char| !character.is_alphanumeric());
            arguments.any(|word| word == "test") && !list.tokens.to_string().contains("not")
        }
        meta => meta.path().is_ident("test"),
    })
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes: &[syn::Attribute] = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            _ => &[],
        };
        if !is_test(attributes) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.here.push(item.ident.to_string());
        syn::visit::visit_item_mod(self, item);
        self.here.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.unfold(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path
            .segments
            .iter()
            .map(|part| part.ident.to_string())
            .collect();
        self.note(&parts, path);
        syn::visit::visit_path(self, path);
    }
}

/// The graph of one crate.
pub(crate) fn graph(files: &[(Module, Source)]) -> Graph {
    let modules: BTreeSet<&Module> = files.iter().map(|(module, _)| module).collect();
    let mut graph = Graph::new();
    for (module, source) in files {
        let mut paths = Paths {
            here: module.clone(),
            found: Vec::new(),
        };
        paths.visit_file(&source.parsed());
        let edges = graph.entry(module.clone()).or_default();
        for (mut path, line) in paths.found {
            // The root is a module of each crate.
            while !modules.contains(&path) && path.pop().is_some() {}
            if path != *module && modules.contains(&path) {
                edges.entry(path).or_insert_with(|| source.line(line));
            }
        }
    }
    graph
}

/// Modules that are reachable from this one by modules of `among`.
fn reachable<'a>(
    graph: &'a Graph,
    among: &BTreeSet<&Module>,
    from: &Module,
) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&Module> = graph[from].keys().collect();
    while let Some(module) = next.pop() {
        if among.contains(module) && found.insert(module) {
            next.extend(graph[module].keys());
        }
    }
    found
}

/// Strongly connected components of `among` with two modules or more.
fn components<'a>(
    graph: &'a Graph,
    among: &BTreeSet<&'a Module>,
) -> BTreeSet<BTreeSet<&'a Module>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> = among
        .iter()
        .map(|module| (*module, reachable(graph, among, module)))
        .collect();
    let component = |module: &&'a Module| -> BTreeSet<&'a Module> {
        let others = reach[*module].iter().copied();
        others
            .filter(|other| reach[other].contains(*module))
            .collect()
    };
    among
        .iter()
        .map(component)
        .filter(|component| component.len() > 1)
        .collect()
}

/// Cycles of two modules or more, the largest first.
///
/// A component that consists of a module and descendants is split again without that module.
pub(crate) fn cycles(graph: &Graph) -> Vec<Cycle> {
    let mut cycles: Vec<Cycle> = Vec::new();
    let mut open: Vec<BTreeSet<&Module>> = vec![graph.keys().collect()];
    while let Some(among) = open.pop() {
        for mut component in components(graph, &among) {
            let ancestor = component
                .iter()
                .copied()
                .find(|top| component.iter().all(|module| module.starts_with(top)));
            match ancestor {
                Some(top) => {
                    component.remove(top);
                    open.push(component);
                }
                None => {
                    let modules: Vec<Module> = component.into_iter().cloned().collect();
                    let mut edges = graph[&modules[0]].iter();
                    let inside = edges.find(|(other, _)| modules.contains(other));
                    let location = inside.map(|(_, location)| location.clone());
                    cycles.push(Cycle {
                        location: location.expect("a cycle has edges"),
                        modules,
                    });
                }
            }
        }
    }
    cycles.sort_by_key(|cycle| (Reverse(cycle.modules.len()), cycle.modules.clone()));
    cycles
}

impl Cycle {
    pub(crate) fn names(&self) -> String {
        let names: Vec<String> = self
            .modules
            .iter()
            .map(|module| module.join("::"))
            .collect();
        names.join(", ")
    }
}

/// Compares the cycles of a member with its ratchet. The size of the largest may only fall, and at one size the number.
/// A large cycle may fall apart into several.
fn held(member: &str, cycles: &[Cycle], ratchet: Option<(usize, usize)>) -> Vec<Finding> {
    let (largest, number) = ratchet.unwrap_or_default();
    let size = cycles.first().map_or(0, |cycle| cycle.modules.len());
    match (size, cycles.len()).cmp(&(largest, number)) {
        Ordering::Equal => Vec::new(),
        Ordering::Less => {
            let remedy = match cycles.len() {
                0 => "remove the row: it may only fall".to_owned(),
                left => format!("lower the row to {size}, {left}: it may only fall"),
            };
            let violation = format!(
                "{member} has {} cycles left, the largest of {size}",
                cycles.len()
            );
            vec![Finding::new(file!(), violation, remedy)]
        }
        Ordering::Greater => {
            let finding = |cycle: &Cycle| {
                let (size, names) = (cycle.modules.len(), cycle.names());
                let limits = format!("{member}: ratchet {number}, the largest of {largest}");
                Finding::new(
                    &cycle.location,
                    format!("a cycle of {size} modules: {names} ({limits})"),
                    "move what both need into a module of its own, or pass the part instead of the whole",
                )
            };
            cycles.iter().map(finding).collect()
        }
    }
}

/// The modules of each member.
pub(crate) fn members() -> BTreeMap<String, Vec<(Module, Source)>> {
    let mut members = BTreeMap::<String, Vec<(Module, Source)>>::new();
    for source in rust() {
        if let Some((member, module)) = module_of(&source) {
            members.entry(member).or_default().push((module, source));
        }
    }
    members
}

#[test]
fn modules_form_no_cycles() {
    let members = members();
    let mut findings = Vec::new();
    for (member, ..) in RATCHETS {
        assert!(
            members.contains_key(*member),
            "{member} is no member: remove its row"
        );
    }
    for (member, files) in &members {
        let ratchet = RATCHETS.iter().find(|(name, ..)| name == member);
        let ratchet = ratchet.map(|(_, largest, number)| (*largest, *number));
        findings.extend(held(member, &cycles(&graph(files)), ratchet));
    }
    expect_none(&findings);
}

#[cfg(test)]
fn sample(files: &[(&str, &str)]) -> Vec<Cycle> {
    let sources = files.iter().map(|(path, text)| {
        let source = Source {
            path: format!("crates/network/link/src/{path}"),
            text: (*text).to_owned(),
        };
        (module_of(&source).expect("a module").1, source)
    });
    cycles(&graph(&sources.collect::<Vec<_>>()))
}

#[cfg(test)]
fn names(files: &[(&str, &str)]) -> Vec<String> {
    sample(files).iter().map(Cycle::names).collect()
}

#[test]
fn cycles_are_seen_through_groups_and_expressions() {
    let a = ("a.rs", "use crate::{b::{self, B}, c};");
    let b = ("b/mod.rs", "fn f() { super::c::g::<u8>(); }");
    let c = ("c.rs", "impl crate::a::T for u8 {}");
    assert_eq!(names(&[("lib.rs", "mod a;"), a, b, c]), ["a, b, c"]);
    assert!(names(&[a, b, ("c.rs", "")]).is_empty());
}

#[test]
fn a_cycle_through_a_child_is_one() {
    let files = [
        ("lib.rs", "use crate::a::A;"),
        ("a/mod.rs", "use crate::c::C; use crate::X;"),
        ("a/b.rs", "use super::A;"),
        ("c.rs", "use crate::a::b::B;"),
    ];
    assert_eq!(names(&files), ["a, a::b, c"]);
}

#[test]
fn two_cycles_are_two() {
    let files = [
        ("a.rs", "use super::b::B;"),
        ("b.rs", "use super::a::A; use crate::d::e::E;"),
        ("c.rs", "use crate::d::e::E;"),
        ("d/mod.rs", "mod e;"),
        ("d/e.rs", "use super::super::c::C;"),
    ];
    assert_eq!(names(&files), ["a, b", "c, d::e"]);
}

#[test]
fn parents_children_and_tests_are_aside() {
    let parent = ("a/mod.rs", "use self::b::B; struct A;");
    assert!(
        names(&[
            ("lib.rs", "use crate::a::A;"),
            parent,
            ("a/b.rs", "use super::A; use crate::X;")
        ])
        .is_empty()
    );
    let test = (
        "a.rs",
        "#[cfg(test)] mod tests { use crate::b::B; } #[cfg(test)] use crate::b::B;",
    );
    assert!(names(&[test, ("b.rs", "use crate::a::A;")]).is_empty());
    let inside = (
        "a.rs",
        "mod inner { use super::super::b::B; use super::C; }",
    );
    assert_eq!(
        names(&[inside, ("b.rs", "use crate::a::inner::A;")]),
        ["a, b"]
    );
}

#[test]
fn ratchets_of_cycles_may_only_fall() {
    let cycle = sample(&[("a.rs", "\nuse crate::b::B;"), ("b.rs", "use crate::a::A;")]);
    assert!(held("link", &cycle, Some((2, 1))).is_empty());
    assert!(held("link", &[], None).is_empty());
    let above = held("link", &cycle, None);
    assert_eq!(above[0].location, "crates/network/link/src/a.rs:2");
    assert!(above[0].violation.contains("of 2 modules: a, b "));
    let remedy = |cycles: &[Cycle], ratchet| held("link", cycles, Some(ratchet))[0].remedy.clone();
    assert!(remedy(&cycle, (2, 2)).contains("lower the row to 2, 1"));
    assert!(remedy(&cycle, (3, 1)).contains("lower the row to 2, 1"));
    assert!(remedy(&[], (2, 1)).contains("remove the row"));
}
