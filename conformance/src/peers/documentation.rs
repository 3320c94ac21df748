//! The documentation: rendered by mdBook, its links, its spelling, and the schema in it. The manifests for Kubernetes.

use std::path::PathBuf;
use std::process::Command;

use crate::error::{Outcome, TaskError, check};
use crate::process;
use crate::site::Site;
use crate::tools;

/// Pages outside docs/ that are spell-checked.
const PAGES: &[&str] = &[
    "README.md",
    "CHANGELOG.md",
    "ARCHITECTURE.md",
    "SECURITY.md",
];

/// mdBook renders docs/ into target/site. Every link leads somewhere, and the spelling is British.
pub(crate) fn site(site: &Site) -> Outcome<()> {
    let python = tools::python(
        &site.checkout,
        "site",
        "conformance/programs/site/requirements.txt",
    )?;
    let rendered = render(site)?;
    let mut links = Command::new(&python);
    links
        .arg(site.checkout.path("conformance/programs/site/links.py"))
        .arg(rendered);
    say(site, "links", &mut links)?;
    let schema = site.logs.join("gateway.schema.json");
    let mut print = Command::new(&site.binary);
    print.args(["gateway", "--schema"]);
    tools::write(&schema, site.run("schema", &mut print, 30)?.stdout)?;
    let mut validate = Command::new(&python);
    validate
        .arg(site.checkout.path("conformance/programs/site/schema.py"))
        .arg(schema)
        .arg(site.checkout.root());
    say(site, "schema", &mut validate)?;
    let mut manifests = Command::new(&python);
    manifests
        .arg(
            site.checkout
                .path("conformance/programs/site/kubernetes.py"),
        )
        .arg(site.checkout.root());
    say(site, "kubernetes", &mut manifests)?;
    spell(site, &python.with_file_name("typos"))
}

/// Renders the documentation. Warnings of mdBook are failures.
fn render(site: &Site) -> Outcome<PathBuf> {
    let mdbook = tools::cargo(&site.checkout, "mdbook", "0.5.4", "search")?;
    let folder = site.checkout.folder("site")?;
    let mut build = Command::new(mdbook);
    build
        .arg("build")
        .arg(site.checkout.path("docs"))
        .arg("--dest-dir")
        .arg(&folder);
    let done = site.run("mdbook", &mut build, 120)?;
    let warning = done.stderr.lines().find(|line| !line.contains(" INFO "));
    match warning {
        Some(line) => Err(TaskError::Failed(format!("mdbook: {line}"))),
        None => Ok(folder),
    }
}

/// Runs a check and shows its output, also if it fails.
fn say(site: &Site, name: &str, command: &mut Command) -> Outcome<()> {
    process::pass_through(
        name,
        command.current_dir(site.checkout.root()),
        std::time::Duration::from_secs(120),
        |_| (),
    )
}

/// Spell-checks pages and doc comments with conformance/programs/site/typos.toml.
fn spell(site: &Site, typos: &std::path::Path) -> Outcome<()> {
    let comments = doc_comments(site)?;
    let mut spell = Command::new(typos);
    spell
        .arg("--config")
        .arg(site.checkout.path("conformance/programs/site/typos.toml"))
        .args(["--format", "brief", "docs"])
        .args(PAGES)
        .arg(comments);
    say(site, "typos", &mut spell)
}

/// A folder with the Rust files under crates/, reduced to their doc comments with unchanged line numbers.
fn doc_comments(site: &Site) -> Outcome<PathBuf> {
    let folder = site.logs.join("comments");
    let mut list = Command::new("git");
    list.args(["ls-files", "crates/*.rs"])
        .current_dir(site.checkout.root());
    let files = site.run("git", &mut list, 30)?.stdout;
    check(files.lines().count() > 100, || {
        "crates/ has no files".into()
    })?;
    for file in files.lines() {
        // A removed file that is still tracked.
        let Ok(text) = std::fs::read_to_string(site.checkout.path(file)) else {
            continue;
        };
        let lines = text.lines().map(|line| {
            let is_comment = ["///", "//!"]
                .iter()
                .any(|mark| line.trim_start().starts_with(mark));
            if is_comment { line } else { "" }
        });
        let copy = folder.join(file);
        let above = copy.parent().unwrap_or(&folder);
        std::fs::create_dir_all(above).map_err(|error| TaskError::at(above, error))?;
        tools::write(&copy, lines.collect::<Vec<_>>().join("\n"))?;
    }
    Ok(folder)
}
