//! Delivery opportunities: packets leave in the milliseconds of a mahimahi trace, as behind mahimahi's own link.

use posthaste_link::change::Change;
use posthaste_link::pattern::{Draft, mahimahi};
use posthaste_link::{Direction, Order, Plan};
use posthaste_units::{BitRate, Span};
use proptest::prelude::*;

use crate::support::{Arrival, pass, patterned};

const MILLI: u64 = 1_000_000;

/// A link with this trace, in this order of stages.
fn traced(trace: &[u64], order: Order) -> Plan {
    let text: String = trace.iter().map(|ms| format!("{ms}\n")).collect();
    let mut draft = Draft::default();
    mahimahi(text.as_bytes(), Direction::Up, &mut draft).unwrap();
    Plan {
        script: Some(draft.finish().script(Direction::Up).clone()),
        queue: "100000".parse().unwrap(),
        order,
        ..Plan::default()
    }
}

/// Milliseconds in which packets leave behind mahimahi's `LinkQueue`, whose clock begins at `began`: a plain copy of
/// `rationalize`, one opportunity after another.
fn mahimahis(trace: &[u64], arrivals: &[Arrival], began: u64) -> Vec<u64> {
    let mut waiting = arrivals
        .iter()
        .map(|(at, bytes)| ((at - began) / MILLI, u64::from(*bytes) + 4));
    let mut head = waiting.next();
    let mut left = Vec::new();
    for round in 0.. {
        for ms in trace {
            let now = round * trace.last().unwrap() + ms;
            let mut room = 1504;
            while let Some((arrived, need)) = &mut head
                && *arrived < now
                && room > 0
            {
                let part = room.min(*need);
                (room, *need) = (room - part, *need - part);
                if *need == 0 {
                    left.push(now);
                    head = waiting.next();
                }
            }
        }
        if head.is_none() {
            break;
        }
    }
    left
}

fn leaving(plan: &Plan, arrivals: &[Arrival]) -> Vec<f64> {
    let began = arrivals[0].0;
    let out = pass(plan, 1, arrivals);
    let left = out
        .iter()
        .map(|departure| departure.left.as_nanos() - began);
    left.map(|nanos| nanos as f64 / MILLI as f64).collect()
}

proptest! {
    #[test]
    fn packets_leave_in_the_milliseconds_of_the_trace(
        gaps in proptest::collection::vec(0u64..20, 1..30),
        arrivals in proptest::collection::vec((prop_oneof![3 => Just(0), 2 => 0..3 * MILLI, 1 => 0..200 * MILLI], 20u32..=1500), 1..100),
        netem: bool,
    ) {
        let mut ms = 0;
        let mut trace: Vec<u64> = gaps.iter().map(|gap| { ms += gap; ms }).collect();
        if ms == 0 {
            trace.push(1);
        }
        let mut now = 5 * MILLI + 3;
        let arrivals: Vec<Arrival> = arrivals.iter().map(|(gap, bytes)| { now += gap; (now, *bytes) }).collect();
        let order = if netem { Order::Netem } else { Order::Dummynet };
        let left = leaving(&traced(&trace, order), &arrivals);
        let expected = mahimahis(&trace, &arrivals, arrivals[0].0);
        prop_assert_eq!(left, expected.iter().map(|ms| *ms as f64).collect::<Vec<f64>>());
    }
}

/// Ten idle milliseconds leave nothing behind: the next packets leave one by one, not at once.
#[test]
fn unused_opportunities_are_lost() {
    let plan = traced(&[1], Order::Dummynet);
    let arrivals = [(0, 1500), (10 * MILLI + 1, 1500), (10 * MILLI + 1, 1500)];
    assert_eq!(leaving(&plan, &arrivals), [1.0, 11.0, 12.0]);
    // Twenty-six acknowledgements of 52 bytes fit 1,504 bytes, with 4 more for each.
    let small: Vec<Arrival> = (0..28).map(|_| (0, 52)).collect();
    let left = leaving(&plan, &small);
    assert_eq!((left[25], left[26], left[27]), (1.0, 2.0, 2.0));
}

#[test]
fn the_delay_follows_and_the_bandwidth_returns_after_the_last() {
    let plan = Plan {
        delay: Span::from_millis(20),
        bandwidth: BitRate::per_second(1_000_000),
        ..patterned("up opportunities 3ms: 1\nup opportunities 5ms-8ms: 2")
    };
    let left = leaving(&plan, &[(0, 1500); 8]);
    let slow = 12.0;
    assert_eq!(
        left,
        [23.0, 25.0, 25.0, 26.0, 26.0, 27.0, 27.0, 27.0 + slow]
    );
}

/// A bandwidth would be without effect.
#[test]
fn a_running_link_with_opportunities_refuses_a_bandwidth() {
    let plan = traced(&[1], Order::Dummynet);
    let change = |text: &str| text.parse::<Change>().unwrap().check([&plan, &plan]);
    let error = change("up:bandwidth=1Mbit").unwrap_err().to_string();
    assert!(error.contains("up: the delivery opportunities"), "{error}");
    assert_eq!(change("delay=5ms loss=2%"), Ok(()));
}
