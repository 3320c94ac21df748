//! Simulated transactions per second on one core, compared with ns-3.
//!
//! CPU time is compared, not elapsed time: each program is alone on a core, and neither waits. ns-3 loses packets at
//! the receiver, posthaste at the sender. Response times are therefore compared on a link with a short transmission
//! time.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::bench::pinned::number;
use crate::bench::{Bench, Figure, Measure, in_turns};
use crate::cores::{generator, server};
use crate::error::{Outcome, TaskError, check};
use crate::process::Finished;
use crate::tools;

const PER_SECOND: &str = "transactions/s";
/// Target: transactions per second on one core.
const FAST: f64 = 200_000.0;
/// Target: ratio to ns-3.
const TIMES: f64 = 150.0;
/// Maximum deviation of response times.
const APART: f64 = 0.02;

/// A link with random losses, as options of both programs.
const LOSSY: [&str; 4] = [
    "--bandwidth=300kbit",
    "--delay=10ms",
    "--loss=2%",
    "--overhead=2",
];
const LOSSY_NS3: [&str; 3] = ["--bandwidth=300kbps", "--delay=10ms", "--loss=2%"];
/// A link on which the transmission time of a lost packet does not count.
const QUICK: [&str; 3] = ["--bandwidth=10Mbit", "--delay=10ms", "--overhead=2"];
const QUICK_NS3: [&str; 2] = ["--bandwidth=10Mbps", "--delay=10ms"];
/// Positions of Author's packets from the server.
const POSITIONS: u32 = 12;
/// Position of the SYN-ACK. After its loss a sender begins with a single segment (RFC 5681, section 3.1). ns-3 must be
/// told.
const SYN_ACK: u32 = 1;
/// Position at which ns-3 departs from the standards. If an ACK acknowledges new data and carries a SACK block, ns-3
/// neither widens the window (RFC 5681, section 3.1, (2)) nor restarts its timer (RFC 6298, section 5, (5.3)). A loss
/// of the second segment of a pair that is acknowledged together leads to such an ACK in slow start. If a timeout
/// follows anyway, the cost stays within the target.
const DEPARTS: u32 = 4;

/// Transactions with one loss each, at every position in turn.
pub(crate) fn simulate(bench: &Bench) -> Outcome<Vec<Figure>> {
    let each = bench.or_quick(50_000, 5_000);
    let mut figures = Vec::new();
    for tcp in ["freebsd-6.0", "linux-2.6.15", "linux-6", "rfc"] {
        let ends = both(tcp);
        let each = each.to_string();
        let options = [
            ends[0].as_str(),
            &ends[1],
            "--bandwidth=300kbit",
            "--delay=10ms",
            "--jitter=variance:50%",
            "--position=1..12",
            "--transactions",
            &each,
        ];
        let mut rates = Vec::new();
        for _ in 0..bench.or_quick(5, 2) {
            rates.push(rate(&ours(bench, &options)?)?);
        }
        let rate = Measure::median(&rates, PER_SECOND);
        let is_fast = rate.value >= FAST;
        figures.push(
            Figure::new(format!("Author with one loss, {tcp}, one core"), rate)
                .target("at least 200 k", is_fast),
        );
    }
    figures.push(threads(bench)?);
    figures.extend(ns3(bench)?);
    Ok(figures)
}

/// Checks for the same document, byte for byte, on one thread and on seven.
fn threads(bench: &Bench) -> Outcome<Figure> {
    let count = bench.or_quick("500000", "50000");
    let on = |threads: &str| {
        let own = ["--threads", threads, "--transactions", count];
        Ok(ours(bench, &[LOSSY.as_slice(), &own].concat())?.stdout)
    };
    let same = on("1")? == on("7")?;
    let name = format!("{count} transactions with 2 % loss on 1 and on 7 threads: byte-identical");
    Ok(Figure::sentence(name).target("yes", same))
}

