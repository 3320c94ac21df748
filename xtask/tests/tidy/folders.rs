//! Siblings in a folder of a crate form no cycle, each with all modules below it.
//!
//! [`crate::cycles`] compares single modules. Two folders can depend on each other without a cycle of modules: `a::x` on
//! `b::y`, and `b::z` on `a::w`. Then neither folder can be read, moved or tested without the other.

use crate::cycles::{Graph, Module, cycles, graph, members};
use crate::{Finding, expect_none};

/// Members whose folders form cycles that the past left, with the size of the largest.
const RATCHETS: &[(&str, usize)] = &[];

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

/// The cycles of siblings in all folders of a member: size, names, and a location.
fn folder_cycles(graph: &Graph) -> Vec<(usize, String, String)> {
    let mut found = Vec::new();
    for parent in graph.keys() {
        for cycle in cycles(&contracted(graph, parent)) {
            found.push((cycle.modules.len(), cycle.names(), cycle.location));
        }
    }
    found
}

#[test]
fn folders_form_no_cycles() {
    let mut findings = Vec::new();
    for (member, files) in members() {
        let permitted = RATCHETS.iter().find(|(name, _)| *name == member);
        let permitted = permitted.map_or(1, |(_, size)| *size);
        for (size, names, location) in folder_cycles(&graph(&files)) {
            if size > permitted {
                findings.push(Finding::new(
                    location,
                    format!("{member} has a cycle of {size} folders: {names}"),
                    "move the part that both need into a module of its own below both, or beside its user",
                ));
            }
        }
    }
    expect_none(&findings);
}

#[cfg(test)]
fn sample(edges: &[(&str, &[&str])]) -> Graph {
    let module = |path: &str| -> Module {
        path.split("::")
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let row = |(from, to): &(&str, &[&str])| {
        let to = to.iter().map(|path| (module(path), format!("{from}.rs:1")));
        (module(from), to.collect())
    };
    edges.iter().map(row).collect()
}

#[test]
fn folders_that_need_each_other_are_a_cycle() {
    let graph = sample(&[
        ("", &[]),
        ("a", &[]),
        ("a::x", &["b::y"]),
        ("a::w", &[]),
        ("b", &[]),
        ("b::y", &[]),
        ("b::z", &["a::w"]),
    ]);
    let names: Vec<String> = folder_cycles(&graph)
        .into_iter()
        .map(|(_, names, _)| names)
        .collect();
    assert_eq!(names, ["a, b"]);
}

#[test]
fn a_parent_and_its_children_are_no_cycle() {
    let graph = sample(&[
        ("", &["a"]),
        ("a", &["a::x"]),
        ("a::x", &["a", ""]),
        ("b", &["a::x"]),
    ]);
    assert!(folder_cycles(&graph).is_empty());
}
