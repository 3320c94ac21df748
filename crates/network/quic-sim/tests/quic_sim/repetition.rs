//! The same number is the same transaction, regardless of earlier transactions, of the process and of the keys of TLS.

use posthaste_link::Direction;
use posthaste_quic_sim::{
    DatagramTrace, QuicOptions, QuicScenario, QuicSimulator, TracedDatagram, quic_ladder,
};
use posthaste_sim::{SimulatedScenario as _, Totals};
use posthaste_units::{Instant, Seed};

use crate::support::{SEED, author, dropping, plan, scenario, simulator};

fn lossy() -> QuicScenario {
    let mut plans = dropping(&plan(Some(1000), 20), "");
    for plan in &mut plans {
        plan.jitter = Some("variance:50%".parse().expect("a jitter"));
        plan.loss = Some("5%".parse().expect("a loss"));
    }
    scenario(QuicOptions::default(), plans, author())
}

/// Direction, times and length of each datagram, without its bytes.
fn datagrams(
    simulator: &mut QuicSimulator,
    number: u64,
) -> Vec<(Direction, Instant, Instant, usize)> {
    let mut trace = DatagramTrace::new();
    simulator.play_before(number, &mut trace);
    let form = |sent: &TracedDatagram| (sent.direction, sent.sent, sent.left, sent.bytes);
    trace.datagrams().iter().map(form).collect()
}

#[test]
fn a_transaction_does_not_depend_on_those_before_it() {
    let mut used = simulator(lossy());
    for number in [3, 1, 7, 3, 200, 1] {
        let mut fresh = simulator(lossy());
        let (one, other) = (datagrams(&mut used, number), datagrams(&mut fresh, number));
        assert_eq!(one, other, "{number}");
    }
}

#[test]
fn numbers_and_seeds_differ() {
    let mut of_seed = simulator(lossy());
    let mut of_other = QuicSimulator::new(lossy(), Seed(SEED.0 + 1)).expect("played");
    let one = datagrams(&mut of_seed, 1);
    assert_ne!(one, datagrams(&mut of_seed, 2));
    assert_ne!(one, datagrams(&mut of_other, 1));
}

#[test]
fn totals_merge_in_any_order() {
    let count = |numbers: &[u64]| {
        let mut simulator = lossy().simulator(SEED).expect("played");
        let mut totals = Totals::new();
        for number in numbers {
            simulator.add_to(&mut totals, *number);
        }
        totals
    };
    let mut merged = count(&[5, 2, 6]);
    merged.merge(&count(&[4, 1, 3]));
    assert_eq!(merged, count(&[1, 2, 3, 4, 5, 6]));
    let form = serde_json::to_string(&merged).expect("a form");
    let back: Totals = serde_json::from_str(&form).expect("the form of totals");
    assert_eq!(back, merged);
}

/// The snapshot was written by another process.
#[test]
fn every_process_draws_the_same_ladder() {
    let plans = dropping(&plan(Some(10_000), 50), "down:14");
    let usual = scenario(QuicOptions::default(), plans, author());
    let ladders = [(); 3].map(|()| quic_ladder(&usual, SEED, 1).expect("drawn").text());
    assert_eq!(ladders[0], ladders[1]);
    assert_eq!(ladders[0], ladders[2]);
    insta::assert_snapshot!(ladders[0]);
}
