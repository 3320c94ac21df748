//! The packages of the gateway alone: a Debian package and an OCI image, without generator, emulator and SQLite.
//!
//! The complete build is the service behind the gateway and the load on it.

use std::path::Path;

use super::built::BuildVariant;
use super::root::{Root, STABLE};
use super::{Made, Packages, deb as debian, image as oci};
use crate::error::{Outcome, TaskError, check};
use crate::test::features::uses_gateway;
use crate::tools::write;

/// The head of each SQLite database, and so a part of each program with SQLite.
const SQLITE: &[u8] = b"SQLite format 3";

/// The configuration in use, as in the Debian package.
const CONFIGURATION: &str = "\
listen = \"127.0.0.1:8080\"
admin = \"127.0.0.1:8081\"

[[route]]
path = \"/\"
upstream = [\"127.0.0.1:9000\"]
";

/// Checks after the installation: the files of the gateway and of nothing else, the user, and a configuration that the
/// gateway accepts.
const CHECKS: &str = r#"
cd "$ROOT"
for file in usr/lib/systemd/system/posthaste-gateway.service usr/share/man/man1/posthaste-gateway.1.gz \
    usr/share/bash-completion/completions/posthaste usr/share/zsh/vendor-completions/_posthaste \
    usr/share/fish/vendor_completions.d/posthaste.fish usr/share/doc/posthaste-gateway/examples/gateway.toml; do
    test -f "$file" || { echo "there is no $file"; exit 1; }
done
for file in usr/lib/systemd/system/posthaste-broker.service usr/share/man/man1/posthaste-load.1.gz \
    etc/posthaste/broker.toml; do
    test ! -e "$file" || { echo "there is $file"; exit 1; }
done
grep '^posthaste:.*:/usr/sbin/nologin$' etc/passwd
chroot . dpkg-query --show --showformat '${Conffiles}\n' posthaste-gateway | grep /etc/posthaste/gateway.toml
run gateway --config /etc/posthaste/gateway.toml --check
chroot . systemd-analyze verify --man=no posthaste-gateway.service
"#;

/// Check after the complete package has taken its place: a purge of what is left takes nothing from the other.
const REPLACED: &str = r#"
chroot "$ROOT" dpkg-query --show --showformat '${db:Status-Abbrev}' posthaste-gateway | grep -v '^ii'
cd "$ROOT"
run load --help > "$OUTPUT"
touch var/lib/posthaste/offers.db
chroot . apt-get --quiet --yes purge posthaste-gateway
for path in usr/bin/posthaste etc/posthaste/gateway.toml var/lib/posthaste/offers.db; do
    test -e "$path" || { echo "$path was removed"; exit 1; }
done
chroot . apt-get --quiet --yes purge posthaste
for path in usr/bin/posthaste etc/posthaste var/lib/posthaste; do
    test ! -e "$path" || { echo "$path was left"; exit 1; }
done
"#;

/// The Debian package: makes it, installs it with apt, checks its files, uses it, and lets the complete one replace it.
pub(super) fn deb(packages: &Packages) -> Outcome<Made> {
    let file = debian::pack(packages, BuildVariant::Gateway)?;
    let complete = debian::pack(packages, BuildVariant::Complete)?;
    is_alone(packages)?;
    let root = Root::fresh(packages, &STABLE)?;
    debian::install(&root, &file)?;
    root.script_as(debian::OWNER, debian::PROGRAM, CHECKS)?;
    let made = proxy(
        packages,
        &root,
        debian::OWNER,
        &file,
        "`apt-get install`",
        debian::PROGRAM,
    )?;
    debian::install(&root, &complete)?;
    root.script_as(debian::OWNER, debian::PROGRAM, REPLACED)?;
    Ok(made)
}

/// The image: makes it, unpacks it like a runtime, and uses it with its own entry point and user.
pub(super) fn image(packages: &Packages) -> Outcome<Made> {
    let image = oci::assemble(packages, BuildVariant::Gateway)?;
    is_alone(packages)?;
    let root = Root::at(packages, image.root, "the image alone")?;
    proxy(
        packages,
        &root,
        &image.owner,
        &image.file,
        oci::UNPACKED,
        &image.entry,
    )
}

/// Fails if the binary has more than the gateway.
fn is_alone(packages: &Packages) -> Outcome<()> {
    let has_sqlite = |file: &Path| {
        let bytes = std::fs::read(file).map_err(|error| TaskError::at(file, error))?;
        Ok(bytes.windows(SQLITE.len()).any(|part| part == SQLITE))
    };
    let complete = &packages.built(BuildVariant::Complete)?.binary;
    let alone = &packages.built(BuildVariant::Gateway)?.binary;
    check(has_sqlite(complete)? && !has_sqlite(alone)?, || {
        "SQLite is not in the complete binary, or it is in the gateway's".to_owned()
    })?;
    uses_gateway(alone, &packages.logs)
}

/// Load through the gateway to a service, both of the complete build.
fn proxy(
    packages: &Packages,
    root: &Root<'_>,
    owner: &str,
    file: &Path,
    how: &str,
    program: &str,
) -> Outcome<Made> {
    write(&root.folder().join("tmp/gateway.toml"), CONFIGURATION)?;
    let complete = packages.built(BuildVariant::Complete)?.binary.display();
    let script = format!(
        r#"
run --version
"{complete}" bookshop --listen 127.0.0.1:9000 > "$OUTPUT" &
timeout 20 sh -c 'until grep -q listening "$OUTPUT"; do sleep 0.1; done'
run gateway --config /tmp/gateway.toml > "$OUTPUT" &
timeout 20 sh -c 'until grep -q status "$OUTPUT"; do sleep 0.1; done'
"{complete}" load http://127.0.0.1:8080/json/3727677562 --rate 200/s --duration 2s --assert 'errors<1%'
"#
    );
    root.using_with(
        owner,
        file,
        how,
        program,
        &script,
        "`gateway`, load through it for 2 s",
    )
}
