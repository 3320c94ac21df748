//! Draws the Author transaction over QUIC with the last packet of its reply lost: as quinn has it, and with a receiver
//! that sends a PING after each 25 ms without new bytes.
//!
//! `cargo run --release -p posthaste-quic-sim --example receiver_probe -- [BANDWIDTH [DELAY]]`

use std::sync::Arc;

use posthaste_link::pattern::Pattern;
use posthaste_link::{Direction, Plan};
use posthaste_quic_sim::{DatagramTrace, EndBehaviour, QuicOptions, QuicScenario, QuicSimulator};
use posthaste_sim::{SimulatedScenario as _, SimulatedService};
use posthaste_units::{BitRate, Seed, Span};

const SEED: Seed = Seed(2003);

fn main() {
    let mut words = std::env::args().skip(1);
    let mut word = |usual: &str| words.next().unwrap_or_else(|| usual.to_owned());
    let bandwidth: BitRate = word("300kbit").parse().expect("a bandwidth");
    let delay: Span = word("10ms").parse().expect("a delay");
    for receiver_probe in [None, Some(Span::from_millis(25))] {
        let behaviour = EndBehaviour {
            openings: [12, 12],
            receiver_probe,
            ..EndBehaviour::default()
        };
        let with = |drop: &str| scenario(bandwidth, delay, behaviour, drop);
        let last = last_of_the_reply(with(""));
        let lossy = with(&format!("down drop {last}\n"));
        println!("{}", lossy.ladder(SEED, 1).expect("drawn").text());
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

/// Position of the last datagram of the reply.
fn last_of_the_reply(scenario: QuicScenario) -> u64 {
    let mut trace = DatagramTrace::new();
    let mut simulator = QuicSimulator::new(scenario, SEED).expect("a simulator");
    simulator.play_before(1, &mut trace);
    let reply = trace
        .datagrams()
        .iter()
        .filter(|sent| sent.direction == Direction::Down && sent.frames.has_stream());
    reply.map(|sent| sent.position).max().expect("a reply")
}
