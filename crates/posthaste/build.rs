//! Passes the commit to the program: `POSTHASTE_COMMIT` if set, otherwise the commit of the git checkout, with `-dirty`
//! if the checkout was changed. Nothing if neither exists.

use std::path::Path;
use std::process::{Command, Stdio};

const COMMIT: &str = "POSTHASTE_COMMIT";

fn main() {
    println!("cargo::rerun-if-env-changed={COMMIT}");
    for sources in ["../../crates", "../../Cargo.lock"] {
        println!("cargo::rerun-if-changed={sources}");
    }
    for file in commit_files() {
        println!("cargo::rerun-if-changed={file}");
    }
    let describe = [
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
        "--exclude=*",
    ];
    let given = std::env::var(COMMIT)
        .ok()
        .filter(|commit| !commit.is_empty());
    let commit = given.or_else(|| git(&describe));
    if let Some(commit) = commit {
        println!("cargo::rustc-env={COMMIT}={commit}");
    }
}

/// Files that change with the commit: HEAD, the ref that it names, and the refs that git has packed. Not the index, which
/// git also rewrites when nothing has changed.
fn commit_files() -> Vec<String> {
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    let names = ["HEAD", "packed-refs"].map(str::to_owned);
    let paths = names.into_iter().chain(branch);
    let paths = paths.filter_map(|name| git(&["rev-parse", "--git-path", &name]));
    // Cargo would run the script each time for a file that is not there.
    paths.filter(|path| Path::new(path).exists()).collect()
}

/// Returns the output of git, if it succeeds.
fn git(arguments: &[&str]) -> Option<String> {
    let git = Command::new("git")
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let output = String::from_utf8(git.stdout).ok()?;
    Some(output.trim().to_owned()).filter(|output| git.status.success() && !output.is_empty())
}
