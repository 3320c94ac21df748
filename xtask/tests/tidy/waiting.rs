//! Checks of the table of tests that wait on a clock: its names exist, and no file with such a test is missing.

use std::process::Command;

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

/// A row of the table: a binary, and modules of it. No modules mean all.
struct WaitingRow {
    package: String,
    target: String,
    modules: Vec<String>,
}

/// The table as `cargo xtask busy --list` prints it.
fn table() -> Vec<WaitingRow> {
    let listed = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["busy", "--list"])
        .output()
        .expect("xtask starts");
    let text = String::from_utf8(listed.stdout).expect("text");
    let mut rows = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace().map(str::to_owned);
        let (package, target) = (words.next(), words.next());
        rows.push(WaitingRow {
            package: package.expect("a package"),
            target: target.expect("a target"),
            modules: words.collect(),
        });
    }
    assert!(
        !rows.is_empty(),
        "{}",
        String::from_utf8_lossy(&listed.stderr)
    );
    rows
}

/// Package, binary and module of a file.
fn place(path: &str) -> Option<(String, String, String)> {
    let (package, inside) = match path.strip_prefix("xtask/") {
        Some(inside) => ("xtask".to_owned(), inside),
        None => {
            let (name, inside) = path.strip_prefix("crates/")?.split_once('/')?;
            match name {
                "posthaste" => (name.to_owned(), inside),
                _ => (format!("posthaste-{name}"), inside),
            }
        }
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

impl WaitingRow {
    fn covers(&self, (package, target, module): &(String, String, String)) -> bool {
        let any = self.modules.is_empty();
        let named = self.modules.iter().any(|parent| is_inside(module, parent));
        (&self.package, &self.target) == (package, target) && (any || named)
    }
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
fn what_the_table_names_is_there() {
    let sources = rust();
    let mut findings = Vec::new();
    for row in table() {
        let whole = vec![String::new()];
        let modules = if row.modules.is_empty() {
            &whole
        } else {
            &row.modules
        };
        for module in modules {
            let found = sources.iter().any(|source| {
                place(&source.path).is_some_and(|(package, target, inside)| {
                    (&package, &target) == (&row.package, &row.target)
                        && (module.is_empty() || is_inside(&inside, module))
                }) && has_tests(tests(source))
            });
            if !found {
                let name = format!("{} {} {module}", row.package, row.target);
                findings.push(Finding::new(
                    "xtask/src/test/waiting.rs",
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
    let rows = table();
    let mut findings = Vec::new();
    for source in rust() {
        let Some(place) = place(&source.path) else {
            continue;
        };
        // These tests read the sources and name the clocks without waiting for one.
        if place.0 == "xtask" && place.1 == "tidy" {
            continue;
        }
        let text = tests(&source);
        let named = CLOCKS.iter().find(|clock| text.contains(**clock));
        let waits = named.filter(|_| has_tests(text));
        if let Some(clock) = waits
            && !rows.iter().any(|row| row.covers(&place))
        {
            findings.push(Finding::new(
                &source.path,
                format!("its tests name {clock} and are not in the table"),
                "add the module to xtask/src/test/waiting.rs",
            ));
        }
    }
    expect_none(&findings);
}
