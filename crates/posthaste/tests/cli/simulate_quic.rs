//! Predictions over QUIC: their output, their repeatability, and the options of the two transports.

use serde_json::Value;

use crate::command::{CommandOutput, execute, posthaste};

/// A line with known costs of single losses.
const LINE: [&str; 4] = [
    "--transport=quic",
    "--bandwidth=10Mbit",
    "--delay=50ms",
    "--seed=2003",
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

fn mean(document: &Value) -> f64 {
    document["response_time_ms"]["mean"].as_f64().unwrap()
}

#[test]
fn a_lost_first_packet_costs_a_second() {
    let none = json(&[]);
    let lost = json(&["--drop=up:1"]);
    assert!((mean(&none) - 414.0).abs() < 2.0, "{none}");
    assert!((mean(&lost) - mean(&none) - 999.0).abs() < 2.0, "{lost}");
    for (key, count) in [
        ("transactions", 1),
        ("timeouts", 1),
        // The acknowledgement of the probe declares the first packet lost.
        ("fast_retransmits", 1),
        ("packets_lost", 1),
    ] {
        assert_eq!(lost[key], count, "{key}");
    }
    let quick = json(&["--drop=up:1", "--initial-rtt=100ms"]);
    assert!((mean(&quick) - mean(&none) - 300.0).abs() < 2.0, "{quick}");
}

#[test]
fn every_combination_has_its_place() {
    let document = json(&["--position=0..3,up:1", "--loss=0%,1%", "--transactions=5"]);
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 10);
    assert_eq!(cases[9]["given"]["position"], "up:1");
    assert_eq!(cases[9]["given"]["loss"], "1%");
}

/// Each command is a process with other keys of TLS.
#[test]
fn processes_and_threads_change_nothing() {
    let on = |threads: &str| {
        let lossy = [
            "--loss=3%",
            "--jitter=variance:50%",
            "--transactions=200",
            "--json",
        ];
        simulate(&[&lossy[..], &["--threads", threads]].concat()).out
    };
    let first = on("1");
    assert_eq!(first, on("3"));
    assert_eq!(first, on("1"));
}

#[test]
fn a_ladder_speaks_the_words_of_quic() {
    let output = simulate(&["--drop=up:1", "--ladder"]);
    for line in [
        "response time",
        "QUIC, initial RTT 333ms",
        "1 Initial ─",
        "╳ pattern",
        "probe timeout, 999 ms after the last",
        "2 Initial probe",
        "1-RTT STREAM",
        "server QUIC",
    ] {
        assert!(output.out.contains(line), "no {line:?} in\n{}", output.out);
    }
}

#[test]
fn options_of_the_other_transport_are_refused() {
    for (options, reason) in [
        (
            &["--initial-rtt=100ms"][..],
            "--initial-rtt applies to QUIC only: add --transport quic",
        ),
        (
            &["--transport=quic", "--client-tcp=rfc"],
            "--client-tcp applies to TCP only",
        ),
        (
            &["--transport=quic", "--compare=all"],
            "--compare applies to TCP only",
        ),
        (
            &["--transport=quic", "--clock=request"],
            "--clock applies to TCP only",
        ),
        (
            &["--transport=quic", "--datagram=1000B"],
            "--datagram 1000: give 1200 to 65507 bytes",
        ),
        (
            &["--transport=quic", "--datagram=100kB"],
            "--datagram 100000: give 1200",
        ),
        (
            &["--transport=quic", "--initial-window=1kB"],
            "at least two datagrams (2904 bytes)",
        ),
        (
            &["--transport=quic", "--certificate=10B"],
            "--certificate 10: give 260",
        ),
        (
            &["--transport=quic", "--ack-frequency=0"],
            "--ack-frequency 0: give 1 to 1000",
        ),
        (
            &["--transport=quic", "--ack-delay=20s"],
            "--ack-delay 20s: give 1ms",
        ),
    ] {
        let output = execute(&mut posthaste(&[&["simulate"], options].concat()));
        assert_eq!(output.code, Some(2), "{options:?}: {}", output.err);
        assert!(output.err.contains(reason), "{options:?}: {}", output.err);
        assert!(output.out.is_empty(), "{}", output.out);
    }
}
