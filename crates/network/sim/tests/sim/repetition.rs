//! The same number is the same transaction, regardless of earlier transactions and of the thread.

use posthaste_link::{Loss, Plan};
use posthaste_sim::{PacketTrace, Scenario, Simulator, Totals, TracedPacket};
use proptest::prelude::*;

use crate::support::{SEED, author, plan, scenario, simulator};

fn lossy() -> Scenario {
    let plan = Plan {
        jitter: Some("variance:50%".parse().expect("a jitter")),
        loss: Some("5%".parse::<Loss>().expect("a loss")),
        ..plan(Some(1000), 20)
    };
    scenario("rfc", [plan.clone(), plan], author())
}

fn packets(simulator: &mut Simulator, number: u64) -> Vec<TracedPacket> {
    let mut trace = PacketTrace::new();
    simulator.play_before(number, &mut trace);
    trace.packets().to_vec()
}

fn count(numbers: impl IntoIterator<Item = u64>) -> Totals {
    let (mut simulator, mut totals) = (simulator(lossy()), Totals::new());
    for number in numbers {
        totals.add(&simulator.play(number));
    }
    totals
}

#[test]
fn a_transaction_does_not_depend_on_those_before_it() {
    let mut used = simulator(lossy());
    for number in [3, 1, 7, 3, 200, 1] {
        let mut fresh = simulator(lossy());
        assert_eq!(
            packets(&mut used, number),
            packets(&mut fresh, number),
            "{number}"
        );
    }
}

#[test]
fn numbers_and_seeds_differ() {
    let mut of_seed = simulator(lossy());
    let mut of_other = Simulator::new(lossy(), posthaste_units::Seed(SEED.0 + 1)).expect("played");
    let one = packets(&mut of_seed, 1);
    assert_ne!(one, packets(&mut of_seed, 2));
    assert_ne!(one, packets(&mut of_other, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn totals_do_not_depend_on_who_counted_what(shares in proptest::collection::vec(0usize..4, 300), order in Just([2usize, 0, 3, 1]).prop_shuffle()) {
        let whole = count(1..=300);
        let mut merged = Totals::new();
        for thread in order {
            let own = (1u64..).zip(&shares).filter(|(_, share)| **share == thread);
            merged.merge(&count(own.map(|(number, _)| number)));
        }
        prop_assert!(merged == whole);
        prop_assert_eq!(merged.connections, 300);
    }
}
