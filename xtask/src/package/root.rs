//! A fresh Debian root in a folder, and the use of posthaste in it.
//!
//! mmdebstrap makes the minimal root of a release once, kept as an archive. Every attempt unpacks its own. Scripts run
//! in namespaces of their own: no network but loopback, and no process or mount outlives them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Made, Packages, file_name, size};
use crate::error::{Outcome, TaskError};
use crate::process::Finished;
use crate::tools;

/// A Debian release and its packages in addition to the minimal set.
pub(super) struct Release {
    suite: &'static str,
    name: &'static str,
    include: &'static str,
}

/// glibc 2.31, Python 3.9 and pip 20.3: older than on the machines that build the packages.
pub(super) const OLD: Release = Release {
    suite: "bullseye",
    name: "Debian 11",
    include: "ca-certificates,python3-venv",
};

/// With systemd, which checks the units.
pub(super) const STABLE: Release = Release {
    suite: "bookworm",
    name: "Debian 12",
    include: "ca-certificates,systemd",
};

/// Keys of Debian's packages, for mmdebstrap.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The use of an installed posthaste: its version, and two seconds of load that must succeed.
const USE: &str = r#"
run --version
run bookshop --listen 127.0.0.1:8080 > "$OUTPUT" &
timeout 20 sh -c 'until grep -q listening "$OUTPUT"; do sleep 0.1; done'
run load http://127.0.0.1:8080/json/3727677562 --rate 200/s --duration 2s --assert 'errors<1%'
"#;

/// Before every script: loopback, and `run`, which starts the program in the root as nobody.
const PRELUDE: &str = r#"
set -eu
ip link set lo up
run() {
    if [ -n "$ROOT" ]; then
        chroot --userspec="$OWNER" "$ROOT" "$PROGRAM" "$@"
    else
        "$PROGRAM" "$@"
    fi
}
"#;

/// An unpacked root. Dropping it removes it.
pub(super) struct Root<'a> {
    packages: &'a Packages,
    /// None for the machine's own root.
    folder: Option<PathBuf>,
    name: String,
}

impl<'a> Root<'a> {
    /// A fresh root of this release.
    pub(super) fn fresh(packages: &'a Packages, release: &Release) -> Outcome<Self> {
        let archive = archive(packages, release)?;
        let root = Self::at(packages, packages.empty("root")?, release.name)?;
        let mut unpack = Command::new("tar");
        unpack.args(["--extract", "--numeric-owner", "--file"]);
        unpack.arg(archive).arg("--directory").arg(root.folder());
        packages.run("tar", &mut unpack, 120)?;
        Ok(root)
    }

    /// A folder as a root.
    pub(super) fn at(packages: &'a Packages, folder: PathBuf, name: &str) -> Outcome<Self> {
        needs_root()?;
        Ok(Self {
            packages,
            folder: Some(folder),
            name: name.to_owned(),
        })
    }

    /// The machine's own root, for programs that run only on the machine that built them.
    pub(super) fn own(packages: &'a Packages) -> Outcome<Self> {
        needs_root()?;
        Ok(Self {
            packages,
            folder: None,
            name: "this machine".to_owned(),
        })
    }

    /// Its path. `/` for the machine's own.
    pub(super) fn folder(&self) -> &Path {
        self.folder.as_deref().unwrap_or(Path::new("/"))
    }

    /// Copies a file into the root's /tmp and returns its path inside.
    pub(super) fn take(&self, file: &Path) -> Outcome<String> {
        let inside = format!("/tmp/{}", file_name(file));
        tools::copy(file, &self.folder().join(&inside[1..]))?;
        Ok(inside)
    }

    /// Runs a script in the machine's shell, with the root's folder as `$ROOT` and the rights of nobody for `run`.
    pub(super) fn script(&self, program: &str, script: &str) -> Outcome<Finished> {
        self.script_as("65534:65534", program, script)
    }

