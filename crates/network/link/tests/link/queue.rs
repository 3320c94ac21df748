//! Full queues: the packets to drop, and the packets that count.

use posthaste_link::{DropReason, Order, Plan, PlanError};

use crate::support::{Arrival, dropped, pass, rate};

/// A link on which 1,250 bytes take 10 ms.
fn line(queue: &str, order: Order) -> Plan {
    Plan {
        bandwidth: rate(1_000_000),
        queue: queue.parse().unwrap(),
        order,
        ..Plan::default()
    }
}

fn at_ms(times: &[u64]) -> Vec<Arrival> {
    times.iter().map(|ms| (ms * 1_000_000, 1250)).collect()
}

#[test]
fn the_packet_being_sent_counts_until_it_is_through() {
    let plan = line("3", Order::Dummynet);
    let out = pass(&plan, 1, &at_ms(&[0, 0, 0, 0, 9, 10, 10, 20]));
    assert_eq!(dropped(&out, DropReason::QueueFull), [4, 5, 7]);
}

/// The default is that of dummynet.
#[test]
fn fifty_slots() {
    let plan = Plan {
        bandwidth: rate(1_000_000),
        ..Plan::default()
    };
    let out = pass(&plan, 1, &at_ms(&[0; 60]));
    let expected: Vec<u64> = (51..=60).collect();
    assert_eq!(dropped(&out, DropReason::QueueFull), expected);
}

#[test]
fn bytes_are_counted_too() {
    let out = pass(
        &line("100:3kB", Order::Dummynet),
        1,
        &[(0, 1500), (0, 1400), (0, 101), (0, 100), (0, 1)],
    );
    assert_eq!(dropped(&out, DropReason::QueueFull), [3, 5]);
}

#[test]
fn the_oldest_waiting_makes_room() {
    let out = pass(
        &line("3:drop-head", Order::Dummynet),
        1,
        &at_ms(&[0, 0, 0, 0, 5, 11]),
    );
    // The first is in transmission and stays.
    assert_eq!(dropped(&out, DropReason::PushedOut), [2, 3]);
    let left: Vec<(u64, u64)> = out
        .iter()
        .map(|departure| (departure.position, departure.left.as_nanos() / 1_000_000))
        .collect();
    assert_eq!(left, [(2, 0), (3, 5), (1, 10), (4, 20), (5, 30), (6, 40)]);
}

#[test]
fn nobody_makes_room_where_that_does_not_help() {
    let out = pass(&line("1:drop-head", Order::Dummynet), 1, &at_ms(&[0, 1]));
    assert_eq!(dropped(&out, DropReason::QueueFull), [2]);
    let out = pass(
        &line("9:2kB:drop-head", Order::Dummynet),
        1,
        &[(0, 1000), (0, 1000), (0, 2001)],
    );
    assert_eq!(dropped(&out, DropReason::QueueFull), [3]);
    assert_eq!(dropped(&out, DropReason::PushedOut), [0_u64; 0]);
}

/// netem's limit also counts delayed packets, and dummynet's only packets that wait for the bandwidth.
#[test]
fn netem_s_limit_counts_everything_in_the_link() {
    let delayed = |order| Plan {
        bandwidth: None,
        delay: posthaste_units::Span::from_millis(100),
        ..line("3", order)
    };
    let arrivals = at_ms(&[0, 1, 2, 3, 99, 100, 100]);
    assert_eq!(
        dropped(
            &pass(&delayed(Order::Netem), 1, &arrivals),
            DropReason::QueueFull
        ),
        [4, 5, 7]
    );
    assert_eq!(
        dropped(
            &pass(&delayed(Order::Dummynet), 1, &arrivals),
            DropReason::QueueFull
        ),
        [0_u64; 0]
    );
}

#[test]
fn impossible_queues_are_refused() {
    assert_eq!(line("3", Order::Netem).check(), Ok(()));
    let error = line("3:codel", Order::Netem).check().unwrap_err();
    assert!(
        error.to_string().contains("use dummynet's order"),
        "{error}"
    );
    assert_eq!(
        line("3:1499B", Order::Dummynet).check(),
        Err(PlanError::NoRoom)
    );
    // A packet that finds 4 in a queue of 3 would be the fourth beside the one in transmission.
    assert_eq!(line("3:step:4", Order::Dummynet).check(), Ok(()));
    assert_eq!(
        line("3:step:5", Order::Dummynet).check(),
        Err(PlanError::NeverMarks { threshold: 5 })
    );
}
