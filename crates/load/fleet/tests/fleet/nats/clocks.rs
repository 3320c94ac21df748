//! Clocks of other processes. In a time namespace the true offset is known to the nanosecond.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use posthaste_fleet::conductor::Conductor;
use posthaste_fleet::conductor::offset::{ClockEstimate, EXCHANGES};
use posthaste_fleet::names::AgentName;
use posthaste_units::Span;

use super::server::{NatsServer, PATIENCE, on_one_thread, subjects};

/// Offset of the clock in the namespace, in seconds: a day.
const OFFSET: i64 = 86_400;

/// Estimates of each agent.
const ESTIMATES: usize = 50;

/// A process that is killed with its test.
struct AgentProcess(Child);

impl Drop for AgentProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the example `clock_agent`, after the words of a wrapper.
fn start(server: &NatsServer, wrapper: &[&str], name: &str) -> AgentProcess {
    let test = std::env::current_exe().unwrap();
    let build = test.parent().and_then(|folder| folder.parent()).unwrap();
    let program: PathBuf = build.join("examples/clock_agent");
    assert!(
        program.is_file(),
        "{} is built with the tests",
        program.display()
    );
    let mut arguments = wrapper
        .iter()
        .map(Into::into)
        .collect::<Vec<std::ffi::OsString>>();
    arguments.push(program.into());
    let mut command = Command::new(&arguments[0]);
    command
        .args(&arguments[1..])
        .args([&*server.options(name).url.to_string(), "default", name])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    AgentProcess(command.spawn().unwrap())
}

async fn estimates(conductor: &Conductor, agent: &str) -> Vec<ClockEstimate> {
    let agent: AgentName = agent.parse().unwrap();
    let is_there = |found: &[posthaste_fleet::conductor::discovery::FoundAgent]| {
        found.iter().any(|found| found.info.name == agent)
    };
    let found = conductor.find(is_there, PATIENCE).await.unwrap();
    assert!(is_there(&found), "{found:?}");
    let mut estimates = Vec::new();
    for _ in 0..ESTIMATES {
        let agents = std::slice::from_ref(&agent);
        estimates.extend(conductor.clocks(agents, EXCHANGES).await.unwrap());
    }
    estimates
}

fn assert_bounded(estimates: &[ClockEstimate], offset_ns: i64) {
    let error = |estimate: &ClockEstimate| Span::from_nanos(estimate.offset_ns.abs_diff(offset_ns));
    for estimate in estimates {
        assert!(
            error(estimate) <= estimate.bound,
            "{offset_ns}: {estimate:?}"
        );
    }
    let worst = estimates.iter().map(error).max().unwrap();
    let bound = estimates
        .iter()
        .map(|estimate| estimate.bound)
        .max()
        .unwrap();
    println!("largest error {worst}, largest bound {bound}");
}

#[test]
#[ignore = "needs NATS: cargo xtask test --only nats runs it"]
fn the_bound_holds_for_a_clock_that_is_a_day_ahead() {
    let server = NatsServer::open();
    on_one_thread(async {
        let conductor = Conductor::new(server.connect("conductor").await, subjects());
        let _here = start(&server, &[], "here");
        assert_bounded(&estimates(&conductor, "here").await, 0);
        let offset = OFFSET.to_string();
        // As root in this user's namespace, and otherwise in one of its own.
        let unshare = [
            "unshare",
            "--time",
            "--monotonic",
            &offset,
            "--fork",
            "--kill-child",
        ];
        let own_user = [&unshare[..], &["--user", "--map-root-user"]].concat();
        let is_possible = |arguments: &[&str]| {
            let mut command = Command::new(arguments[0]);
            let status = command
                .args(&arguments[1..])
                .arg("true")
                .stderr(Stdio::null())
                .status();
            status.is_ok_and(|status| status.success())
        };
        let wrapper = if is_possible(&unshare) {
            &unshare[..]
        } else {
            &own_user
        };
        let _ahead = start(&server, wrapper, "ahead");
        assert_bounded(
            &estimates(&conductor, "ahead").await,
            OFFSET * 1_000_000_000,
        );
    });
}
