//! The builds of tarball, Debian packages, wheel and images: profile `dist`, for glibc 2.28 or later.
//!
//! The complete build has all features. That of the gateway alone has one, and a folder of its own.
//!
//! maturin builds it, because maturin also checks that no symbol of a newer glibc is needed. zig is its linker and C
//! compiler, because zig has the old glibc's symbols. The others use the same binary from cargo's folder.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::{Packages, only};
use crate::checkout::{Checkout, building};
use crate::error::{Outcome, TaskError};
use crate::process;
use crate::tools::{self, first_in_path, write};

/// The only platform of the packages so far.
pub(super) const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Time limit of the build. Two shared cores take about fifteen minutes.
const BUILD: Duration = Duration::from_secs(3600);

/// Shells, with the path of each completion script below a prefix.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "share/bash-completion/completions/posthaste"),
    ("zsh", "share/zsh/site-functions/_posthaste"),
    ("fish", "share/fish/vendor_completions.d/posthaste.fish"),
];

/// A build of the packages.
#[derive(Clone, Copy)]
pub(super) enum BuildVariant {
    /// All features.
    Complete,
    /// The gateway alone.
    Gateway,
}

impl BuildVariant {
    /// Features, as cargo and maturin take them.
    const fn features(self) -> &'static [&'static str] {
        match self {
            Self::Complete => &["--all-features"],
            Self::Gateway => &["--no-default-features", "--features", "gateway"],
        }
    }

    /// Cargo's folder.
    pub(super) fn target(self, checkout: &Checkout) -> Outcome<PathBuf> {
        checkout.folder(match self {
            Self::Complete => "",
            Self::Gateway => "gateway-alone",
        })
    }

    /// The folder of the wheel, below that of the packages. The wheel of the gateway alone is no package.
    const fn wheels(self) -> &'static str {
        match self {
            Self::Complete => "wheel",
            Self::Gateway => "gateway-wheel",
        }
    }
}

/// A build and its products.
pub(super) struct Built {
    /// The binary, stripped.
    pub(super) binary: PathBuf,
    /// A prefix with the folder `share`: manual pages and completion scripts.
    pub(super) prefix: PathBuf,
    pub(super) wheel: PathBuf,
}

impl Built {
    /// Builds. An up-to-date build takes seconds.
    pub(super) fn make(packages: &Packages, variant: BuildVariant) -> Outcome<Self> {
        let checkout = &packages.checkout;
        let python = tools::python(checkout, "maturin", "packaging/wheel/requirements.txt")?;
        let programs = python.parent().expect("python lies in a folder");
        let wheels = packages.empty(variant.wheels())?;
        let target = variant.target(checkout)?;
        let mut maturin = building(checkout, programs.join("maturin"));
        maturin
            .args(["build", "--locked", "--profile", "dist"])
            .args(variant.features())
            .args(["--zig", "--compatibility", "manylinux_2_28", "--out"])
            .arg(&wheels)
            // maturin finds pyproject.toml here, and zig as a module of this Python.
            .current_dir(checkout.path("packaging/wheel"))
            .env("CARGO_TARGET_DIR", &target)
            .env("PATH", first_in_path(programs)?);
        process::pass_through("maturin", &mut maturin, BUILD, |_| ())?;
        let products = target.join(TARGET).join("dist");
        let built = Self {
            binary: products.join("posthaste"),
            // cargo-deb expects the installed files among cargo's products.
            prefix: products.join("prefix"),
            wheel: only(&wheels, ".whl")?,
        };
        built.describe(packages)?;
        Ok(built)
    }

    /// Lets the binary write its manual pages and completion scripts.
    fn describe(&self, packages: &Packages) -> Outcome<()> {
        // Files of an earlier version. At first there are none.
        let _ = std::fs::remove_dir_all(&self.prefix);
        let mut man = Command::new(&self.binary);
        man.arg("man").arg(self.prefix.join("share/man/man1"));
        packages.run("man", &mut man, 20)?;
        let mut gzip = Command::new("gzip");
        gzip.args(["--best", "--no-name", "--recursive"])
            .arg(self.prefix.join("share/man"));
        packages.run("gzip", &mut gzip, 20)?;
        for (shell, path) in COMPLETIONS {
            let mut completions = Command::new(&self.binary);
            completions.args(["completions", shell]);
            let script = packages.run("completions", &mut completions, 20)?.stdout;
            let path = self.prefix.join(path);
            let folder = path.parent().expect("it lies in a folder");
            std::fs::create_dir_all(folder).map_err(|error| TaskError::at(folder, error))?;
            write(&path, script)?;
        }
        Ok(())
    }
}
