//! Runs the Author transaction over QUIC repeatedly, and prints its response times and the transactions per second of
//! CPU time.
//!
//! `cargo run --release -p posthaste-quic-sim --example author_quic -- TRANSACTIONS [POSITION|LOSS%|ladder]`

use std::sync::Arc;

use posthaste_link::pattern::Pattern;
use posthaste_link::{Direction, Plan};
use posthaste_quic_sim::{QuicOptions, QuicScenario, quic_ladder};
use posthaste_sim::{SimulatedScenario as _, SimulatedService, Totals};
use posthaste_units::{BitRate, Seed, Span};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = |index: usize| arguments.get(index).map(String::as_str).unwrap_or_default();
    let plan = Plan {
        bandwidth: BitRate::per_second(10_000_000),
        delay: Span::from_millis(50),
        loss: word(1)
            .ends_with('%')
            .then(|| word(1).parse().expect("a loss")),
        ..Plan::default()
    };
    let drop = match word(1) {
        "" | "ladder" => String::new(),
        loss if loss.ends_with('%') => String::new(),
        position => format!("{}\n", position.replacen(':', " drop ", 1)),
    };
    let pattern = Pattern::parse(&format!("posthaste pattern 1\n{drop}end\n")).expect("a pattern");
    let plans = Direction::BOTH.map(|direction| {
        Arc::new(Plan {
            script: Some(pattern.script(direction).clone()),
            ..plan.clone()
        })
    });
    let scenario = QuicScenario {
        options: QuicOptions::default(),
        plans,
        exchanges: SimulatedService::single(1438, Span::from_millis(200), 12_974)
            .exchanges
            .into(),
        behaviour: None,
    };
    let seed = Seed(2003);
    let mut simulator = scenario.simulator(seed).expect("it can be played");
    let mut totals = Totals::new();
    let count: u64 = word(0).parse().unwrap_or(1);
    let begun = cpu_seconds();
    for number in 1..=count {
        simulator.add_to(&mut totals, number);
    }
    let seconds = cpu_seconds() - begun;
    println!("{:#?}", totals.response.summary());
    println!(
        "{:.0} transactions in a second of CPU time",
        count as f64 / seconds
    );
    if word(1) == "ladder" || count == 1 {
        println!("{}", quic_ladder(&scenario, seed, 1).expect("drawn").text());
    }
}

/// CPU time of this thread (sched_info in proc(5)).
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanos = text.split_whitespace().next().expect("three numbers");
    nanos.parse::<f64>().expect("a number") / 1e9
}
