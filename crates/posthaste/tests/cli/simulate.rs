//! Predictions: their output, their repeatability, and their interruption.

use std::process::Stdio;

use serde_json::Value;

use crate::command::{CommandOutput, execute, posthaste, signal, until};

/// The options of the published figures.
const LINE: [&str; 8] = [
    "--client-tcp=freebsd-6.0",
    "--server-tcp=freebsd-6.0",
    "--clock=accept",
    "--bandwidth=300kbit",
    "--delay=10ms",
    "--overhead=14",
    "--seed=1",
    "--processing=200ms",
];

fn simulate(options: &[&str]) -> CommandOutput {
    let output = execute(&mut posthaste(
        &[&["simulate"], &LINE[..], options].concat(),
    ));
    assert_eq!(output.code, Some(0), "{}", output.err);
    output
}

fn json(options: &[&str]) -> Value {
    let output = simulate(&[options, &["--json"]].concat());
    serde_json::from_str(&output.out).unwrap()
}

#[test]
fn one_combination_is_one_document() {
    let document = json(&["--drop", "down:10"]);
    for part in [
        "response_time_ms",
        "t_conn_ms",
        "t_req_ms",
        "t_proc_ms",
        "t_resp_ms",
    ] {
        assert!(document[part]["mean"].as_f64().unwrap() > 0.0, "{part}");
    }
    for (key, count) in [
        ("transactions", 1),
        ("timeouts", 1),
        ("retransmissions", 1),
        ("fast_retransmits", 0),
        ("probes", 0),
    ] {
        assert_eq!(document[key], count, "{key}");
    }
    let sum = ["t_conn_ms", "t_req_ms", "t_proc_ms", "t_resp_ms"]
        .map(|part| document[part]["mean"].as_f64().unwrap());
    let total = document["response_time_ms"]["mean"].as_f64().unwrap();
    assert!((sum.iter().sum::<f64>() - total).abs() < 0.001);
}

#[test]
fn every_combination_has_its_place() {
    let document = json(&[
        "--position",
        "0..12",
        "--loss",
        "0%,1%",
        "--transactions",
        "20",
    ]);
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 26);
    let given = |index: usize| &cases[index]["given"];
    assert_eq!(given(0)["position"], "0");
    assert_eq!(given(25)["position"], "12");
    assert_eq!(
        (&given(12)["loss"], &given(13)["loss"]),
        (&"0%".into(), &"1%".into())
    );
}

#[test]
fn threads_change_nothing() {
    let on = |threads: &str| {
        let lossy = [
            "--loss=3%",
            "--jitter=variance:50%",
            "--transactions=40000",
            "--json",
        ];
        simulate(&[&lossy[..], &["--threads", threads]].concat()).out
    };
    assert_eq!(on("1"), on("3"));
}

/// Cross traffic is random like losses: each transaction meets it at another moment.
#[test]
fn cross_traffic_delays_transactions_at_random() {
    let beside = |background: &str| {
        let document = json(&["--background", background]);
        assert_eq!(document["transactions"], 10_000);
        let time = &document["response_time_ms"];
        ["mean", "p50", "p99"].map(|part| time[part].as_f64().unwrap())
    };
    let alone = json(&[])["response_time_ms"]["mean"].as_f64().unwrap();
    let [some, median, late] = beside("100kbit");
    assert!(
        alone < some && median < late,
        "{alone} {some} {median} {late}"
    );
    assert!(some < beside("200kbit")[0]);
}

#[test]
fn a_ladder_tells_what_was_waited_for() {
    let output = simulate(&["--drop", "down:10", "--ladder"]);
    for line in [
        "response time",
        "pattern ╳",
        "timeout, ",
        "10137:11585 rto",
        "server freebsd-6.0",
    ] {
        assert!(output.out.contains(line), "no {line:?} in\n{}", output.out);
    }
}

#[test]
fn unanswered_transactions_have_no_response_time() {
    let output = simulate(&["--loss=100%", "--transactions=3"]);
    assert!(
        output.out.contains("none: nothing was answered whole"),
        "{}",
        output.out
    );
    let output = simulate(&["--loss=0%,100%", "--transactions=3"]);
    let mut rows = output.out.lines().rev();
    assert_eq!(
        rows.next().map(|row| row.matches(" -").count()),
        Some(6),
        "{}",
        output.out
    );
    assert_eq!(
        rows.next().map(|row| row.matches(" -").count()),
        Some(0),
        "{}",
        output.out
    );
}

#[test]
fn packets_that_never_come_are_told_after_what_was_simulated() {
    let cases = [
        ("--position=0,40", "at most 13 packets", "\n40 "),
        ("--drop=down:11-40", "never comes", "response time"),
    ];
    for (option, message, printed) in cases {
        let output = execute(&mut posthaste(&["simulate", option]));
        assert_eq!(output.code, Some(2), "{}", output.err);
        assert!(output.err.contains(message), "{}", output.err);
        assert!(output.out.contains(printed), "{}", output.out);
    }
}

