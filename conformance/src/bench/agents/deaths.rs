//! One of three agents, killed at random moments of a run.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::surroundings::{LoggingService, NatsServer, of_agent, rows};
use crate::bench::{Bench, Figure, Measure};
use crate::error::{Outcome, TaskError, check};

/// Requests of an agent's share.
const SHARE: u64 = 150;
/// Requests of an agent per second.
const RATE: f64 = 50.0;
/// The pace of three agents.
const PACE: [&str; 4] = ["--rate", "150/s", "--duration", "3s"];
/// The last moment in ms after the first request. The run has ended then.
const LAST: u64 = 3_300;
/// Longest time for which a killed agent may have sent requests that the report does not know, in s.
const UNREPORTED: f64 = 1.2;
/// Runs at the same time, each with a fleet and a service of its own: a conductor waits for a silent agent.
const TOGETHER: usize = 5;

/// A run with a killed agent.
struct Death {
    lost: u64,
    /// Requests that the service has seen and the report does not know.
    unreported: u64,
}

/// Requests that a killed agent owed, and those of the others.
pub(in crate::bench) fn deaths(bench: &Bench) -> Outcome<Vec<Figure>> {
    let nats = NatsServer::start(&bench.site)?;
    let rows = rows(&bench.site, 3 * SHARE)?;
    let deaths = bench.or_quick(50, 5);
    let mut all = Vec::new();
    // Each fleet reserves storage at the server.
    let fleet = |number: usize| format!("deaths-{}", number % TOGETHER);
    while all.len() < deaths {
        let first = all.len();
        let runs = std::thread::scope(|scope| {
            let run = |number| {
                let (bench, nats, rows) = (&bench, &nats, &rows);
                scope.spawn(move || die(bench, nats, rows, &fleet(number), moment(number as u64)))
            };
            let runs: Vec<_> = (first..first + TOGETHER).map(run).collect();
            let join = |run: std::thread::ScopedJoinHandle<'_, _>| {
                run.join().expect("a run panicked: a bug")
            };
            runs.into_iter().map(join).collect::<Outcome<Vec<Death>>>()
        });
        all.extend(runs?);
    }
    let deaths = all.len() as u64;
    let with_loss = all.iter().filter(|death| death.lost > 0).count();
    let unreported = all.iter().map(|death| death.unreported as f64 / RATE);
    let longest = unreported.clone().fold(0.0, f64::max);
    let unreported: Vec<f64> = unreported.collect();
    Ok(vec![
        // A run in which something does not add up fails the benchmark.
        Figure::new(
            "reports in which each request has one outcome, and the others lost nothing",
            Measure::part(deaths, deaths, "deaths"),
        )
        .target("all", true)
        .remark(format!(
            "{with_loss} with lost requests; the others died after their end"
        )),
        Figure::new(
            "sending of a killed agent that the report does not know",
            Measure::median(&unreported, "s"),
        )
        .target(format!("at most {UNREPORTED} s"), longest <= UNREPORTED),
    ])
}

/// Kills agent b at a moment of a run, and compares the report with the log.
fn die(
    bench: &Bench,
    nats: &NatsServer<'_>,
    rows: &Path,
    fleet: &str,
    moment: Duration,
) -> Outcome<Death> {
    let mut service = LoggingService::start(&bench.site, fleet)?;
    let agents = ["a", "b", "c"].map(|name| nats.agent(&[], fleet, name));
    let [_a, killed, _c] = agents;
    let (_a, killed, _c) = (_a?, killed?, _c?);
    let options = [PACE.as_slice(), &["--agents", "3"]].concat();
    let loading = nats.load(&service, rows, fleet, &options)?;
    let loading = service.begun(loading)?;
    std::thread::sleep(moment);
    killed.signal(Signal::KILL)?;
    let report = loading.finish(120)?;
    let lost = report.outcome("lost");
    let all = 3 * SHARE;
    let about = |violation: &str| {
        format!(
            "{fleet}, killed after {moment:?}: {violation}: {}",
            report.outcomes()
        )
    };
    check(
        report.intended()? == all && report.outcome("ok") + lost == all,
        || about("requests have no outcome"),
    )?;
    let code = if lost > 0 { 3 } else { 0 };
    check(report.finished.code == Some(code), || {
        about("the exit code is wrong")
    })?;
    let mut seen = [const { Vec::new() }; 3];
    for request in service.take()? {
        seen[request.number % 3].push(request.number);
    }
    for (agent, seen) in seen.iter_mut().enumerate() {
        let count = seen.len() as u64;
        seen.sort_unstable();
        seen.dedup();
        check(seen.len() as u64 == count, || about("a request came twice"))?;
        let owed = if agent == 1 { lost } else { 0 };
        check(of_agent(&report, agent, "lost")? == owed as f64, || {
            about("the share of the lost agent is wrong")
        })?;
        check(count + owed >= SHARE, || {
            about("a reported request did not come")
        })?;
    }
    let unreported = (seen[1].len() as u64 + lost).checked_sub(SHARE);
    let unreported = unreported.ok_or_else(|| TaskError::Failed(about("too few requests came")))?;
    Ok(Death { lost, unreported })
}

/// A moment of a run by its number: SplitMix64 (Steele, Lea, Flood 2014).
fn moment(number: u64) -> Duration {
    let state = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Duration::from_millis((z ^ (z >> 31)) % LAST)
}
