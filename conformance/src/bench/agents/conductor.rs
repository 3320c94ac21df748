//! A conductor with many agents on one core: CPU time, memory, the live view and the sums.
//!
//! The agents are simulated by one process on the other core, and their notes are those of real shares. The live view is
//! observed from outside: a second is there when its line is in the file of seconds.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use crate::bench::pinned::number;
use crate::bench::{Bench, Figure, Measure};
use crate::builds::example;
use crate::cores::{generator, server};
use crate::error::{Outcome, TaskError, check};
use crate::load::{LoadReport, Loading};
use crate::process::Running;
use crate::site::{Server, free_address};
use crate::tools;

/// Requests per second of an agent.
const RATE: usize = 500;
/// Seconds within which agents report a second, before it is passed on without them.
const LATE: f64 = 2.0;
/// Interval of looks at the file of seconds.
const LOOK: Duration = Duration::from_millis(5);
/// Time for agents to connect, and for a conductor to prepare them and measure their clocks.
const PREPARATION: u64 = 120;
/// Seconds at the beginning that do not count.
const FIRST: usize = 3;
/// Parts of a report that must be those of the added tallies.
const SUMS: [&str; 14] = [
    "intended",
    "outcomes",
    "statuses",
    "connections",
    "bytes_sent",
    "bytes_received",
    "sent_rate",
    "achieved_rate",
    "response_time_ms",
    "ok_response_time_ms",
    "response_time_bins",
    "service_time_ms",
    "send_lateness_ms",
    "phases_ms",
];

/// The simulated agents and their NATS server.
struct Agents {
    count: usize,
    nats: Server,
    running: Running,
}

/// A run with all agents.
struct Conducted {
    report: LoadReport,
    /// Seconds from the end of each second until its line was there.
    delays: Vec<f64>,
    /// CPU time of the conductor for each second of the run.
    cpu: Vec<f64>,
    /// The report of the agents' totals, added up in their process.
    added: Value,
}

/// 300 agents. 3,000 would need 13 GB: the conductor has 4 MiB of tallies for each.
pub(crate) fn conductor(bench: &Bench) -> Outcome<Vec<Figure>> {
    conduct(bench, bench.or_quick(300, 20))
}

/// Starts a NATS server with JetStream on the core of the servers. Its files are in `folder`.
pub(super) fn nats(bench: &Bench, name: &str) -> Outcome<Server> {
    let site = &bench.site;
    let program = tools::debian(&site.checkout, "nats-server", "nats-server")?;
    let folder = site.checkout.peer_folder(name)?;
    std::fs::remove_dir_all(&folder).map_err(|error| TaskError::at(&folder, error))?;
    let address = free_address()?;
    let (program, port) = (program.display().to_string(), address.port().to_string());
    let store = folder.display().to_string();
    let own = [
        &program,
        "-js",
        "-a",
        "127.0.0.1",
        "-p",
        &port,
        "-sd",
        &store,
    ];
    let line = [server(), &own].concat();
    site.serve("nats", Command::new(line[0]).args(&line[1..]), address)
}

/// The figures of a run with this number of agents.
fn conduct(bench: &Bench, count: usize) -> Outcome<Vec<Figure>> {
    let agents = Agents::start(bench, count)?;
    let seconds = bench.or_quick(30, 6);
    let Conducted {
        report,
        delays,
        cpu,
        added,
    } = agents.conduct(bench, seconds)?;
    let used: Vec<f64> = cpu[FIRST..].to_vec();
    let per_agent: Vec<f64> = used.iter().map(|cpu| cpu * 1e6 / count as f64).collect();
    let slowest = delays.iter().copied().fold(0.0, f64::max);
    let mut differences = Vec::new();
    for part in SUMS {
        if *report.part(part)? != added[part] {
            differences.push(part);
        }
    }
    let due = (count * RATE * seconds) as u64;
    let is_exact = differences.is_empty() && report.intended()? == due;
    let busiest = used.iter().copied().fold(0.0, f64::max);
    let mean = used.iter().sum::<f64>() / used.len() as f64;
    let peak = number(report.finished.peak_kib) / 1024.0;
    Ok(vec![
        Figure::new(
            format!("{count} agents: CPU time of the conductor per second, on one core"),
            Measure::new(mean * 1e3, "ms"),
        )
        .target("in real time: below 1,000 ms", mean < 1.0)
        .remark(format!("at most {:.0} ms", busiest * 1e3)),
        Figure::new(
            format!("{count} agents: CPU time of the conductor per agent and second"),
            Measure::median(&per_agent, "µs"),
        ),
        Figure::new(
            format!("{count} agents: a second is shown after its end, median"),
            Measure::median(&delays, "s"),
        )
        .target("at most 2 s", slowest <= LATE + 0.2)
        .remark(format!("at most {slowest:.2} s")),
        Figure::sentence(format!(
            "{count} agents: sums and percentiles of the report are those of the added totals"
        ))
        .target("equal", is_exact)
        .remark(differences.join(", ")),
        Figure::new(
            format!("{count} agents: peak memory of the conductor"),
            Measure::new(peak, "MiB"),
        ),
        Figure::new(
            format!("{count} agents: CPU time of the conductor for the whole command"),
            Measure::new(report.finished.cpu.as_secs_f64(), "s"),
        )
        .remark(format!("{:.1} s long", report.finished.wall.as_secs_f64()))
        .detail(),
    ])
}

