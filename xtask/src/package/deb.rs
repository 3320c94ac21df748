//! The Debian packages: built by cargo-deb from `package.metadata.deb` in crates/posthaste/Cargo.toml.

use std::path::{Path, PathBuf};

use super::built::{BuildVariant, TARGET};
use super::root::{Root, STABLE};
use super::{Made, Packages, VERSION};
use crate::checkout::building;
use crate::error::Outcome;
use crate::tools;

/// The version of cargo-deb.
const CARGO_DEB: &str = "3.8.0";

/// The user that the package creates, and the program that this user runs.
pub(super) const OWNER: &str = "posthaste:posthaste";
pub(super) const PROGRAM: &str = "/usr/bin/posthaste";

/// Checks after the installation: units, user, pages, completions, and configurations and a store that the services
/// accept.
const CHECKS: &str = r#"
cd "$ROOT"
for file in usr/lib/systemd/system/posthaste-gateway.service usr/lib/systemd/system/posthaste-broker.service \
    usr/lib/systemd/system/posthaste-agent.service usr/share/doc/posthaste/deploy/nats.conf \
    usr/share/man/man1/posthaste-load.1.gz usr/share/bash-completion/completions/posthaste \
    usr/share/zsh/vendor-completions/_posthaste usr/share/fish/vendor_completions.d/posthaste.fish \
    usr/share/doc/posthaste/examples/gateway.toml; do
    test -f "$file" || { echo "there is no $file"; exit 1; }
done
grep '^posthaste:.*:/usr/sbin/nologin$' etc/passwd
chroot . dpkg-query --show --showformat '${Conffiles}\n' posthaste | grep /etc/posthaste/gateway.toml
run gateway --config /etc/posthaste/gateway.toml --check
run broker --config /etc/posthaste/broker.toml --check
run broker token new ada --config /etc/posthaste/broker.toml
test -f var/lib/posthaste/offers.db
"#;

/// Check of the services by systemd. It has no manual pages to search for.
const UNITS: &str = r#"
chroot "$ROOT" systemd-analyze verify --man=no posthaste-gateway.service posthaste-broker.service posthaste-agent.service
"#;

/// Check after the removal: only the user is left.
const PURGE: &str = r#"
chroot "$ROOT" apt-get --quiet --yes purge posthaste
cd "$ROOT"
for path in usr/bin/posthaste etc/posthaste var/lib/posthaste usr/lib/systemd/system/posthaste-gateway.service; do
    test ! -e "$path" || { echo "$path was left"; exit 1; }
done
"#;

/// Makes it, installs it with apt, checks its files, uses it, and purges it.
pub(super) fn make(packages: &Packages) -> Outcome<Made> {
    let file = pack(packages, BuildVariant::Complete)?;
    let root = Root::fresh(packages, &STABLE)?;
    install(&root, &file)?;
    root.script_as(OWNER, PROGRAM, CHECKS)?;
    root.script("", UNITS)?;
    let made = root.using_as(OWNER, &file, "`apt-get install`, checks, purge", PROGRAM)?;
    root.script("", PURGE)?;
    Ok(made)
}

/// Packs a build and returns the package.
pub(super) fn pack(packages: &Packages, variant: BuildVariant) -> Outcome<PathBuf> {
    packages.built(variant)?;
    let checkout = &packages.checkout;
    let cargo_deb = tools::cargo(checkout, "cargo-deb", CARGO_DEB, "lzma")?;
    let (name, options): (_, &[&str]) = match variant {
        BuildVariant::Complete => ("posthaste", &[]),
        BuildVariant::Gateway => ("posthaste-gateway", &["--variant", "gateway"]),
    };
    let file = packages
        .folder
        .join(format!("{name}_{VERSION}-1_amd64.deb"));
    let mut pack = building(checkout, cargo_deb);
    pack.args(["--no-build", "--no-strip", "--package", "posthaste"])
        .args(options)
        .args(["--target", TARGET, "--profile", "dist", "--output"])
        .arg(&file)
        .env("CARGO_TARGET_DIR", variant.target(checkout)?);
    packages.run("cargo-deb", &mut pack, 600)?;
    Ok(file)
}

/// Installs a package without a network.
pub(super) fn install(root: &Root<'_>, file: &Path) -> Outcome<()> {
    let inside = root.take(file)?;
    let install =
        format!("chroot \"$ROOT\" apt-get --quiet --yes --no-install-recommends install {inside}");
    root.script("", &install).map(drop)
}