/// A pattern is made for runs of any length. A typed position must still come.
#[test]
fn a_pattern_may_go_on_behind_the_last_packet() {
    let folder = tempfile::tempdir().unwrap();
    let pattern = folder.path().join("long.pattern");
    std::fs::write(&pattern, "posthaste pattern 1\ndown drop 10, 37\nend\n").unwrap();
    let option = format!("--pattern={}", pattern.to_str().unwrap());
    assert_eq!(json(&[option.as_str()])["packets_lost"], 1);
    let output = execute(&mut posthaste(&[
        "simulate",
        option.as_str(),
        "--drop=down:38",
    ]));
    assert_eq!(output.code, Some(2), "{}", output.err);
    assert!(output.err.contains("down drop 38"), "{}", output.err);
}

#[test]
fn options_of_both_ends_are_in_the_title() {
    for options in [
        &["--recovery=tlp"][..],
        &[
            "--recovery=tlp",
            "--compare=rto-50ms",
            "--transactions=20",
            "--loss=1%",
        ],
    ] {
        let output = simulate(options);
        let title = output.out.lines().next().unwrap();
        assert!(title.ends_with("at both ends, with tlp"), "{title}");
    }
}

#[test]
fn nothing_is_lost_where_packets_only_change_places() {
    let document = json(&[
        "--bit-errors=0.001%",
        "--loss=2%",
        "--compare=none",
        "--transactions=200",
    ]);
    let lost = |case: usize| document["cases"][case]["packets_lost"].as_u64().unwrap();
    assert_eq!(document["cases"][1]["given"]["path"], "reordered");
    assert!(lost(0) > 0);
    assert_eq!(lost(1), 0);
}

#[test]
fn one_moment_of_coarse_clocks_is_told_as_one() {
    let has_hint = |options: &[&str]| {
        let output = execute(&mut posthaste(&[&["simulate"], options].concat()));
        output.out.contains("--transactions N shows the others")
    };
    assert!(has_hint(&["--server-tcp=rfc"]));
    assert!(has_hint(&["--position=0..3"]));
    assert!(!has_hint(&["--client-tcp=rfc", "--server-tcp=rfc"]));
    assert!(!has_hint(&["--transactions=1"]));
    assert!(!has_hint(&["--json"]));
}

#[test]
fn files_that_cannot_be_written_are_refused_at_the_start() {
    for option in [
        "--picture=no/such/folder.svg",
        "--ladder=no/such/folder.svg",
    ] {
        let delay = if option.starts_with("--picture") {
            "--delay=1ms,2ms"
        } else {
            "--delay=1ms"
        };
        let most = "--transactions=100000000000";
        let output = execute(&mut posthaste(&["simulate", option, delay, most]));
        assert_eq!(output.code, Some(3), "{}", output.err);
        assert!(output.err.contains("can be written to"), "{}", output.err);
    }
}

#[test]
fn remedies_stand_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("remedies.html");
    let options = [
        "--loss=2%",
        "--transactions=2000",
        "--compare=early-retransmit,rto-50ms+early-retransmit",
        "--picture",
        picture.to_str().unwrap(),
    ];
    let output = simulate(&options);
    for remedy in ["none", "early-retransmit", "rto-50ms+early-retransmit"] {
        assert!(
            output.out.lines().any(|line| line.starts_with(remedy)),
            "{}",
            output.out
        );
    }
    let page = std::fs::read_to_string(picture).unwrap();
    assert!(page.contains("sent for nothing") && page.contains("reordered"));
}

/// CPU time in seconds used by a process itself (proc(5), stat 14).
fn seconds_used(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    let ticks = after_name.split_ascii_whitespace().nth(11).unwrap();
    ticks.parse::<f64>().unwrap() / rustix::param::clock_ticks_per_second() as f64
}

#[test]
fn ctrl_c_keeps_what_was_simulated_and_says_so() {
    let arguments = [
        &["simulate"],
        &LINE[..],
        &["--loss=2%", "--transactions=10000000000", "--json"],
    ];
    let child = posthaste(&arguments.concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // By then it simulates: a second of CPU time is about ten thousand transactions.
    until("work", || seconds_used(child.id()) >= 1.0);
    signal("INT", child.id());
    let output = CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!(output.code, Some(3), "{}", output.err);
    assert!(output.err.contains("stopped"), "{}", output.err);
    let document: Value = serde_json::from_str(&output.out).unwrap();
    assert!(document["transactions"].as_u64().unwrap() > 100);
    assert_eq!(document["stopped"], true);
}