/// The same transactions in ns-3, in turns.
fn ns3(bench: &Bench) -> Outcome<Vec<Figure>> {
    let program = compiled(bench)?;
    let ends = both("rfc");
    let ends = ends.each_ref().map(String::as_str);
    let count = |count: u32| format!("--transactions={count}");
    let (many, few) = (
        count(bench.or_quick(1_000_000, 50_000)),
        count(bench.or_quick(20_000, 1_000)),
    );
    let (mut own, mut peer) = (f64::NAN, f64::NAN);
    let mut quick = || {
        let done = ours(bench, &[&ends[..], &LOSSY, &[many.as_str()]].concat())?;
        own = mean(&json(&done)?)?;
        rate(&done)
    };
    let mut slow = || {
        let done = theirs(bench, &program, &[&LOSSY_NS3[..], &[few.as_str()]].concat())?;
        let times = times(&done)?;
        peer = times.iter().sum::<f64>() / times.len() as f64;
        Ok(times.len() as f64 / done.cpu.as_secs_f64())
    };
    let [quick, slow] = in_turns(bench.or_quick(5, 2), [&mut quick, &mut slow])?;
    let mut every = || {
        let done = on_every_core(bench, &[&ends[..], &LOSSY, &[many.as_str()]].concat())?;
        Ok(connections(&done)? / done.wall.as_secs_f64())
    };
    let mut single = || {
        let done = theirs(bench, &program, &[&LOSSY_NS3[..], &[few.as_str()]].concat())?;
        Ok(number(times(&done)?.len() as u64) / done.wall.as_secs_f64())
    };
    let [every, single] = in_turns(bench.or_quick(5, 2), [&mut every, &mut single])?;
    let lossy = "Author at 2 % loss, profile rfc";
    let faster = |name: &str, ours: &[f64], theirs: &[f64]| {
        let [ours, theirs] = [ours, theirs].map(|rates| Measure::median(rates, PER_SECOND));
        let holds = ours.value >= TIMES * theirs.value;
        Figure::new(format!("{lossy}: {name}"), ours)
            .peer("ns-3", theirs)
            .target("at least 150 times ns-3's", holds)
    };
    let mut figures = vec![
        faster("wall-clock time, all cores, ns-3 on one", &every, &single),
        faster("CPU time of one core", &quick, &slow),
        Figure::new(
            format!("{lossy}: mean response time"),
            Measure::new(own, "ms"),
        )
        .peer("ns-3", Measure::new(peer, "ms"))
        .target("within 2 %", (own / peer - 1.0).abs() <= APART),
    ];
    figures.extend(positions(bench, &program, &ends)?);
    Ok(figures)
}

/// One loss at each position, in both programs.
fn positions(bench: &Bench, program: &str, ends: &[&str]) -> Outcome<Vec<Figure>> {
    let all = format!("--position=0..{POSITIONS}");
    let document = json(&ours(bench, &[ends, &QUICK, &[all.as_str()]].concat())?)?;
    let (mut farthest, mut figures) = (0.0f64, Vec::new());
    for position in 0..=POSITIONS {
        let own = mean(&document["cases"][position as usize])?;
        let option = format!("--position={position}");
        let mut options = [&QUICK_NS3[..], &[option.as_str()]].concat();
        if position == SYN_ACK {
            options.push("--window=1");
        }
        let peer = times(&theirs(bench, program, &options)?)?[0];
        let name = format!("response time at 10 Mbit/s, 10 ms, a loss at position {position}");
        let figure = Figure::new(name, Measure::new(own, "ms"));
        let figure = figure.peer("ns-3", Measure::new(peer, "ms")).detail();
        if position == DEPARTS {
            figures.push(figure.remark("ns-3 departs from RFC 5681 and RFC 6298"));
        } else {
            farthest = farthest.max((own / peer - 1.0).abs());
            figures.push(figure);
        }
    }
    let name = format!(
        "response times at 10 Mbit/s, 10 ms, a loss at each position but {DEPARTS}: farthest from ns-3's"
    );
    let farthest_of_all = Measure::new(100.0 * farthest, "%");
    figures.push(Figure::new(name, farthest_of_all).target("within 2 %", farthest <= APART));
    Ok(figures)
}

