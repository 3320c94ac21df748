//! Changes of running links, in virtual time.

use std::sync::Arc;

use posthaste_link::change::Change;
use posthaste_link::{Departure, Direction, DropReason, Fate, Link, Network, Plan, Sharing};
use posthaste_units::{Seed, Span};
use proptest::prelude::*;

use crate::support::{Parcel, arrivals, at, drain, dropped, parcel, pass, plans, rate, share};

const MS: u64 = 1_000_000;

/// A link that can change, with 1 Mbit/s: 1,250 bytes take 10 ms.
fn line() -> Plan {
    Plan {
        bandwidth: rate(1_000_000),
        delay: Span::from_millis(100),
        changeable: true,
        ..Plan::default()
    }
}

fn changed(plan: &Plan, ns: u64, text: &str) -> Arc<Plan> {
    let change: Change = text.parse().unwrap();
    assert_eq!(change.check([plan, plan]), Ok(()));
    Arc::new(change.apply(Direction::Up, plan, at(ns)).unwrap())
}

/// Departures in ms of `count` packets of 1,250 bytes that arrive together at 0, after a change.
fn burst(plan: &Plan, count: usize, ms: u64, change: &str) -> Vec<f64> {
    let mut link = Link::new(&Arc::new(plan.clone()), Seed(1));
    for id in 0..count {
        link.push(at(0), parcel(id, 1250));
    }
    link.change(at(ms * MS), &changed(plan, ms * MS, change));
    let left = |departure: Departure<Parcel>| {
        assert!(
            matches!(departure.fate, Fate::Delivered(_)),
            "{departure:?}"
        );
        departure.left.as_nanos() as f64 / 1e6
    };
    drain(&mut link).into_iter().map(left).collect()
}

#[test]
fn queued_packets_are_sent_at_the_new_bandwidth() {
    // The third is in transmission at 25 ms and ends at 30.
    let faster = burst(&line(), 5, 25, "bandwidth=10Mbit");
    assert_eq!(faster, [110.0, 120.0, 130.0, 131.0, 132.0]);
    let slower = burst(&line(), 5, 25, "bandwidth=500kbit");
    assert_eq!(slower, [110.0, 120.0, 130.0, 150.0, 170.0]);
    let unlimited = burst(&line(), 5, 25, "bandwidth=unlimited");
    assert_eq!(unlimited, [110.0, 120.0, 130.0, 130.0, 130.0]);
}

#[test]
fn a_limit_can_come_into_force() {
    let plan = Plan {
        bandwidth: None,
        ..line()
    };
    let mut link = Link::new(&Arc::new(plan.clone()), Seed(1));
    link.push(at(0), parcel(0, 1250));
    link.change(at(MS), &changed(&plan, MS, "bandwidth=1Mbit"));
    link.push(at(MS), parcel(1, 1250));
    link.push(at(MS), parcel(2, 1250));
    let left: Vec<u64> = drain(&mut link)
        .iter()
        .map(|out| out.left.as_nanos() / MS)
        .collect();
    assert_eq!(left, [100, 111, 121]);
}

#[test]
fn packets_on_the_line_keep_their_departure() {
    assert_eq!(
        burst(&line(), 4, 25, "delay=200ms"),
        [110.0, 120.0, 130.0, 240.0]
    );
    // Order is kept, so that no packet overtakes one with a longer delay.
    assert_eq!(
        burst(&line(), 4, 25, "delay=10ms"),
        [110.0, 120.0, 130.0, 130.0]
    );
    let overtakes = Plan {
        keeps_order: false,
        ..line()
    };
    assert_eq!(
        burst(&overtakes, 4, 25, "delay=10ms"),
        [50.0, 110.0, 120.0, 130.0]
    );
}

#[test]
fn a_smaller_queue_keeps_the_packets_in_it() {
    let mut link = Link::new(&Arc::new(line()), Seed(1));
    (0..10).for_each(|id| {
        link.push(at(0), parcel(id, 1250));
    });
    link.change(at(MS), &changed(&line(), MS, "queue=2"));
    link.push(at(2 * MS), parcel(10, 1250));
    // At 85 ms one is in transmission and one waits.
    link.push(at(85 * MS), parcel(11, 1250));
    link.push(at(95 * MS), parcel(12, 1250));
    let out = drain(&mut link);
    assert_eq!(dropped(&out, DropReason::QueueFull), [11, 12]);
    assert_eq!(link.counters().delivered.packets, 11);
}

#[test]
fn an_outage_drops_what_arrives_in_it() {
    let plan = line();
    let mut link = Link::new(&Arc::new(plan.clone()), Seed(1));
    link.push(at(0), parcel(0, 1250));
    link.change(at(MS), &changed(&plan, MS, "outage=3s"));
    for (id, ms) in [(1, 1), (2, 1000), (3, 3000), (4, 3001), (5, 3002)] {
        link.push(at(ms * MS), parcel(id, 1250));
    }
    let out = drain(&mut link);
    assert_eq!(dropped(&out, DropReason::Outage), [2, 3, 4]);
    let times = out
        .iter()
        .filter(|out| out.fate == Fate::Dropped(DropReason::Outage));
    assert!(times.clone().all(|out| out.left == out.arrived));
}

