//! Conformance: packets sent by real kernels in real time are replayed in virtual time and get the same decisions, byte
//! for byte as in a trace.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use posthaste_link::pattern::Pattern;
use posthaste_link::record::{self, BlankPacket};
use posthaste_link::{Arrived, Direction, Fate, Network, Packet as _, Plan, Sharing};
use posthaste_units::{BitRate, Seed, Span};

use super::links::{bookshop, load};
use super::{User, folder, own, reported, users};

/// Every kind of decision of a link.
const OPTIONS: &str = "--bandwidth 4Mbit --delay 5ms --jitter uniform:2ms --overtake --loss 5% \
    --bit-errors 0.001% --duplicate 3% --reorder hold:2%:3 --queue 20 --drop down:7 --seed 5";

/// Columns of a trace that are decisions or their causes.
const DECIDED: [&str; 11] = [
    "connection",
    "direction",
    "position",
    "copy",
    "arrived_ns",
    "left_ns",
    "bytes",
    "fate",
    "reason",
    "flipped",
    "order",
];

/// The plan of [`OPTIONS`], without the command line.
fn plan(direction: Direction) -> Arc<Plan> {
    let pattern = Pattern::parse("posthaste pattern 1\ndown drop 7\nend\n").unwrap();
    let script = (direction == Direction::Down).then(|| pattern.script(direction).clone());
    Arc::new(Plan {
        bandwidth: BitRate::per_second(4_000_000),
        delay: Span::from_millis(5),
        jitter: Some("uniform:2ms".parse().unwrap()),
        keeps_order: false,
        loss: Some("5%".parse().unwrap()),
        bit_error_rate: "0.001%".parse().unwrap(),
        duplication: "3%".parse().unwrap(),
        reordering: Some("hold:2%:3".parse().unwrap()),
        queue: "20".parse().unwrap(),
        script,
        ..Plan::default()
    })
}

/// Each packet's decision in the trace, sorted, because the departures of two directions have no common order.
fn traced(trace: &str) -> Vec<String> {
    let mut lines = trace.lines();
    let names: HashMap<&str, usize> = lines
        .next()
        .unwrap()
        .split(',')
        .enumerate()
        .map(|(index, name)| (name, index))
        .collect();
    let decided = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        DECIDED.map(|name| fields[names[name]]).join(",")
    };
    // A change of the links is no decision.
    let packets = lines.filter(|line| !line.contains(",change,"));
    sorted(packets.map(decided))
}

fn replayed(record: &str, sharing: Sharing) -> Vec<String> {
    let inputs = record::parse(record).unwrap();
    let [up, down] = Direction::BOTH.map(plan);
    let mut network = Network::new(&up, &down, sharing, Seed(5));
    let mut decided = Vec::new();
    network.replay(&inputs, |arrived| decided.push(line(&arrived)));
    sorted(decided.into_iter())
}

fn line(arrived: &Arrived<u64, BlankPacket>) -> String {
    let (direction, connection, _, passage) = arrived;
    let (fate, reason, marks) = match passage.fate {
        Fate::Delivered(marks) => ("delivered", "", marks),
        Fate::Dropped(reason) => ("dropped", reason.name(), Default::default()),
    };
    let order = match marks {
        marks if marks.overtook => "overtook",
        marks if marks.held => "held",
        _ => "",
    };
    let (arrived, left) = (passage.arrived.as_nanos(), passage.left.as_nanos());
    let (position, copy) = (passage.position, passage.copy);
    let (bytes, flipped) = (passage.packet.bytes(), marks.flipped);
    format!(
        "{connection},{direction},{position},{copy},{arrived},{left},{bytes},{fate},{reason},{flipped},{order}"
    )
}

fn sorted(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines
}

/// Runs load through links of every kind of decision, and replays its record. With `changing`, the links change.
fn replays(user: User, sharing: Sharing, changing: bool) {
    let (posthaste, folder) = (own(user), folder());
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (record, trace) = (file("record.csv"), file("trace.csv"));
    let shop = bookshop(&posthaste);
    let load = load(
        &posthaste,
        "--rate 100/s --duration 500ms --connection new --connect-timeout 30s --timeout 60s",
    );
    let mut arguments: Vec<&str> = OPTIONS.split_whitespace().collect();
    arguments.push(match sharing {
        Sharing::Whole => "--shared",
        Sharing::PerConnection => "--per-connection",
    });
    let changes = format!(
        "{load}; {posthaste} net set bandwidth=2Mbit down:loss=10% queue=30 && {load} && \
         {posthaste} net set up:delay=20ms duplicate=0% jitter=none"
    );
    if changing {
        arguments.extend(["--control", "127.0.0.1:0"]);
    }
    let line = if changing { &changes } else { &load };
    arguments.extend(["--record", &record, "--trace", &trace, "--server", &shop]);
    arguments.extend(["--", "sh", "-c", line]);
    let (run, report) = reported(user, &arguments);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(
        (&report["unrecorded"], &report["untraced"]),
        (&0.into(), &0.into())
    );
    let read = |path: &str| std::fs::read_to_string(Path::new(path)).unwrap();
    let record = read(&record);
    let changed = record.matches(",change,").count();
    assert_eq!(changed, if changing { 2 } else { 0 }, "{record}");
    assert!(record.contains("loss 5%"), "{}", &record[..300]);
    let (traced, replayed) = (traced(&read(&trace)), replayed(&record, sharing));
    assert!(traced.len() > 400, "{} packets", traced.len());
    for counter in ["dropped/pattern", "dropped/random", "copied", "reordered"] {
        let count = report.pointer(&format!("/down/{counter}"));
        assert!(
            count.is_some_and(|count| *count != 0),
            "{counter}: {report}"
        );
    }
    // Packets that had not left when the run ended were recorded, but are not in the trace.
    let held = |way: &str| report[way]["held"].as_u64().unwrap();
    let (missing, held) = (replayed.len() - traced.len(), held("up") + held("down"));
    assert_eq!(
        missing as u64, held,
        "packets that were under way at the end"
    );
    let wrong = traced
        .iter()
        .find(|line| replayed.binary_search(line).is_err());
    assert_eq!(wrong, None, "was decided otherwise");
}

#[test]
fn a_record_replays_to_the_same_decisions() {
    for user in users() {
        replays(*user, Sharing::PerConnection, false);
        replays(*user, Sharing::Whole, false);
    }
}

#[test]
fn a_run_with_changes_replays_to_the_same_decisions() {
    for user in users() {
        replays(*user, Sharing::PerConnection, true);
        replays(*user, Sharing::Whole, true);
    }
}