    /// The same, with `run` as the user and group `owner`.
    pub(super) fn script_as(&self, owner: &str, program: &str, script: &str) -> Outcome<Finished> {
        let checkout = &self.packages.checkout;
        tools::debian(checkout, "ip", "iproute2")?;
        let unshare = tools::debian(checkout, "unshare", "util-linux")?;
        let mut command = Command::new(unshare);
        command
            .args(["--mount", "--pid", "--net", "--fork", "--kill-child"])
            .arg(format!(
                "--mount-proc={}",
                self.folder().join("proc").display()
            ))
            .args(["sh", "-c", &format!("{PRELUDE}{script}")])
            .env("ROOT", self.folder.as_deref().unwrap_or(Path::new("")))
            .env("OWNER", owner)
            .env("PROGRAM", program)
            .env("OUTPUT", self.packages.logs.join("bookshop"))
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("LC_ALL", "C");
        self.packages.run("script", &mut command, 180)
    }

    /// Uses the `program` of the package `file`, and returns its line of the table.
    pub(super) fn using(&self, file: &Path, how: &str, program: &str) -> Outcome<Made> {
        self.using_as("65534:65534", file, how, program)
    }

    /// The same as the user and group `owner`.
    pub(super) fn using_as(
        &self,
        owner: &str,
        file: &Path,
        how: &str,
        program: &str,
    ) -> Outcome<Made> {
        self.using_with(owner, file, how, program, USE, "`bookshop`, `load` for 2 s")
    }

    /// The same with another script, which `description` describes. It prints the version, and the bound of `load`
    /// that holds.
    pub(super) fn using_with(
        &self,
        owner: &str,
        file: &Path,
        how: &str,
        program: &str,
        script: &str,
        description: &str,
    ) -> Outcome<Made> {
        let output = self.script_as(owner, program, script)?.stdout;
        let version = output.lines().next().unwrap_or_default();
        let is_ours = version.starts_with("posthaste ");
        let bound = output.lines().find(|line| line.starts_with("holds "));
        let Some(bound) = bound.filter(|_| is_ours) else {
            return Err(TaskError::Failed(format!("its use ended with:\n{output}")));
        };
        Ok(Made {
            package: file_name(file),
            bytes: size(file)?,
            tried: format!("{how} on {}, {description}", self.name),
            found: format!("{version}, {}", bound.replace("  ", " ")),
        })
    }
}

impl Drop for Root<'_> {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // A root that could not be removed is removed before the next.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// The minimal root of a release as an archive, made once.
fn archive(packages: &Packages, release: &Release) -> Outcome<PathBuf> {
    let mmdebstrap = tools::debian(&packages.checkout, "mmdebstrap", "mmdebstrap")?;
    // Ubuntu does not include the keys of Debian's packages.
    if !Path::new(KEYS).is_file() {
        tools::install(&packages.checkout, "debian-archive-keyring")?;
    }
    let folder = packages.folder.join("roots").join(release.suite);
    let archive = folder.join("root.tar");
    let wanted = format!("{} {}", release.suite, release.include);
    tools::made(wanted.as_bytes(), &folder, || {
        eprintln!("  making a root of {} with mmdebstrap", release.name);
        std::fs::create_dir_all(&folder).map_err(|error| TaskError::at(&folder, error))?;
        let mut make = Command::new(&mmdebstrap);
        make.args(["--variant=minbase", "--include", release.include])
            .arg(release.suite)
            .arg(&archive);
        packages.run("mmdebstrap", &mut make, 600).map(drop)
    })?;
    Ok(archive)
}

/// Fails if chroot(2) and device nodes are not permitted.
fn needs_root() -> Outcome<()> {
    if rustix::process::geteuid().is_root() {
        Ok(())
    } else {
        Err(TaskError::Missing(
            "packages are tried in a root of their own, which needs root: sudo env \"PATH=$PATH\" cargo xtask package"
                .into(),
        ))
    }
}
