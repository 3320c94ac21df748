//! Descriptions of datagrams in a trace.

use posthaste_quic_sim::{DatagramTrace, EndBehaviour, QuicOptions, QuicScenario, SentCause};

use crate::support::{author, dropping, plan, scenario, simulator};

fn trace(drop: &str) -> (DatagramTrace, [u64; 2]) {
    let plans = dropping(&plan(Some(10_000), 50), drop);
    let mut simulator = simulator(scenario(QuicOptions::default(), plans, author()));
    let mut trace = DatagramTrace::new();
    let transaction = simulator.play_before(1, &mut trace);
    let tally = transaction.completed().tally;
    (trace, [tally.timeouts, tally.fast_retransmits])
}

fn labels(trace: &DatagramTrace) -> Vec<String> {
    let datagrams = trace.datagrams().iter();
    datagrams
        .map(|datagram| format!("{} {}", datagram.direction, datagram.label()))
        .collect()
}

#[test]
fn a_transaction_reads_as_it_went() {
    let (trace, counts) = trace("");
    let labels = labels(&trace);
    let opening = [
        "up 1 Initial",
        "down 1 Initial+Handshake+1-RTT",
        "up 2 Initial+Handshake+1-RTT",
        "up 3 1-RTT STREAM",
        "down 2 1-RTT CRYPTO",
    ];
    assert_eq!(labels[..5], opening);
    let hint = trace.datagrams()[4].hint();
    assert!(hint.contains("HANDSHAKE_DONE"), "{hint}");
    assert!(
        labels.last().is_some_and(|last| last.ends_with("close")),
        "{labels:?}"
    );
    assert_eq!(counts, [0, 0]);
}

#[test]
fn probes_and_losses_say_why() {
    let (trace, counts) = trace("up:1");
    let first = &labels(&trace)[..3];
    assert_eq!(first[1], "up 2 Initial probe");
    assert_eq!(counts[0], 1);
    let probe = trace.datagrams()[1];
    let waited = probe.sent.since(probe.before.expect("the first Initial"));
    assert_eq!(waited.as_millis_f64().round(), 999.0);

    let (trace, counts) = self::trace("down:6");
    assert_eq!(counts, [0, 1]);
    let causes = trace.datagrams().iter().map(|datagram| datagram.cause);
    assert!(
        causes
            .into_iter()
            .any(|cause| cause == SentCause::Losses(1))
    );
}

#[test]
fn behaviour_open_streams_and_issue_identifiers_late() {
    let scenario = QuicScenario {
        behaviour: Some(EndBehaviour {
            openings: [12; 2],
            ..EndBehaviour::default()
        }),
        ..scenario(
            QuicOptions::default(),
            dropping(&plan(Some(10_000), 50), ""),
            author(),
        )
    };
    let mut simulator = simulator(scenario);
    let mut trace = DatagramTrace::new();
    simulator.play_before(1, &mut trace);
    let down: Vec<String> = labels(&trace)
        .into_iter()
        .filter(|label| label.starts_with("down"))
        .take(4)
        .collect();
    let expected = [
        "down 1 Initial+Handshake",
        "down 2 1-RTT NEW_CONNECTION_ID",
        "down 3 1-RTT CRYPTO",
        "down 4 1-RTT STREAM",
    ];
    assert_eq!(down, expected);
}
