//! Tells the program which commit it is built from: what the builder has put into `POSTHASTE_COMMIT`, or what
//! git says of the checkout, with `-dirty` where it was changed; nothing where there is neither.

use std::process::{Command, Stdio};

const COMMIT: &str = "POSTHASTE_COMMIT";

fn main() {
    println!("cargo::rerun-if-env-changed={COMMIT}");
    for sources in ["../../crates", "../../Cargo.lock"] {
        println!("cargo::rerun-if-changed={sources}");
    }
    // Where this checkout keeps what it is at, which may be elsewhere for a work tree.
    for file in ["HEAD", "index"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
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

/// What git answers, where it does.
fn git(arguments: &[&str]) -> Option<String> {
    let git = Command::new("git")
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let words = String::from_utf8(git.stdout).ok()?;
    Some(words.trim().to_owned()).filter(|words| git.status.success() && !words.is_empty())
}
