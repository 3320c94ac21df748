//! Siblings in a folder of a crate form no cycle by `crate::`, `self::` and `super::`, each with all modules below it.
//!
//! Two folders that need each other can be neither read, moved nor tested apart, also if no two modules do: `a::x` on
//! `b::y`, and `b::z` on `a::w`. A cycle of modules is one of siblings, too.
//!
//! A module is a file; modules inside a file belong to it. A cycle of a module with its descendants is none. Not read:
//! test code (`cfg(test)` and files under `tests`), contents of macro calls, and paths that start at a child.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use syn::spanned::Spanned;
use syn::visit::Visit;

use crate::files::{Source, rust};
use crate::{Finding, expect_none};

/// A module's path inside its crate; the root is empty.
pub(crate) type Module = Vec<String>;

/// Modules with the modules that they name, and the first place of each name.
type Graph = BTreeMap<Module, BTreeMap<Module, String>>;

/// A strongly connected component.
struct Cycle {
    modules: Vec<Module>,
    /// A place where the first module names another one.
    location: String,
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
fn graph(files: &[(Module, Source)]) -> Graph {
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

/// Modules that are reachable from this one.
fn reachable<'a>(graph: &'a Graph, from: &Module) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&Module> = graph[from].keys().collect();
    while let Some(module) = next.pop() {
        if found.insert(module) {
            next.extend(graph[module].keys());
        }
    }
    found
}

/// Strongly connected components with two modules or more.
fn components(graph: &Graph) -> BTreeSet<BTreeSet<&Module>> {
    let reach: BTreeMap<&Module, BTreeSet<&Module>> = graph
        .keys()
        .map(|module| (module, reachable(graph, module)))
        .collect();
    let component = |module: &&Module| -> BTreeSet<&Module> {
        let others = reach[*module].iter().copied();
        others
            .filter(|other| reach[other].contains(*module))
            .collect()
    };
    let components = graph.keys().map(|module| component(&module));
    components.filter(|component| component.len() > 1).collect()
}

/// The graph of the children of `parent`: each stands for itself and all modules below it.
fn contracted(graph: &Graph, parent: &Module) -> Graph {
    let child = |module: &Module| {
        let is_below = module.len() > parent.len() && module.starts_with(parent);
        is_below.then(|| module[..=parent.len()].to_vec())
    };
    let mut children = Graph::new();
    for (module, edges) in graph {
        let Some(from) = child(module) else { continue };
        let row = children.entry(from.clone()).or_default();
        for (other, location) in edges {
            if let Some(to) = child(other).filter(|to| *to != from) {
                row.entry(to).or_insert_with(|| location.clone());
            }
        }
    }
    children
}

/// The cycles of siblings in all folders of a member, the largest of each folder first.
fn cycles(graph: &Graph) -> Vec<Cycle> {
    let mut found = Vec::new();
    for parent in graph.keys() {
        let siblings = contracted(graph, parent);
        let cycle = |component: BTreeSet<&Module>| {
            let modules: Vec<Module> = component.into_iter().cloned().collect();
            let mut edges = siblings[&modules[0]].iter();
            let inside = edges.find(|(other, _)| modules.contains(other));
            let location = inside.map(|(_, location)| location.clone());
            Cycle {
                location: location.expect("a cycle has edges"),
                modules,
            }
        };
        let mut cycles: Vec<Cycle> = components(&siblings).into_iter().map(cycle).collect();
        cycles.sort_by_key(|cycle| (Reverse(cycle.modules.len()), cycle.modules.clone()));
        found.extend(cycles);
    }
    found
}

impl Cycle {
    fn names(&self) -> String {
        let names: Vec<String> = self
            .modules
            .iter()
            .map(|module| module.join("::"))
            .collect();
        names.join(", ")
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
fn folders_form_no_cycles() {
    let mut findings = Vec::new();
    for (member, files) in members() {
        for cycle in cycles(&graph(&files)) {
            let (size, names) = (cycle.modules.len(), cycle.names());
            findings.push(Finding::new(
                cycle.location,
                format!("{member} has a cycle of {size} siblings: {names}"),
                "move the part that both need into a module of its own below both, or next to its user",
            ));
        }
    }
    expect_none(&findings);
}

#[cfg(test)]
fn sample(files: &[(&str, &str)]) -> Vec<Cycle> {
    let files = [("lib.rs", "")].iter().chain(files);
    let sources = files.map(|(path, text)| {
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
    assert_eq!(names(&files), ["a, c"]);
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
    assert_eq!(names(&files), ["a, b", "c, d"]);
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
fn folders_that_need_each_other_are_a_cycle() {
    let files = [
        ("lib.rs", ""),
        ("a/mod.rs", ""),
        ("a/x.rs", "use crate::b::y::Y;"),
        ("a/w.rs", ""),
        ("b/mod.rs", ""),
        ("b/y.rs", ""),
        ("b/z.rs", "\nuse crate::a::w::W;"),
    ];
    assert_eq!(names(&files), ["a, b"]);
    assert_eq!(
        sample(&files)[0].location,
        "crates/network/link/src/a/x.rs:1"
    );
}