/// Response times printed by ns-3's program, in milliseconds. An error if there is none.
fn times(done: &Finished) -> Outcome<Vec<f64>> {
    let parsed: Result<Vec<f64>, _> = done.stdout.lines().map(str::parse).collect();
    let times =
        parsed.map_err(|_| TaskError::Failed(format!("no times of ns-3: {}", done.stdout)))?;
    check(!times.is_empty(), || "ns-3 gave no time".to_owned())?;
    Ok(times)
}

fn both(tcp: &str) -> [String; 2] {
    [format!("--client-tcp={tcp}"), format!("--server-tcp={tcp}")]
}

/// Runs `posthaste simulate` on one core.
fn ours(bench: &Bench, options: &[&str]) -> Outcome<Finished> {
    let program = bench.site.binary.display().to_string();
    let one = ["--json", "--threads", "1"];
    let given = options.contains(&"--threads");
    let own: &[&str] = if given { &one[..1] } else { &one };
    let line = [generator(), &[program.as_str(), "simulate"], own, options].concat();
    bench
        .site
        .run("simulate", Command::new(line[0]).args(&line[1..]), 600)
}

/// Runs `posthaste simulate` as usual, on every core.
fn on_every_core(bench: &Bench, options: &[&str]) -> Outcome<Finished> {
    let mut command = Command::new(&bench.site.binary);
    command.args(["simulate", "--json"]).args(options);
    bench.site.run("simulate", &mut command, 600)
}

/// Runs ns-3 on the other core.
fn theirs(bench: &Bench, program: &str, options: &[&str]) -> Outcome<Finished> {
    let line = [server(), &[program], options].concat();
    bench
        .site
        .run("ns-3", Command::new(line[0]).args(&line[1..]), 600)
}

/// Transactions per second of CPU time.
fn rate(done: &Finished) -> Outcome<f64> {
    Ok(connections(done)? / done.cpu.as_secs_f64())
}

/// Number of simulated transactions, over all cases.
fn connections(done: &Finished) -> Outcome<f64> {
    let document = json(done)?;
    let count = |case: &Value| case["connections"].as_u64().map(number);
    let counts = match document["cases"].as_array() {
        Some(cases) => cases.iter().map(count).sum::<Option<f64>>(),
        None => count(&document),
    };
    counts.ok_or_else(|| TaskError::Failed("no count of connections".to_owned()))
}

fn mean(case: &Value) -> Outcome<f64> {
    let time = case["response_time_ms"]["mean"].as_f64();
    time.ok_or_else(|| TaskError::Failed("no mean response time".to_owned()))
}

fn json(done: &Finished) -> Outcome<Value> {
    serde_json::from_str(&done.stdout)
        .map_err(|error| TaskError::Failed(format!("`simulate --json`: {error}")))
}

/// `conformance/programs/ns3/author.cc`, compiled.
fn compiled(bench: &Bench) -> Outcome<String> {
    let site = &bench.site;
    tools::debian(&site.checkout, "g++", "g++")?;
    if !PathBuf::from("/usr/include/ns3/core-module.h").exists() {
        tools::install(&site.checkout, "libns3-dev")?;
    }
    let program = site.checkout.peer_folder("ns3")?.join("author");
    let mut compile = Command::new("g++");
    compile.args(["-O2", "-std=c++17", "-o"]).arg(&program);
    compile.arg(site.checkout.path("conformance/programs/ns3/author.cc"));
    // Not the flags of pkg-config, which require development files of libraries not used here.
    let libraries = ["point-to-point", "internet", "network", "core"];
    compile.args(libraries.map(|name| format!("-lns3-{name}")));
    site.run("g++", &mut compile, 300)?;
    check(program.exists(), || "g++ made nothing".to_owned())?;
    Ok(program.display().to_string())
}
