//! Agents and one process: the same requests, at the same due times, with the same outcomes.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::Value;

use super::load_support::{AgentProcess, RecordingService, conducted, conductor, program};
use super::server::NatsServer;

/// Rows of the data, more than a run has requests. The row of a request is its number.
const ROWS: usize = 2_000;

/// Event loops of the agents, by name.
const LOOPS: [usize; 8] = [2, 1, 3, 1, 1, 2, 1, 1];

/// Two paces: constant with a warm-up, and random with two steps.
const PACES: [&str; 2] = [
    "--rate 300/s --duration 1500ms --warm-up 300ms",
    "--steps 100/s..300/s:2 --duration 2s --arrivals poisson --seed 11",
];

/// The requests that arrived at the service, by number.
type SeenRequests = BTreeMap<u64, (Instant, String)>;

/// A run as seen by the service and by its report.
struct ObservedRun {
    seen: SeenRequests,
    report: Value,
}

/// A mix of two requests, each with its row in the path.
fn mix(folder: &tempfile::TempDir, service: &RecordingService) -> String {
    let address = service.address;
    let request = |name: &str, weight: f64| {
        format!(
            "[[request]]\nname = \"{name}\"\nweight = {weight}\nurl = \"http://{address}/{name}/{{{{row}}}}\"\n"
        )
    };
    let rows: String = (0..ROWS).map(|row| format!("{row}\n")).collect();
    let file = |name: &str, content: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let mix = file(
        "mix.toml",
        [request("one", 0.7), request("two", 0.3)].concat(),
    );
    let rows = file("rows.csv", format!("row\n{rows}"));
    format!("--mix {mix} --data {rows}")
}

/// The requests by number. Panics if one arrived twice.
fn seen(service: &RecordingService) -> SeenRequests {
    let mut seen = BTreeMap::new();
    for (at, target) in service.arrivals() {
        let number = target.rsplit('/').next().unwrap().parse().unwrap();
        let before = seen.insert(number, (at, target));
        assert!(before.is_none(), "twice: {before:?}");
    }
    seen
}

/// Runs the plan in one process, or on the agents up to this number.
fn observe(
    server: &NatsServer,
    service: &RecordingService,
    options: &str,
    agents: Option<usize>,
) -> ObservedRun {
    service.clear();
    let Some(agents) = agents else {
        let arguments = ["load", "--json", "--threads", "3", "--allow-late"];
        let mut command = program();
        let output = command.args(arguments).args(options.split(' ')).output();
        let report = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        return ObservedRun::new(service, report);
    };
    let names: Vec<String> = (1..=agents)
        .map(|number| format!("agent-{number}"))
        .collect();
    let options = format!("{options} --agents {} --allow-late", names.join(","));
    let together = conducted(conductor(server, &options));
    assert_eq!(together.code, 0, "{}", together.messages);
    together.check_identity();
    let loops = together.report["agents"].as_array().unwrap().iter();
    let loops: Vec<usize> = loops
        .map(|agent| agent["loops"].as_u64().unwrap() as usize)
        .collect();
    assert_eq!(loops, LOOPS[..agents]);
    ObservedRun::new(service, together.report)
}

impl ObservedRun {
    fn new(service: &RecordingService, report: Value) -> Self {
        let seen = seen(service);
        Self { seen, report }
    }

    fn number(&self, pointer: &str) -> f64 {
        let number = self.report.pointer(pointer).and_then(Value::as_f64);
        number.unwrap_or_else(|| panic!("no {pointer} in {}", self.report))
    }

    /// The target of each request by number.
    fn targets(&self) -> BTreeMap<u64, &str> {
        let seen = self.seen.iter();
        seen.map(|(number, (_, target))| (*number, target.as_str()))
            .collect()
    }

    /// Counts that may not depend on the number of processes.
    fn counts(&self) -> Vec<Value> {
        let counts = [
            "intended",
            "outcomes",
            "warm_up_requests",
            "statuses",
            "bytes_sent",
        ];
        let mut counts: Vec<Value> = counts.map(|name| self.report[name].clone()).into();
        for parts in ["steps", "requests"] {
            for part in self.report[parts].as_array().into_iter().flatten() {
                counts.extend([part["name"].clone(), part["outcomes"].clone()]);
            }
        }
        counts
    }

    /// The longest time in ms that a measured request may have taken from its due time to its arrival, on the common
    /// clock. It arrived before its reply, and the agents' clocks are known within their bounds.
    fn longest_delay(&self) -> f64 {
        let agents = self.report["agents"].as_array().into_iter().flatten();
        let bounds = agents.filter_map(|agent| agent["clock_bound_ms"].as_f64());
        let rounding = 1.0;
        self.number("/response_time_ms/max") + 2.0 * bounds.fold(0.0, f64::max) + rounding
    }

    /// Panics unless the due times of both runs can be equal. A request arrives at its due time or later, by the longest
    /// delay of its run at most. The difference of the two arrivals varies by no more, whatever the two starts.
    fn check_due_times(&self, alone: &Self) {
        let warm_up = self.number("/warm_up_requests") as u64;
        let start = alone.seen.values().map(|(at, _)| *at).min().unwrap();
        let differences = self.seen.range(warm_up..).map(|(number, (at, _))| {
            let (other, _) = alone.seen[number];
            at.duration_since(start).as_secs_f64() - other.duration_since(start).as_secs_f64()
        });
        let (least, most) = differences.fold((f64::MAX, f64::MIN), |(least, most), one| {
            (least.min(one), most.max(one))
        });
        let bound = self.longest_delay() + alone.longest_delay();
        let spread = (most - least) * 1e3;
        assert!(spread <= bound, "{spread} ms, at most {bound} ms");
    }
}

#[test]
#[ignore = "needs a NATS server"]
fn any_number_of_agents_sends_the_run_of_one_process() {
    let server = NatsServer::open();
    let service = RecordingService::start();
    let folder = tempfile::tempdir().unwrap();
    let mix = mix(&folder, &service);
    let agent = |(number, loops)| {
        AgentProcess::start(
            &server,
            &format!("agent-{number}"),
            &format!("--threads {loops}"),
        )
    };
    let _agents: Vec<AgentProcess> = (1..).zip(LOOPS).map(agent).collect();
    for pace in PACES {
        let options = format!("{mix} {pace}");
        let alone = observe(&server, &service, &options, None);
        let sent = alone.number("/intended") + alone.number("/warm_up_requests");
        assert_eq!(alone.number("/outcomes/ok"), alone.number("/intended"));
        // The numbers from 0 on, each once: no row was used twice.
        let numbers: Vec<u64> = alone.seen.keys().copied().collect();
        assert_eq!(numbers, (0..sent as u64).collect::<Vec<_>>(), "{pace}");
        assert!(numbers.len() < ROWS);
        for agents in [1, 2, 3, 8] {
            let together = observe(&server, &service, &options, Some(agents));
            assert_eq!(together.targets(), alone.targets(), "{agents}: {pace}");
            assert_eq!(together.counts(), alone.counts(), "{agents}: {pace}");
            together.check_due_times(&alone);
        }
    }
}
