//! Runs the Author transaction repeatedly, to count instructions. Their number varies less between runs than time does.
//!
//! A packet takes some 2,050 instructions from one program to the other, spread evenly over endpoints, link and loop.
//! Three changes gained nothing: a custom container instead of `VecDeque`, more inlining, and multiplications instead
//! of divisions by a clock's tick. The path of a packet allocates nothing.
//!
//! `cargo run --release -p posthaste-sim --example author -- PROFILE TRANSACTIONS [POSITION|LOSS%]`

use std::sync::Arc;

use posthaste_link::pattern::Pattern;
use posthaste_link::{Direction, Plan};
use posthaste_sim::{Scenario, SimulatedService, Simulator, Totals};
use posthaste_tcp::profile;
use posthaste_units::{BitRate, Seed, Span};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = |index: usize| arguments.get(index).map(String::as_str).unwrap_or_default();
    let tcp = Arc::new(profile::named(word(0)).expect("a profile"));
    let up = Plan {
        bandwidth: BitRate::per_second(300_000),
        delay: Span::from_millis(10),
        jitter: "variance:50%".parse().ok(),
        ..Plan::default()
    };
    let mut down = up.clone();
    let mut both = [up.clone(), down.clone()];
    if let Ok(position) = word(2).parse::<u32>() {
        let text = format!("posthaste pattern 1\ndown drop {position}\nend\n");
        let pattern = Pattern::parse(&text).expect("a pattern");
        down.script = Some(pattern.script(Direction::Down).clone());
        both[1] = down;
    } else if word(2).ends_with('%') {
        both = both.map(|plan| Plan {
            loss: word(2).parse().ok(),
            ..plan
        });
    }
    let scenario = Scenario {
        client: tcp.clone(),
        server: tcp,
        plans: both.map(Arc::new),
        service: Arc::new(SimulatedService::single(
            1438,
            Span::from_millis(200),
            12_974,
        )),
    };
    let mut simulator = Simulator::new(scenario, Seed(2003)).expect("it can be played");
    let mut totals = Totals::new();
    for number in 1..=word(1).parse().unwrap_or(1) {
        totals.add(&simulator.play(number));
    }
    println!("{:#?}", totals.response.summary());
}
