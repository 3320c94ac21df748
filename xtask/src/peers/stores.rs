//! The broker's own tests with a real PostgreSQL.

use std::time::Duration;

use crate::checkout::cargo;
use crate::postgres::Postgres;
use crate::process;
use crate::site::Site;
use crate::trouble::Outcome;

/// Time limit for building and running the broker's tests.
const TESTS: Duration = Duration::from_secs(1800);

/// Runs them with a server of their own.
pub(crate) fn postgres(site: &Site) -> Outcome<()> {
    tests(site, &[], 20, |_| ())
}

/// Runs the broker's tests with these further arguments and this number of kills for durability. Calls `hear` with the
/// output.
pub(crate) fn tests(
    site: &Site,
    arguments: &[&str],
    kills: usize,
    hear: impl FnMut(&str),
) -> Outcome<()> {
    let server = Postgres::start(site)?;
    let mut command = cargo(&site.checkout);
    command
        .args(["test", "--quiet", "--package", "posthaste-broker", "--lib"])
        .args(arguments)
        .env("POSTHASTE_POSTGRES", server.url())
        .env("POSTHASTE_POSTGRES_CERTIFICATE", &server.certificate)
        .env("POSTHASTE_KILLS", kills.to_string());
    process::pass_through("cargo test", &mut command, TESTS, hear)
}
