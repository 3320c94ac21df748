//! The common start of two agents, one of them behind a line with 20 ms in one direction and none in the other.
//!
//! The line is emulated between two network namespaces with the kernel's TCP. Each agent loads a server of its own
//! namespace. Both servers log the kernel's stamps of their requests on one clock, so the difference between the agents
//! is known. It is compared with the bounds of the report.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::conductor::{nats, nats_url};
use crate::bench::{Bench, Figure, Measure, median, quantile};
use crate::error::{Outcome, TaskError, check};
use crate::process::Running;
use crate::site::{Server, free_address};
use crate::tools;

/// Requests per second of both agents, and seconds of a run.
const RATE: u64 = 20;
const SECONDS: u64 = 2;
/// Options of the line: 20 ms from the agent, none to it.
const LINE: [&str; 4] = ["--up", "--delay 20ms", "--down", "--delay 0ms"];
/// Expected bound of the clock behind the line in ms: half of its round trip, and of a busy machine's.
const BOUND: (f64, f64) = (10.0, 12.0);

/// Two agents, each with a server, and the NATS server.
struct Agents {
    nats: Server,
    url: String,
    logs: [PathBuf; 2],
    _running: Vec<Running>,
}

/// A start: the time by which the second agent began before the first, and the bounds of both, in ms.
struct Start {
    skew: f64,
    bounds: [f64; 2],
    is_warned: bool,
}

/// Repeated starts.
pub(crate) fn one_way(bench: &Bench) -> Outcome<Vec<Figure>> {
    let agents = Agents::start(bench)?;
    let mut starts = Vec::new();
    for _ in 0..bench.or_quick(20, 3) {
        starts.push(agents.run(bench)?);
    }
    let skews: Vec<f64> = starts.iter().map(|start| start.skew).collect();
    let bounds: Vec<f64> = starts
        .iter()
        .map(|start| start.bounds.iter().sum())
        .collect();
    let behind: Vec<f64> = starts.iter().map(|start| start.bounds[1]).collect();
    let mut pairs = skews.iter().zip(&bounds);
    let is_within = pairs.all(|(skew, bound)| skew.abs() <= *bound);
    let is_warned = starts.iter().all(|start| start.is_warned);
    let bound = median(&behind);
    Ok(vec![
        Figure::new(
            "20 ms from an agent and 0 to it: start before the other agent",
            Measure::median(&skews, "ms"),
        )
        .peer("sum of the reported bounds", Measure::median(&bounds, "ms"))
        .target("within the bounds in each run", is_within),
        Figure::new(
            "20 ms from an agent and 0 to it: reported bound of its clock",
            Measure::median(&behind, "ms"),
        )
        .target("about 10 ms", (BOUND.0..BOUND.1).contains(&bound))
        .remark(format!("90 % below {:.2} ms", quantile(&behind, 0.9))),
        Figure::sentence("20 ms from an agent and 0 to it: the report warns")
            .target("in each run", is_warned),
    ])
}

impl Agents {
    fn start(bench: &Bench) -> Outcome<Self> {
        let site = &bench.site;
        let nats = nats(bench, "agents-one-way-nats")?;
        let folder = site.checkout.peer_folder("agents-one-way")?;
        let python = tools::debian(&site.checkout, "python3", "python3")?;
        let script = site.checkout.path("conformance/programs/streams/events.py");
        let port = free_address()?.port();
        let logs = ["a", "b"].map(|name| folder.join(format!("{name}.log")));
        let (python, script) = (python.display(), script.display());
        let line = |log: &Path, agent: String| {
            let (log, program) = (log.display(), site.binary.display());
            format!("{python} {script} {port} {log} & exec {program} agent --fleet bench {agent}")
        };
        let near = line(
            &logs[0],
            format!("--name a --threads 1 --nats {}", nats_url(&nats)),
        );
        // The other end of the link has this address.
        let far_url = format!("nats://10.0.0.2:{}", nats.address.port());
        let far = line(
            &logs[1],
            format!("--name b --threads 1 --nats {far_url} --nats-insecure"),
        );
        let mut near_command = Command::new("sh");
        near_command.args(["-c", &near]);
        let mut far_command = Command::new(&site.binary);
        far_command
            .arg("net")
            .args(LINE)
            .args(["--to", &nats.address.to_string()])
            .args(["--", "sh", "-c", &far]);
        for log in &logs {
            tools::write(log, "")?;
        }
        let running = vec![
            Running::start("near", &mut near_command, &site.logs)?,
            Running::start("far", &mut far_command, &site.logs)?,
        ];
        Ok(Self {
            nats,
            url: format!("http://127.0.0.1:{port}/"),
            logs,
            _running: running,
        })
    }

    /// One run, and the times of its requests in both logs.
    fn run(&self, bench: &Bench) -> Outcome<Start> {
        for log in &self.logs {
            tools::write(log, "")?;
        }
        let (rate, length) = (format!("{RATE}/s"), format!("{SECONDS}s"));
        let nats = nats_url(&self.nats);
        let options = ["--rate", &rate, "--duration", &length, "--agents", "a,b"];
        let fleet = ["--nats", &nats, "--fleet", "bench"];
        let arguments = [&[self.url.as_str()][..], &options, &fleet].concat();
        let report = bench.site.load(&arguments, 120)?;
        report.expect_all("ok")?;
        let agents = report.part("agents")?;
        let bound = |index: usize| agents[index]["clock_bound_ms"].as_f64();
        let bounds = bound(0).zip(bound(1)).ok_or_else(|| {
            TaskError::Failed(format!("the report has no bounds of clocks: {agents}"))
        })?;
        let is_warning = |warning: &Value| {
            let text = warning.as_str();
            text.is_some_and(|text| text.contains("before or after the common instant"))
        };
        let warnings = agents[1]["warnings"].as_array();
        Ok(Start {
            skew: self.skew()?,
            bounds: [bounds.0, bounds.1],
            is_warned: warnings.is_some_and(|warnings| warnings.iter().any(is_warning)),
        })
    }

    /// The time by which the second agent is early, in ms: the median over its requests.
    fn skew(&self) -> Outcome<f64> {
        let [near, far] = [arrivals(&self.logs[0])?, arrivals(&self.logs[1])?];
        // The second agent has the odd requests.
        let apart = 1e3 / RATE as f64;
        let pairs = near.iter().zip(&far);
        let early: Vec<f64> = pairs.map(|(near, far)| near + apart - far).collect();
        Ok(median(&early))
    }
}

/// The arrivals of the requests of a run in a log, in ms. Lines are written at the ends of replies.
fn arrivals(log: &Path) -> Outcome<Vec<f64>> {
    let due = (RATE * SECONDS / 2) as usize;
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let text = std::fs::read_to_string(log).map_err(|error| TaskError::at(log, error))?;
        let first = |line: &str| line.split(' ').next()?.parse::<u64>().ok();
        let times: Option<Vec<u64>> = text.lines().map(first).collect();
        let mut times = times.ok_or_else(|| TaskError::at(log, "not a line of times"))?;
        if times.len() == due {
            times.sort_unstable();
            return Ok(times.iter().map(|ns| *ns as f64 / 1e6).collect());
        }
        check(Instant::now() < end, || {
            format!("{} of {due} requests in {}", times.len(), log.display())
        })?;
        std::thread::sleep(Duration::from_millis(50));
    }
}