impl Agents {
    fn start(bench: &Bench, count: usize) -> Outcome<Self> {
        let site = &bench.site;
        let nats = nats(bench, "agents-conductor-nats")?;
        let program = example(&site.checkout, "posthaste-fleet", "simulated_agents")?
            .display()
            .to_string();
        let (url, conductor) = (nats_url(&nats), site.binary.display().to_string());
        let count_word = count.to_string();
        let own = [program.as_str(), &url, "bench", &conductor, &count_word];
        let line = [server(), &own].concat();
        let mut command = Command::new(line[0]);
        let running = Running::start("agents", command.args(&line[1..]), &site.logs)?;
        let agents = Self {
            count,
            nats,
            running,
        };
        agents.wait_for("ready", PREPARATION)?;
        Ok(agents)
    }

    /// Waits until the agents have said this.
    fn wait_for(&self, word: &str, seconds: u64) -> Outcome<String> {
        let end = Instant::now() + Duration::from_secs(seconds);
        loop {
            let output = self.running.output();
            let mut lines = output.lines();
            if let Some(line) = lines.find(|line| line.starts_with(word)) {
                return Ok(line.to_owned());
            }
            check(!self.running.has_ended() && Instant::now() < end, || {
                format!("the agents did not say {word:?}: {output}")
            })?;
            std::thread::sleep(LOOK);
        }
    }

    /// One run of `posthaste load` on the generator's core.
    fn conduct(&self, bench: &Bench, seconds: usize) -> Outcome<Conducted> {
        let site = &bench.site;
        let bookshop = bench.bookshop(&[])?;
        let folder = site.checkout.peer_folder("agents-conductor")?;
        std::fs::remove_dir_all(&folder).map_err(|error| TaskError::at(&folder, error))?;
        let (rate, length) = (self.count * RATE, format!("{seconds}s"));
        let arguments = [
            bookshop.url("/json/3727677562"),
            format!("--rate={rate}/s"),
            format!("--duration={length}"),
            format!("--agents={}", self.count),
            format!("--nats={}", nats_url(&self.nats)),
            "--fleet=bench".to_owned(),
            format!("--out={}", folder.display()),
        ];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let loading = site.start_load(generator(), &arguments)?;
        let watched = watch(&loading, &folder.join("seconds.csv"), seconds);
        let report = loading.finish(PREPARATION + 60)?;
        let (delays, cpu) = watched?;
        let added = self.wait_for("{", 10)?;
        let added = serde_json::from_str(&added)
            .map_err(|error| TaskError::Failed(format!("the agents' sum: {error}")))?;
        Ok(Conducted {
            report,
            delays,
            cpu,
            added,
        })
    }
}

/// Observations of a run while it lasts: delay and CPU time of each second.
type Watched = (Vec<f64>, Vec<f64>);

/// Follows the file of seconds until it has all of them.
fn watch(loading: &Loading, file: &Path, seconds: usize) -> Outcome<Watched> {
    let (mut delays, mut cpu) = (Vec::new(), Vec::new());
    let mut before = Duration::ZERO;
    let end = Instant::now() + Duration::from_secs(PREPARATION + seconds as u64);
    while delays.len() < seconds {
        check(
            !loading.running().has_ended() && Instant::now() < end,
            || format!("{} of {seconds} seconds were shown", delays.len()),
        )?;
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for row in whole.lines().skip(1 + delays.len()) {
            let (now, used) = (Timestamp::now(), loading.running().cpu()?);
            let second = end_of(row).ok_or_else(|| TaskError::at(file, "not a row of a second"))?;
            delays.push(now.duration_since(second).as_secs_f64());
            cpu.push((used - before).as_secs_f64());
            before = used;
        }
        std::thread::sleep(LOOK);
    }
    Ok((delays, cpu))
}

/// The end of the second of a row.
fn end_of(row: &str) -> Option<Timestamp> {
    row.split(',').nth(1)?.parse().ok()
}

/// The URL of a server.
pub(super) fn nats_url(nats: &Server) -> String {
    format!("nats://{}", nats.address)
}
