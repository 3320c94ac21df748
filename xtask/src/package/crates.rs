//! The crates as packed by `cargo package`, compiled as a separate workspace.
//!
//! The manifests say `publish = false`, so that nothing goes to a registry by mistake. cargo therefore does not resolve
//! the crates against each other while packing (`--exclude-lockfile`) and cannot verify them (`--no-verify`). The check
//! here does more: it compiles all packed crates together, without the checkout, with each dependency by its version.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{Made, Packages, VERSION, size};
use crate::checkout::cargo;
use crate::error::{Outcome, TaskError};
use crate::process;
use crate::tools::{copy, write};

/// Time limit of the check, dependencies included.
const CHECK: Duration = Duration::from_secs(3600);

/// Packs all crates but those of tasks and peer tests, unpacks them elsewhere and compiles them.
pub(super) fn make(packages: &Packages) -> Outcome<Made> {
    let checkout = &packages.checkout;
    let packed = checkout.folder("package")?;
    // Crates of an earlier version. At first there are none.
    let _ = std::fs::remove_dir_all(&packed);
    let mut package = cargo(checkout);
    package
        .args(["package", "--workspace", "--exclude", "xtask"])
        .args(["--exclude", "posthaste-conformance"])
        .args(["--exclude", "posthaste-harness"])
        .args(["--no-verify", "--exclude-lockfile", "--allow-dirty"]);
    packages.run("cargo package", &mut package, 300)?;

    let folder = packages.empty("crates")?;
    let mut names = Vec::new();
    let mut bytes = 0;
    let ending = format!("-{VERSION}.crate");
    let entries = packed
        .read_dir()
        .map_err(|error| TaskError::at(&packed, error))?;
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let file = super::file_name(&path);
        if let Some(name) = file.strip_suffix(&ending) {
            unpack(packages, &path, &folder)?;
            bytes += size(&path)?;
            names.push(name.to_owned());
        }
    }
    workspace(packages, &folder, &names)?;
    let mut check = cargo(checkout);
    check
        .args([
            "check",
            "--offline",
            "--package",
            "posthaste",
            "--all-features",
        ])
        .current_dir(&folder);
    process::pass_through("cargo check", &mut check, CHECK, |_| ())?;
    Ok(Made {
        package: format!("{} crates", names.len()),
        bytes,
        tried: "`cargo package`, unpacked, `cargo check` without the checkout".into(),
        found: "compiles".into(),
    })
}

fn unpack(packages: &Packages, file: &Path, folder: &Path) -> Outcome<()> {
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--file"])
        .arg(file)
        .arg("--directory")
        .arg(folder);
    packages.run("tar", &mut tar, 60).map(drop)
}

/// Writes a workspace of the unpacked crates: profiles and lock of the checkout, each crate instead of the registry's.
fn workspace(packages: &Packages, folder: &Path, names: &[String]) -> Outcome<()> {
    let ours = packages.checkout.path("Cargo.toml");
    let text = std::fs::read_to_string(&ours).map_err(|error| TaskError::at(&ours, error))?;
    let profiles = text.find("\n[profile.").map_or("", |start| &text[start..]);
    let list = |line: &dyn Fn(&str) -> String| -> String {
        names.iter().map(|name| line(name) + "\n").collect()
    };
    let members = list(&|name| format!("  \"{name}-{VERSION}\","));
    let patches = list(&|name| format!("{name} = {{ path = \"{name}-{VERSION}\" }}"));
    write(
        &folder.join("Cargo.toml"),
        format!(
            "[workspace]\nresolver = \"3\"\nmembers = [\n{members}]\n\n[patch.crates-io]\n{patches}{profiles}"
        ),
    )?;
    copy(
        &packages.checkout.path("Cargo.lock"),
        &folder.join("Cargo.lock"),
    )
}
