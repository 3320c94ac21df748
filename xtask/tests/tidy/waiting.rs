//! Checks of the table of tests that wait on a clock: its names exist, and no file with such a test is missing.

use posthaste_harness::waiting::{WAITING, WaitingTests};

use crate::files::{Source, rust};
use crate::{Finding, expect_none};

/// Text that shows that a test waits on a clock, for a socket, or for a study that does.
const CLOCKS: &[&str] = &[
    "Instant::now",
    "sleep(",
    "recv_timeout(",
    "TcpListener::bind",
    "TcpStream::connect",
    "UdpSocket::bind",
    "test_study::",
];

/// Package, binary and module of a file.
fn target_of(source: &Source) -> Option<(String, String, String)> {
    let inside = source.inside()?;
    let package = match source.member()? {
        member @ ("posthaste" | "xtask") => member.to_owned(),
        member => format!("posthaste-{member}"),
    };
    let (target, module) = match inside.strip_prefix("src/") {
        Some(module) => ("unit", module),
        None => {
            let tests = inside.strip_prefix("tests/")?;
            tests
                .split_once('/')
                .unwrap_or((tests.trim_end_matches(".rs"), "main.rs"))
        }
    };
    let module = module.trim_end_matches(".rs").trim_end_matches("/mod");
    Some((package, target.to_owned(), module.replace('/', "::")))
}

/// True if `module` is `parent` or inside it.
fn is_inside(module: &str, parent: &str) -> bool {
    module
        .strip_prefix(parent)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// True if the table has the tests of this place.
fn covers(row: &WaitingTests, tests: &(String, String, String)) -> bool {
    let (package, target, module) = tests;
    let any = row.modules.is_empty();
    let named = row.modules.iter().any(|parent| is_inside(module, parent));
    row.package == package && row.target == target && (any || named)
}

/// The test part of a file: all of a file under `tests`, otherwise the part after `cfg(test)`.
fn tests(source: &Source) -> &str {
    if source.path.contains("/tests/") || source.path.ends_with("/tests.rs") {
        return &source.text;
    }
    let marked = source.text.find("#[cfg(test)]");
    marked.map_or("", |from| &source.text[from..])
}

/// True if it contains a test, and not only helpers of tests.
fn has_tests(text: &str) -> bool {
    text.contains("#[test]") || text.contains("trial(")
}

#[test]
fn every_name_in_the_table_exists() {
    let sources = rust();
    let mut findings = Vec::new();
    for row in WAITING {
        let modules = if row.modules.is_empty() {
            &[""]
        } else {
            row.modules
        };
        for module in modules {
            let found = sources.iter().any(|source| {
                target_of(source).is_some_and(|(package, target, inside)| {
                    (&*package, &*target) == (row.package, row.target)
                        && (module.is_empty() || is_inside(&inside, module))
                }) && has_tests(tests(source))
            });
            if !found {
                let name = format!("{} {} {module}", row.package, row.target);
                findings.push(Finding::new(
                    "conformance/harness/src/waiting.rs",
                    format!("{name}: no such tests"),
                    "give their present name, or remove the entry",
                ));
            }
        }
    }
    expect_none(&findings);
}

#[test]
fn every_test_that_waits_on_a_clock_is_in_the_table() {
    let mut findings = Vec::new();
    for source in rust() {
        let Some(target) = target_of(&source) else {
            continue;
        };
        // These tests read the sources and name the clocks without waiting for one.
        if target.0 == "xtask" && target.1 == "tidy" {
            continue;
        }
        let text = tests(&source);
        let named = CLOCKS.iter().find(|clock| text.contains(**clock));
        let waits = named.filter(|_| has_tests(text));
        if let Some(clock) = waits
            && !WAITING.iter().any(|row| covers(row, &target))
        {
            findings.push(Finding::new(
                &source.path,
                format!("its tests name {clock} and are not in the table"),
                "add the module to conformance/harness/src/waiting.rs",
            ));
        }
    }
    expect_none(&findings);
}
