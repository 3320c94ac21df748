//! Draws the Author transaction over QUIC with one lost packet: as quinn has it, and with a remedy.
//!
//! - `receiver-probe`: the last packet of the reply is lost. A receiver sends a PING after each 25 ms without new bytes.
//! - `instant-ack`: the packet with the server's handshake is lost. The handshake is ready 100 ms after the client's first
//!   packet. With the remedy the server acknowledges that packet at once.
//!
//! `cargo run --release -p posthaste-quic-sim --example remedy -- REMEDY [BANDWIDTH [DELAY]]`

use std::sync::Arc;

use posthaste_link::pattern::Pattern;
use posthaste_link::{Direction, Plan};
use posthaste_quic_sim::{
    DatagramTrace, EndBehaviour, LateHandshake, QuicOptions, QuicScenario, QuicSimulator,
    TracedDatagram,
};
use posthaste_sim::{SimulatedScenario as _, SimulatedService};
use posthaste_units::{BitRate, Seed, Span};

const SEED: Seed = Seed(2003);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let remedy = arguments.next().unwrap_or_default();
    let mut word = |usual: &str| arguments.next().unwrap_or_else(|| usual.to_owned());
    let bandwidth: BitRate = word("300kbit").parse().expect("a bandwidth");
    let delay: Span = word("10ms").parse().expect("a delay");
    for is_applied in [false, true] {
        let (behaviour, is_lost) = change(&remedy, is_applied);
        let with = |drop: &str| scenario(bandwidth, delay, behaviour, drop);
        let lost = last_of(with(""), is_lost);
        let lossy = with(&format!("down drop {lost}\n"));
        println!("{}", lossy.ladder(SEED, 1).expect("drawn").text());
    }
}

/// The behaviour without or with the remedy, and a predicate: the last datagram of the server that fulfils it is lost.
fn change(remedy: &str, is_applied: bool) -> (EndBehaviour, fn(&TracedDatagram) -> bool) {
    let mut behaviour = EndBehaviour {
        openings: [12, 12],
        ..EndBehaviour::default()
    };
    match remedy {
        "receiver-probe" => {
            behaviour.receiver_probe = is_applied.then_some(Span::from_millis(25));
            (behaviour, |sent| sent.frames.has_stream())
        }
        "instant-ack" => {
            behaviour.late_handshake = Some(LateHandshake {
                after: Span::from_millis(100),
                acknowledges: is_applied,
            });
            (behaviour, |sent| sent.label().contains("Handshake"))
        }
        _ => panic!("give a remedy: receiver-probe or instant-ack"),
    }
}

fn scenario(bandwidth: BitRate, delay: Span, behaviour: EndBehaviour, drop: &str) -> QuicScenario {
    let pattern = Pattern::parse(&format!("posthaste pattern 1\n{drop}end\n")).expect("a pattern");
    let plans = Direction::BOTH.map(|direction| {
        Arc::new(Plan {
            bandwidth: Some(bandwidth),
            delay,
            script: Some(pattern.script(direction).clone()),
            ..Plan::default()
        })
    });
    QuicScenario {
        options: QuicOptions {
            datagram: 1200,
            initial_window: 12_000,
            ..QuicOptions::default()
        },
        plans,
        exchanges: SimulatedService::single(1438, Span::from_millis(200), 12_974)
            .exchanges
            .into(),
        behaviour: Some(behaviour),
    }
}

/// Position of the last datagram of the server for which `is_lost` is true.
fn last_of(scenario: QuicScenario, is_lost: fn(&TracedDatagram) -> bool) -> u64 {
    let mut trace = DatagramTrace::new();
    let mut simulator = QuicSimulator::new(scenario, SEED).expect("a simulator");
    simulator.play_before(1, &mut trace);
    let lost = trace
        .datagrams()
        .iter()
        .filter(|sent| sent.direction == Direction::Down && is_lost(sent));
    lost.map(|sent| sent.position)
        .max()
        .expect("such a datagram")
}
