//! First event and gaps of streams, compared with the log of the server's own sends. Both processes use
//! CLOCK_MONOTONIC.
//!
//! The server's first event is counted from the arrival of the request, by the kernel's stamp, the generator's from its
//! due time. The difference therefore also holds the send lateness. It is an upper bound of the error.

use std::path::PathBuf;
use std::process::Command;

use crate::bench::{Bench, Figure, Measure, median, quantile};
use crate::cores::{real_time, server};
use crate::error::{Outcome, TaskError, check};
use crate::load::LoadReport;
use crate::site::{Server, free_address};
use crate::tools;

/// Highest permitted difference of medians, in µs.
const BAR: f64 = 100.0;
/// Events of a reply, as in conformance/programs/streams/events.py.
const EVENTS: u64 = 50;
/// Streams per second, for 1,000 events per second.
const RATE: &str = "20/s";
/// The percentiles of the table, as in the report.
const PERCENTILES: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];

/// The server and the file of its log.
struct LoggingServer {
    server: Server,
    log: PathBuf,
}

/// Times of the replies in the log, in µs.
struct LoggedTimes {
    first: Vec<f64>,
    gap: Vec<f64>,
}

/// The generator's percentiles minus the server's, of several runs.
pub(crate) fn events(bench: &Bench) -> Outcome<Vec<Figure>> {
    let server = start(bench)?;
    let mut runs = Vec::new();
    for _ in 0..bench.or_quick(5, 2) {
        runs.push(run(bench, &server)?);
    }
    let mut figures = Vec::new();
    let columns = ["first event", "gap"].map(|figure| PERCENTILES.map(|(key, _)| (figure, key)));
    for (column, (figure, key)) in columns.into_iter().flatten().enumerate() {
        let ours: Vec<f64> = runs.iter().map(|run| run[column].0).collect();
        let theirs: Vec<f64> = runs.iter().map(|run| run[column].1).collect();
        let more: Vec<f64> = runs
            .iter()
            .map(|run| run[column].0 - run[column].1)
            .collect();
        let difference = median(&more);
        let compared = Figure::new(
            format!("{figure} at {key}: more than in the server's log"),
            Measure::median(&more, "µs"),
        );
        figures.push(match key {
            "p50" => compared.target(
                format!("within {BAR} µs of the log"),
                difference.abs() <= BAR,
            ),
            _ => compared,
        });
        figures.push(
            Figure::new(format!("{figure} at {key}"), Measure::median(&ours, "µs"))
                .peer("the server's log", Measure::median(&theirs, "µs"))
                .detail(),
        );
    }
    Ok(figures)
}

/// Percentiles of one run in µs, the generator's and the server's: of the first event, then of the gaps.
fn run(bench: &Bench, server: &LoggingServer) -> Outcome<[(f64, f64); 4]> {
    let length = bench.or_quick("20s", "5s");
    let options = [
        "--rate",
        RATE,
        "--duration",
        length,
        // Connections are open when requests are counted.
        "--warm-up",
        "3s",
        "--stream",
        "sse",
    ];
    let report = bench.load(&server.server.url("/"), &options, 120)?;
    report.expect_all("ok")?;
    let logged = server.times(&report)?;
    let mut values = Vec::new();
    for (figure, times) in [("first_ms", &logged.first), ("gap_ms", &logged.gap)] {
        for (key, share) in PERCENTILES {
            let ours = report.number(&format!("events/{figure}/{key}"))? * 1e3;
            values.push((ours, quantile(times, share)));
        }
    }
    let values = values.try_into();
    values.map_err(|_| TaskError::Failed("four percentiles are compared".into()))
}

impl LoggingServer {
    /// The times of the last replies in the log: those to the requests that the report counts.
    fn times(&self, report: &LoadReport) -> Outcome<LoggedTimes> {
        let text = std::fs::read_to_string(&self.log);
        let text = text.map_err(|error| TaskError::at(&self.log, error))?;
        let mut replies = Vec::new();
        for line in text.lines() {
            let times: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
            replies.push(times.map_err(|error| TaskError::at(&self.log, error))?);
        }
        replies.sort();
        let counted = report.intended()? as usize;
        check(counted > 0 && replies.len() >= counted, || {
            format!(
                "{} replies in the log, {counted} in the report",
                replies.len()
            )
        })?;
        let replies = &replies[replies.len() - counted..];
        let is_whole = |times: &Vec<u64>| times.len() as u64 == EVENTS + 1;
        check(replies.iter().all(is_whole), || {
            "a reply of the log is not whole".into()
        })?;
        let events = report.number("events/count")?;
        check(events == (counted as u64 * EVENTS) as f64, || {
            format!("{events} events of {counted} replies with {EVENTS} each")
        })?;
        let micros = |pair: &[u64]| (pair[1] - pair[0]) as f64 / 1e3;
        Ok(LoggedTimes {
            first: replies.iter().map(|times| micros(&times[..2])).collect(),
            gap: replies
                .iter()
                .flat_map(|times| times[1..].windows(2).map(micros))
                .collect(),
        })
    }
}

/// Starts the server on its core, with real-time priority if permitted.
fn start(bench: &Bench) -> Outcome<LoggingServer> {
    let site = &bench.site;
    let python = tools::debian(&site.checkout, "python3", "python3")?;
    let python = python.display().to_string();
    let log = site.checkout.peer_folder("events")?.join("sent.log");
    tools::write(&log, "")?;
    let script = site.checkout.path("conformance/programs/streams/events.py");
    let (script, file) = (script.display().to_string(), log.display().to_string());
    let address = free_address()?;
    let port = address.port().to_string();
    let own = [python.as_str(), &script, &port, &file];
    let line = [server(), real_time(), &own].concat();
    let mut command = Command::new(line[0]);
    let server = site.serve("events", command.args(&line[1..]), address)?;
    Ok(LoggingServer { server, log })
}
