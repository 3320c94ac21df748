//! A handshake that is ready 100 ms after the client's first packet, without and with an acknowledgement of that packet.
//!
//! Author, 10 Mbit/s, 50 ms each way.

use posthaste_link::Direction;
use posthaste_quic_sim::{
    DatagramTrace, EndBehaviour, LateHandshake, QuicOptions, QuicScenario, TracedDatagram,
};

use crate::support::{author, dropping, ms, plan, response, scenario, simulator};

/// A padded packet and a small acknowledgement.
const ROUND_TRIP_MS: f64 = 101.0;

fn late(acknowledges: Option<bool>, drop: &str) -> QuicScenario {
    let after = ms(100);
    let behaviour = EndBehaviour {
        late_handshake: acknowledges.map(|acknowledges| LateHandshake {
            after,
            acknowledges,
        }),
        ..EndBehaviour::default()
    };
    let plans = dropping(&plan(Some(10_000), 50), drop);
    QuicScenario {
        behaviour: Some(behaviour),
        ..scenario(QuicOptions::default(), plans, author())
    }
}

/// The datagrams of an end in a transaction, with the time of each in ms.
fn sent(scenario: QuicScenario, from: Direction) -> Vec<(f64, TracedDatagram)> {
    let mut trace = DatagramTrace::new();
    let mut simulator = simulator(scenario);
    let began = simulator.play_before(1, &mut trace).began;
    let sent = trace.datagrams().iter().copied();
    sent.filter(|datagram| datagram.direction == from)
        .map(|datagram| (datagram.sent.since(began).as_millis_f64(), datagram))
        .collect()
}

#[test]
fn a_late_handshake_delays_the_reply_by_its_time() {
    let prompt = response(late(None, ""));
    for acknowledges in [false, true] {
        let delayed = response(late(Some(acknowledges), ""));
        let difference = delayed - prompt;
        assert!((difference - 100.0).abs() < 0.5, "{difference}");
    }
}

#[test]
fn an_instant_ack_is_a_small_initial_before_the_handshake() {
    let arrival = sent(late(None, ""), Direction::Down)[0].0;
    let [without, with] = [false, true].map(|acknowledges| {
        let late = late(Some(acknowledges), "");
        sent(late, Direction::Down)
    });
    let (at, ack) = with[0];
    assert!((at - arrival).abs() < 0.01, "{at}");
    assert_eq!(ack.label(), "1 Initial");
    assert_eq!(ack.frames.names().collect::<Vec<_>>(), ["ACK"]);
    assert!(ack.bytes < 60, "{}", ack.bytes);
    for (at, handshake) in [without[0], with[1]] {
        assert!((at - arrival - 100.0).abs() < 0.01, "{at}");
        assert!(handshake.label().contains("Initial+Handshake"));
    }
    assert_eq!(without.len() + 1, with.len());
}

/// The client's timer ends three round trips after the acknowledgement, which is a sample of the RTT (RFC 9002, section
/// 5.3: the variation starts with a half of it). Without one it ends three times 333 ms after the first packet.
#[test]
fn an_instant_ack_shortens_the_timer_of_the_client() {
    let probe = |acknowledges, drop: &str| {
        let sent = sent(late(Some(acknowledges), drop), Direction::Up);
        sent[1].0
    };
    let round_trips = probe(true, "down:2") / ROUND_TRIP_MS;
    assert!((round_trips - 4.0).abs() < 0.05, "{round_trips}");
    assert!((probe(false, "down:1") - 999.0).abs() < 0.5);
}

/// Until it has validated the address, a server sends at most three times what it has received (RFC 9000, section 8.1).
#[test]
fn a_server_with_a_late_handshake_does_not_amplify() {
    for acknowledges in [false, true] {
        for drop in ["", "down:1", "down:2", "up:1", "up:2"] {
            let late = late(Some(acknowledges), drop);
            let mut trace = DatagramTrace::new();
            simulator(late).play_before(1, &mut trace);
            let datagrams = |direction| {
                let all = trace.datagrams().iter();
                all.filter(move |datagram| datagram.direction == direction)
            };
            let validated = datagrams(Direction::Up)
                .filter(|datagram| {
                    datagram.loss().is_none() && datagram.label().contains("Handshake")
                })
                .map(|datagram| datagram.left)
                .min()
                .expect("the handshake is complete");
            for answer in datagrams(Direction::Down).filter(|answer| answer.sent < validated) {
                let sent: usize = datagrams(Direction::Down)
                    .filter(|other| other.position <= answer.position)
                    .map(|other| other.bytes)
                    .sum();
                let received: usize = datagrams(Direction::Up)
                    .filter(|other| other.loss().is_none() && other.left <= answer.sent)
                    .map(|other| other.bytes)
                    .sum();
                assert!(sent <= 3 * received, "{drop}: {sent} for {received}");
            }
        }
    }
}
