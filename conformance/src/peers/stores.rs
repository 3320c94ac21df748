//! The workspace's own tests that need a PostgreSQL. Elsewhere they are reported as ignored.

use std::time::Duration;

use crate::error::{Outcome, TaskError};
use crate::postgres::Postgres;
use crate::site::Site;
use posthaste_harness::output;
use posthaste_harness::waiting::UNIT;

/// Time limit for building and running the tests of a package.
const TESTS: Duration = Duration::from_secs(1800);

/// Tests of a package's library.
pub(crate) struct Tests<'a> {
    pub(crate) package: &'a str,
    /// Part of their names.
    pub(crate) filter: &'a str,
    /// Further arguments of the test binary.
    pub(crate) arguments: &'a [&'a str],
    /// Kills of each test of durability.
    pub(crate) kills: usize,
}

/// The packages with such tests, and the part of the names of all that are run here.
const PACKAGES: [(&str, &str); 2] = [
    ("posthaste-broker", ""),
    ("posthaste-papers", "broker::prototype"),
];

/// Runs them with a server of their own. A missing server is a failure, because nothing else runs these tests.
pub(crate) fn postgres(site: &Site) -> Outcome<()> {
    let server = Postgres::start(site).map_err(|error| TaskError::Failed(error.to_string()))?;
    PACKAGES.iter().try_for_each(|(package, filter)| {
        let tests = Tests {
            package,
            filter,
            arguments: &[],
            kills: 20,
        };
        run(site, &server, &tests, |_| ())
    })
}

/// Runs tests, the ignored ones included, on this server. Calls `hear` with the output.
pub(crate) fn run(
    site: &Site,
    server: &Postgres,
    tests: &Tests<'_>,
    hear: impl FnMut(&str),
) -> Outcome<()> {
    let mut command = site.tests(tests.package, UNIT)?.command();
    command
        .args(["--quiet", tests.filter, "--include-ignored"])
        .args(tests.arguments)
        .env("POSTHASTE_POSTGRES", server.url())
        .env("POSTHASTE_POSTGRES_CERTIFICATE", &server.certificate)
        .env("POSTHASTE_KILLS", tests.kills.to_string());
    output::run(&mut command, TESTS, hear)
}
