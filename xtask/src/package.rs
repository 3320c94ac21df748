//! `cargo xtask package`: all installable packages, each used once on a clean root.
//!
//! | file | content |
//! |---|---|
//! | `built` | the `dist` builds, stripped, with manual pages and completion scripts: complete, and of the gateway alone |
//! | `root` | a fresh Debian root, isolated from every network, and the use of a package in it |
//! | the others | one package each: make it, install it on a root, use it |
//!
//! Packages are kept in `target/packages`. Roots need root privileges. Processes and mounts of an attempt end with its
//! namespace.

mod built;
mod crates;
mod deb;
mod gateway;
mod image;
mod install;
mod root;
mod tarball;
mod wheel;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use crate::checkout::Checkout;
use crate::error::{Outcome, TaskError};
use crate::process::{self, Finished};

use built::{BuildVariant, Built};

/// The version of every package.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One kind of package.
struct PackageKind {
    name: &'static str,
    about: &'static str,
    make: fn(&Packages) -> Outcome<Made>,
}

const KINDS: &[PackageKind] = &[
    PackageKind {
        name: "tarball",
        about: "binary, manual pages, completions; used on a distribution older than this one",
        make: tarball::make,
    },
    PackageKind {
        name: "deb",
        about: "Debian package with systemd units and a user; installed, used, purged",
        make: deb::make,
    },
    PackageKind {
        name: "wheel",
        about: "Python wheel that carries the binary; installed by pip on an older distribution",
        make: wheel::make,
    },
    PackageKind {
        name: "image",
        about: "OCI image made offline from Debian's packages; unpacked and used as its user",
        make: image::make,
    },
    PackageKind {
        name: "gateway-deb",
        about: "Debian package of the gateway alone; installed, used, replaced by the complete one",
        make: gateway::deb,
    },
    PackageKind {
        name: "gateway-image",
        about: "OCI image of the gateway alone; unpacked and used as its user",
        make: gateway::image,
    },
    PackageKind {
        name: "install",
        about: "cargo install --locked from the checkout",
        make: install::make,
    },
    PackageKind {
        name: "crates",
        about: "cargo package; what it packed is compiled without the checkout",
        make: crates::make,
    },
];

/// A package that was made and used.
struct Made {
    package: String,
    bytes: u64,
    /// Description of the use.
    tried: String,
    /// Result of the use.
    found: String,
}

/// The folder of the packages, and their builds.
struct Packages {
    checkout: Checkout,
    folder: PathBuf,
    logs: PathBuf,
    complete: OnceCell<Built>,
    gateway: OnceCell<Built>,
}

impl Packages {
    fn open(checkout: Checkout) -> Outcome<Self> {
        Ok(Self {
            folder: checkout.folder("packages")?,
            logs: checkout.folder("packages/logs")?,
            checkout,
            complete: OnceCell::new(),
            gateway: OnceCell::new(),
        })
    }

    /// A build, made at the first call.
    fn built(&self, variant: BuildVariant) -> Outcome<&Built> {
        let cell = match variant {
            BuildVariant::Complete => &self.complete,
            BuildVariant::Gateway => &self.gateway,
        };
        if cell.get().is_none() {
            // Empty, as checked above.
            let _ = cell.set(Built::make(self, variant)?);
        }
        Ok(cell.get().expect("it was just set"))
    }

    /// Runs a command to its end and requires exit 0.
    fn run(&self, name: &str, command: &mut Command, seconds: u64) -> Outcome<Finished> {
        process::run(name, command, Duration::from_secs(seconds), &self.logs)
    }

    /// Creates an empty folder of this name.
    fn empty(&self, name: &str) -> Outcome<PathBuf> {
        let folder = self.folder.join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|error| TaskError::at(&folder, error))?;
        }
        std::fs::create_dir_all(&folder).map_err(|error| TaskError::at(&folder, error))?;
        Ok(folder)
    }
}

/// Prints the kinds of packages.
pub(crate) fn list() {
    for PackageKind { name, about, .. } in KINDS {
        println!("{name:13} {about}");
    }
}

/// Makes and uses all packages or one. Fails if any fails.
pub(crate) fn run(checkout: Checkout, name: Option<&str>) -> Outcome<ExitCode> {
    let chosen: Vec<&PackageKind> = KINDS
        .iter()
        .filter(|kind| name.is_none_or(|name| name == kind.name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        return Err(TaskError::Failed(format!(
            "no such package; there are {}",
            names.join(", ")
        )));
    }
    let packages = Packages::open(checkout)?;
    let mut lines = Vec::new();
    let mut all_made = true;
    for kind in chosen {
        eprintln!("package {}", kind.name);
        let made = (kind.make)(&packages);
        all_made &= made.is_ok();
        lines.push(line(kind.name, &made));
        if let Err(error) = made {
            eprintln!("  {error}");
        }
    }
    println!("| package | size | tried with | result |\n|---|---|---|---|");
    for line in lines {
        println!("{line}");
    }
    Ok(if all_made {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// A row of the table. An error is shown by its first line.
fn line(name: &str, made: &Outcome<Made>) -> String {
    match made {
        Ok(made) => {
            let size = made.bytes as f64 / 1e6;
            format!(
                "| {} | {size:.1} MB | {} | {} |",
                made.package, made.tried, made.found
            )
        }
        Err(TaskError::Missing(why)) => format!("| {name} | | | **missing**: {} |", first(why)),
        Err(TaskError::Failed(why)) => format!("| {name} | | | **FAILED**: {} |", first(why)),
    }
}

fn first(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A file's size in bytes.
fn size(path: &Path) -> Outcome<u64> {
    let metadata = std::fs::metadata(path).map_err(|error| TaskError::at(path, error))?;
    Ok(metadata.len())
}

/// A file's name.
fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The one file in `folder` whose name ends with `end`.
fn only(folder: &Path, end: &str) -> Outcome<PathBuf> {
    let entries = folder
        .read_dir()
        .map_err(|error| TaskError::at(folder, error))?;
    let mut found = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(end));
    match (found.next(), found.next()) {
        (Some(path), None) => Ok(path),
        _ => Err(TaskError::at(folder, format!("holds not one file {end}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_became_of_a_package() {
        let made = Ok(Made {
            package: "x.deb".into(),
            bytes: 12_340_000,
            tried: "apt-get".into(),
            found: "ok".into(),
        });
        assert_eq!(line("deb", &made), "| x.deb | 12.3 MB | apt-get | ok |");
        let missing = Err(TaskError::Missing("no umoci\nmore".into()));
        assert_eq!(
            line("image", &missing),
            "| image | | | **missing**: no umoci |"
        );
    }

    #[test]
    fn only_one_file_is_the_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.whl");
        assert!(only(folder.path(), ".whl").is_err());
        std::fs::write(&file, "").expect("a file");
        assert_eq!(only(folder.path(), ".whl").expect("one"), file);
        std::fs::write(folder.path().join("b.whl"), "").expect("a file");
        assert!(only(folder.path(), ".whl").is_err());
    }
}
