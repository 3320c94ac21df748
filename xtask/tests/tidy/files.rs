//! The tracked files and their text.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The crate of the command.
const COMMAND: &str = "posthaste";

/// Members of the workspace with a folder of their own, in addition to the crates of the product.
const AT_THE_ROOT: &[&str] = &["conformance/harness", "conformance", "xtask"];

/// A tracked text file.
pub(crate) struct Source {
    /// Relative to the checkout, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// `path:line`, lines counted from one.
    pub(crate) fn line(&self, number: usize) -> String {
        format!("{}:{number}", self.path)
    }

    /// The lines with their numbers, from one.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// The file as Rust.
    pub(crate) fn parsed(&self) -> syn::File {
        syn::parse_file(&self.text).unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }

    /// Group, crate and path inside the crate: `crates/<group>/<crate>/<path>`. The command stands in no group.
    pub(crate) fn in_crate(&self) -> Option<(Option<&str>, &str, &str)> {
        let (first, inside) = self.path.strip_prefix("crates/")?.split_once('/')?;
        if first == COMMAND {
            return Some((None, first, inside));
        }
        let (name, inside) = inside.split_once('/')?;
        Some((Some(first), name, inside))
    }

    /// The crate of this file.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        self.in_crate().map(|(_, name, _)| name)
    }

    /// The member of the workspace: a crate under `crates/`, or one of [`AT_THE_ROOT`].
    pub(crate) fn member(&self) -> Option<&str> {
        self.crate_name()
            .or_else(|| self.at_the_root().map(|(member, _)| member))
    }

    /// The path inside the member.
    pub(crate) fn inside(&self) -> Option<&str> {
        self.in_crate()
            .map(|(_, _, inside)| inside)
            .or_else(|| self.at_the_root().map(|(_, inside)| inside))
    }

    /// Member and path inside it.
    fn at_the_root(&self) -> Option<(&str, &str)> {
        AT_THE_ROOT.iter().find_map(|folder| {
            let inside = self.path.strip_prefix(folder)?.strip_prefix('/')?;
            Some((folder.rsplit('/').next()?, inside))
        })
    }
}

/// The checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the checkout")
        .into()
}

/// All tracked text files that exist.
pub(crate) fn tracked() -> Vec<Source> {
    let root = root();
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(&root)
        .output()
        .expect("tidy asks git for the tracked files");
    assert!(
        listed.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&listed.stderr)
    );
    String::from_utf8_lossy(&listed.stdout)
        .split_terminator('\0')
        .filter_map(|path| {
            let text = std::fs::read_to_string(root.join(path)).ok()?;
            Some(Source {
                path: path.into(),
                text,
            })
        })
        .collect()
}

/// All tracked Rust files.
pub(crate) fn rust() -> Vec<Source> {
    tracked()
        .into_iter()
        .filter(|source| source.path.ends_with(".rs"))
        .collect()
}

#[test]
fn tracked_files_are_found() {
    assert!(
        rust()
            .iter()
            .any(|source| source.path == "xtask/tests/tidy/files.rs")
    );
}
