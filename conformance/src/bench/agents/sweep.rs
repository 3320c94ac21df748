//! A sweep on two agents beside the same sweep in one process: CPU time of everything that takes part, and the results.

use std::process::Command;
use std::time::Duration;

use super::conductor::{nats, nats_url};
use crate::bench::{Bench, Figure, Measure, in_turns, pair_ratio};
use crate::error::{Outcome, check};
use crate::process::{Finished, Running};
use crate::site::Server;

/// Options of twelve cases.
const CASES: [&str; 6] = [
    "--bandwidth",
    "1Mbit",
    "--delay",
    "5ms..200ms",
    "--loss",
    "1%,2%",
];
const COUNT: u64 = 12;
/// Most CPU time that agents may add.
const BAR: f64 = 1.05;
/// Time limit of a sweep, in seconds.
const SWEEP: u64 = 600;

/// Two agents with an event loop each, and their NATS server.
struct Workers {
    nats: Server,
    agents: Vec<Running>,
}

/// Ten million transactions, in turns.
pub(crate) fn sweep(bench: &Bench) -> Outcome<Vec<Figure>> {
    let workers = Workers::start(bench)?;
    let each = bench.or_quick(10_000_000u64, 300_000).div_ceil(COUNT);
    let count = format!("--transactions={each}");
    let simulate = |own: &[&str]| -> Outcome<Finished> {
        let mut command = Command::new(&bench.site.binary);
        command.args(["simulate", "--json", &count]);
        bench
            .site
            .run("simulate", command.args(CASES).args(own), SWEEP)
    };
    let (mut of_one, mut of_agents) = (Vec::new(), Vec::new());
    let (mut long, mut alone_long) = (Vec::new(), Vec::new());
    let mut with_agents = || {
        let before = workers.cpu()?;
        let url = nats_url(&workers.nats);
        let done = simulate(&["--agents", "2", "--nats", &url, "--fleet", "bench"])?;
        let used = done.cpu + workers.cpu()? - before;
        long.push(done.wall.as_secs_f64());
        of_agents.push(done.stdout);
        Ok(used.as_secs_f64())
    };
    let mut alone = || {
        let done = simulate(&["--threads", "2"])?;
        alone_long.push(done.wall.as_secs_f64());
        of_one.push(done.stdout);
        Ok(done.cpu.as_secs_f64())
    };
    let [ours, theirs] = in_turns(bench.or_quick(3, 2), [&mut with_agents, &mut alone])?;
    let results = [of_one, of_agents].concat();
    check(results[0].len() > 1_000, || {
        "the sweep has no results".into()
    })?;
    let is_equal = results.iter().all(|result| *result == results[0]);
    let ratio = pair_ratio(&ours, &theirs);
    let one = "one process with two threads";
    Ok(vec![
        Figure::new(
            "CPU time of a sweep of 10 million transactions on two agents: conductor, agents and NATS server",
            Measure::median(&ours, "s"),
        )
        .paired(one, Measure::median(&theirs, "s"), ratio)
        .target("at most 5 % more", ratio <= BAR),
        Figure::sentence("its results are those of one process, byte for byte")
            .target("equal", is_equal),
        Figure::new("its length", Measure::median(&long, "s"))
            .paired(
                one,
                Measure::median(&alone_long, "s"),
                pair_ratio(&long, &alone_long),
            )
            .detail(),
    ])
}

impl Workers {
    fn start(bench: &Bench) -> Outcome<Self> {
        let site = &bench.site;
        let nats = nats(bench, "agents-sweep-nats")?;
        let mut agents = Vec::new();
        for name in ["a", "b"] {
            let mut command = Command::new(&site.binary);
            command
                .args(["agent", "--nats", &nats_url(&nats), "--fleet", "bench"])
                .args(["--name", name, "--threads", "1"]);
            agents.push(Running::start("agent", &mut command, &site.logs)?);
        }
        Ok(Self { nats, agents })
    }

    /// CPU time so far.
    fn cpu(&self) -> Outcome<Duration> {
        let mut sum = self.nats.running.cpu()?;
        for agent in &self.agents {
            sum += agent.cpu()?;
        }
        Ok(sum)
    }
}
