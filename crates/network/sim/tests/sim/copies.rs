//! Copies made by links, and unnecessary retransmissions.

use posthaste_link::pattern::Pattern;
use posthaste_link::{Direction, Plan};
use posthaste_sim::{SimulatedService, Totals};

use crate::support::{ms, plan, scenario, simulator};

/// Returns the unnecessary retransmissions of a transaction with the given pattern lines.
fn for_nothing(lines: &str) -> u64 {
    let text = format!("posthaste pattern 1\n{lines}end\n");
    let pattern = Pattern::parse(&text).expect("a pattern");
    let plans = Direction::BOTH.map(|direction| Plan {
        script: Some(pattern.script(direction).clone()),
        ..plan(None, 10)
    });
    let service = SimulatedService::single(100, ms(1), 1000);
    let mut simulator = simulator(scenario("rfc", plans, service));
    let mut totals = Totals::new();
    totals.add(&simulator.play(1));
    totals.for_nothing
}

#[test]
fn copies_are_not_sent_for_nothing() {
    let both = "up copy 1-100: 1\ndown copy 1-100: 1\n";
    assert_eq!(for_nothing(both), 0);
}

/// The client's acknowledgement of the reply and its FIN are lost, so the reply is sent again.
#[test]
fn a_copied_acknowledgement_hides_nothing() {
    let lost = "up drop 4-5\n";
    let alone = for_nothing(lost);
    assert!(alone > 0);
    assert_eq!(for_nothing(&format!("{lost}up copy 2: 1\n")), alone);
}