#[test]
fn an_arrival_from_before_a_change_counts_from_it() {
    let plan = line();
    let mut link = Link::new(&Arc::new(plan.clone()), Seed(1));
    link.change(at(10 * MS), &changed(&plan, 10 * MS, "delay=1ms"));
    assert_eq!(link.push(at(9 * MS), parcel(0, 1250)), at(10 * MS));
}

/// Numbers of the packets lost out of 200, with a change before packet 100.
fn losses(first: &str, then: &str) -> Vec<u64> {
    let plan = Plan {
        loss: first.parse().ok(),
        ..line()
    };
    let mut link = Link::new(&Arc::new(plan.clone()), Seed(7));
    for id in 0..200_usize {
        let now = id as u64 * 20 * MS;
        if id == 100 {
            link.change(at(now), &changed(&plan, now, then));
        }
        link.push(at(now), parcel(id, 100));
    }
    dropped(&drain(&mut link), DropReason::Random)
}

#[test]
fn random_streams_continue() {
    let steady = losses("30%", "delay=1ms");
    assert!(steady.len() > 30, "{steady:?}");
    assert_eq!(losses("30%", "loss=30%"), steady);
    let halves = |at: u64| {
        [&steady, &losses("0%", "loss=30%")].map(|all| all.iter().filter(|n| **n > at).count())
    };
    let [late, later] = halves(100);
    assert_eq!(late, later, "a loss of zero draws, too");
    let ended = losses("30%", "loss=none");
    assert_eq!(
        ended,
        steady
            .iter()
            .copied()
            .filter(|n| *n <= 100)
            .collect::<Vec<_>>()
    );
    let begun: Vec<u64> = losses("none", "loss=30%");
    let shifted: Vec<u64> = steady
        .iter()
        .map(|n| n + 100)
        .filter(|n| *n <= 200)
        .collect();
    assert_eq!(
        begun, shifted,
        "a stream begins when its kind comes into use"
    );
}

#[test]
fn a_change_holds_for_links_of_later_connections() {
    let plan = Arc::new(line());
    for chosen in [false, true] {
        let mut network: Network<u8, Parcel> = if chosen {
            let plan = plan.clone();
            Network::choosing(move |_| [plan.clone(), plan.clone()], Seed(1))
        } else {
            Network::new(&plan, &plan, Sharing::PerConnection, Seed(1))
        };
        network.push(at(0), Direction::Up, 1, parcel(0, 1250));
        let applied = network.change(at(MS), "up:delay=5ms outage=2ms".parse().unwrap());
        assert_eq!(applied.at, at(MS));
        for (key, direction, ms) in [
            (1, Direction::Up, 50),
            (2, Direction::Up, 50),
            (3, Direction::Down, 50),
            (4, Direction::Up, 2),
        ] {
            network.push(at(ms * MS), direction, key, parcel(0, 1250));
        }
        let mut left = Vec::new();
        while let Some(wake) = network.wake() {
            while let Some((_, number, _, out)) = network.pop(wake) {
                left.push((
                    number,
                    out.left.as_nanos() / MS,
                    matches!(out.fate, Fate::Dropped(_)),
                ));
            }
        }
        // The first packet of connection 1 is in transmission at the change, and the second keeps behind it.
        let expected = [
            (4, 2, true),
            (2, 65, false),
            (1, 110, false),
            (1, 110, false),
            (3, 160, false),
        ];
        assert_eq!(left, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Only the time of the decisions differs, and the second of cross traffic that an idle link simulates.
    #[test]
    fn a_changeable_link_decides_as_any_other(plan in plans(), arrivals in arrivals(), seed: u64) {
        let plan = Plan { background: None, ..plan };
        let pass = |changeable| {
            let mut out = pass(&Plan { changeable, ..plan.clone() }, seed, &arrivals);
            out.sort_by_key(|out| (out.position, out.copy));
            out
        };
        prop_assert_eq!(pass(true), pass(false));
    }

    /// A change to the same values is none.
    #[test]
    fn a_change_of_nothing_changes_nothing(plan in plans(), arrivals in arrivals(), seed: u64) {
        let plan = Arc::new(Plan { changeable: true, ..plan });
        let run = |changes: bool| {
            let mut link = Link::new(&plan, Seed(seed));
            for (id, (ns, bytes)) in arrivals.iter().enumerate() {
                if changes {
                    link.change(at(*ns), &plan);
                }
                link.push(at(*ns), parcel(id, *bytes));
            }
            drain(&mut link)
        };
        prop_assert_eq!(run(true), run(false));
    }
}

#[test]
fn a_changed_share_of_copies_continues_its_stream() {
    let copies = |change: &str| {
        let plan = Plan {
            duplication: share(0.3),
            ..line()
        };
        let mut link = Link::new(&Arc::new(plan.clone()), Seed(3));
        for id in 0..200_usize {
            let now = id as u64 * 50 * MS;
            if id == 50 || id == 100 {
                let text = if id == 50 { change } else { "duplicate=30%" };
                link.change(at(now), &changed(&plan, now, text));
            }
            link.push(at(now), parcel(id, 100));
        }
        let out = drain(&mut link);
        let copied = out.iter().filter(|out| out.copy > 0 && out.position > 100);
        copied.map(|out| out.position).collect::<Vec<u64>>()
    };
    let steady = copies("duplicate=30%");
    assert!(steady.len() > 15);
    assert_eq!(copies("duplicate=0%"), steady);
}
