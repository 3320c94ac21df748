//! The tests of the fleet that need a NATS server. Elsewhere they are reported as ignored.
//!
//! The tests start, kill and restart their own servers, with the configuration in `deploy/`.

use std::path::Path;
use std::time::Duration;

use crate::builds::Build;
use crate::checkout::cargo;
use crate::error::{Outcome, TaskError};
use crate::process;
use crate::site::Site;
use crate::tools;
use posthaste_harness::output;

/// Time limit for building and running the tests.
const TESTS: Duration = Duration::from_secs(1800);

/// A recent server, for machines with a recent Go.
const RECENT: &str = "github.com/nats-io/nats-server/v2@v2.15.2";

/// Runs them with Debian's server, and with a recent one if Go can build it. A missing server of Debian is a failure,
/// because nothing else runs these tests.
pub(crate) fn nats(site: &Site) -> Outcome<()> {
    let debian = tools::debian(&site.checkout, "nats-server", "nats-server");
    run(
        site,
        &debian.map_err(|error| TaskError::Failed(error.to_string()))?,
    )?;
    if tools::find("go").is_none() {
        println!("  nats: there is no Go to build {RECENT}");
        return Ok(());
    }
    match tools::go(&site.checkout, "nats-server", RECENT) {
        // The last part of the module is its version.
        Ok(program) => run(site, &program.with_file_name("nats-server")),
        // Debian's Go is too old for it.
        Err(error) => {
            println!("  nats: Go did not build {RECENT}: {error}");
            Ok(())
        }
    }
}

fn run(site: &Site, server: &Path) -> Outcome<()> {
    println!("  nats: {}", server.display());
    if site.build != Build::Tested {
        // A peer of the tests, and no target of theirs.
        let example = ["--package", "posthaste-fleet", "--example", "clock_agent"];
        let mut build = cargo(&site.checkout);
        build.args(["build", "--quiet"]).args(example);
        process::pass_through("cargo build", &mut build, TESTS, |_| ())?;
    }
    let mut command = site.tests("posthaste-fleet", "fleet")?.command();
    command
        .args(["--quiet", "nats::", "--ignored"])
        .env("POSTHASTE_NATS_SERVER", server)
        .env("POSTHASTE_PROGRAM", &site.binary);
    output::run(&mut command, TESTS, |_| ())
}
