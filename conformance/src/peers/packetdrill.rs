//! packetdrill scripts of Linux's own tests against the TCP model. Debian's package of the kernel's source has them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use posthaste_harness::output;

use crate::error::{Outcome, TaskError, check};
use crate::process;
use crate::site::Site;
use crate::tools;

/// The package, with 24 scripts in version 6.12.117.
const PACKAGE: &str = "linux-source-6.12";
/// Scripts that have to pass. Five others do not apply, and one differs by the number of pages in a packet.
const PASSING: usize = 18;
/// Time limit for reading the archive of the source, about 1.5 GB.
const UNPACKING: Duration = Duration::from_secs(600);
/// Time limit for the scripts. They run in virtual time.
const TESTS: Duration = Duration::from_secs(120);

/// Runs the scripts. One that differs without a documented reason is a failure.
pub(crate) fn packetdrill(site: &Site) -> Outcome<()> {
    let scripts = site.checkout.peer_folder("packetdrill")?.join("scripts");
    tools::made(PACKAGE.as_bytes(), &scripts, || unpack(site, &scripts))?;
    let mut passed = 0;
    let mut command = site.tests("posthaste-tcp", "tcp")?.command();
    command
        .args(["public_scripts", "--ignored", "--nocapture"])
        .env("PACKETDRILL_SCRIPTS", &scripts);
    output::run(&mut command, TESTS, |line| {
        passed += usize::from(line.contains(".pkt: passes"));
    })?;
    check(passed >= PASSING, || {
        format!("{passed} scripts pass, not {PASSING} or more")
    })
}

/// Downloads the package and keeps its scripts.
fn unpack(site: &Site, scripts: &Path) -> Outcome<()> {
    let folder = site.checkout.peer_folder("packetdrill")?;
    std::fs::create_dir_all(scripts).map_err(|error| TaskError::at(scripts, error))?;
    tools::download(&site.checkout, PACKAGE, &folder)?;
    let pipeline = format!(
        "set -o pipefail
        dpkg-deb --fsys-tarfile {PACKAGE}_*.deb | tar -xO ./usr/src/{PACKAGE}.tar.xz \
        | tar -xJ -C scripts --wildcards '*/net/packetdrill/*'
        rm {PACKAGE}_*.deb"
    );
    let mut bash = Command::new("bash");
    bash.args(["-e", "-c", &pipeline]).current_dir(&folder);
    process::run("packetdrill-scripts", &mut bash, UNPACKING, &site.logs).map(drop)
}
