//! Two brokers on one PostgreSQL. One of them is cut off for a minute.
//!
//! Its connections to the server pass through socat, which is stopped: connections stay open, and no data comes
//! through.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::error::{Outcome, check};
use crate::peers::broker::{broker_on, token};
use crate::peers::generators::{curl_command, get};
use crate::postgres::Postgres;
use crate::site::{Server, Site, free_address};
use crate::tools;

/// Duration of the interruption.
const SILENCE: Duration = Duration::from_secs(60);

/// Time after which a broker out of step must state the age of its answers. It checks every second, and may be three
/// late.
const UNNOTICED: Duration = Duration::from_secs(5);

/// Time limit to be in step again, including the pauses between attempts.
const PATIENCE: Duration = Duration::from_secs(60);

const LIST: &str = "/v1/offers?type=books&limit=1000";

/// One receives writes. The other states the age of its answers and returns to the same state without a restart.
pub(crate) fn for_a_minute(site: &Site) -> Outcome<()> {
    let server = Postgres::start(site)?;
    let line = relay(site, &server)?;
    let direct = format!("{}/postgres", server.url());
    let token = token(site, &direct)?;
    let near = broker_on(site, "near", &direct)?;
    let far = format!("postgres://posthaste@{}/postgres", line.address);
    let far = broker_on(site, "far", &far)?;
    put(site, &near, &token, 0)?;
    until_same(site, &near, &far)?;
    line.running.signal(Signal::STOP)?;
    let since = Instant::now();
    let (mut version, mut lookups) = (0, 0);
    while since.elapsed() < SILENCE {
        version += 1;
        put(site, &near, &token, version)?;
        let asked_at = since.elapsed();
        let age = age(site, &far)?;
        check(age.is_some() || asked_at < UNNOTICED, || {
            format!("after {asked_at:?} of silence an answer does not say its age")
        })?;
        lookups += 1;
        std::thread::sleep(Duration::from_millis(500));
    }
    let age_at_end = age(site, &far)?.unwrap_or_default();
    check(
        age_at_end + UNNOTICED.as_secs() >= SILENCE.as_secs(),
        || format!("after a minute it reports {age_at_end} s"),
    )?;
    check(put(site, &far, &token, 0).is_err(), || {
        "who is cut off takes offers".to_owned()
    })?;
    line.running.signal(Signal::CONT)?;
    until_same(site, &near, &far)?;
    put(site, &far, &token, version + 1)?;
    until_same(site, &near, &far)?;
    println!(
        "  postgres: a minute's silence, {version} writes at the same time, {lookups} lookups: the same in the end"
    );
    Ok(())
}

/// The relay between a broker and the server.
fn relay(site: &Site, server: &Postgres) -> Outcome<Server> {
    let socat = tools::debian(&site.checkout, "socat", "socat")?;
    let address = free_address()?;
    let mut relay = Command::new(socat);
    relay.arg(format!(
        "TCP-LISTEN:{},bind=127.0.0.1,fork,reuseaddr",
        address.port()
    ));
    relay.arg(format!("TCP:{}", server.address()));
    site.serve("socat", &mut relay, address)
}

/// Replaces the offers of ada by ten of this version.
fn put(site: &Site, broker: &Server, token: &str, version: u64) -> Outcome<()> {
    let file = site.logs.join("put.wsqos");
    let offers: String = (0..10)
        .map(|number| {
            format!("<qosOffer name=\"{}\" expires=\"2035-01-01T00:00:00Z\"><price currency=\"EUR\">0.{version:03}</price></qosOffer>", version % 7 + number)
        })
        .collect();
    let document = format!("<wsqos><definition><offers>{offers}</offers></definition></wsqos>");
    tools::write(&file, document)?;
    let mut put = Command::new(&site.binary);
    put.args(["offers", "put", "books", "ada", "--broker", &broker.url("")]);
    put.arg(&file).env("POSTHASTE_BROKER_TOKEN", token);
    site.run("put", &mut put, 30).map(drop)
}

/// The age that a broker states for its answer, in seconds.
fn age(site: &Site, broker: &Server) -> Outcome<Option<u64>> {
    let mut ask = curl_command(
        site,
        broker,
        LIST,
        &["--fail", "--dump-header", "-", "--output", "/dev/null"],
    )?;
    let head = site.run("curl", &mut ask, 20)?.stdout.to_ascii_lowercase();
    let field = head.lines().find_map(|line| line.strip_prefix("age:"));
    Ok(field.and_then(|seconds| seconds.trim().parse().ok()))
}

fn until_same(site: &Site, near: &Server, far: &Server) -> Outcome<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let (theirs, ours) = (get(site, near, LIST)?, get(site, far, LIST)?);
        if theirs == ours && age(site, far)?.is_none() {
            return Ok(());
        }
        check(Instant::now() < end, || format!("{ours} is not {theirs}"))?;
        std::thread::sleep(Duration::from_millis(100));
    }
}
