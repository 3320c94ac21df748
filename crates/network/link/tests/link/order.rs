//! Order of packets: FIFO if the plan keeps order, changed if it reorders.

use posthaste_link::{HOLD_LIMIT, Order, Plan, PlanError};
use posthaste_units::Span;
use proptest::prelude::*;

use crate::support::{Arrival, arrivals, at, marks, pass, patterned, plans};

fn every_ms(packets: u64) -> Vec<Arrival> {
    (0..packets)
        .map(|packet| (packet * 1_000_000, 1000))
        .collect()
}

/// Positions in order of departure.
fn sequence(plan: &Plan, arrivals: &[Arrival]) -> Vec<u64> {
    let out = pass(plan, 1, arrivals);
    out.iter().map(|departure| departure.position).collect()
}

proptest! {
    #[test]
    fn the_delay_line_never_reorders(mut plan in plans(), arrivals in arrivals()) {
        plan.order = Order::Dummynet;
        plan.keeps_order = true;
        plan.reordering = None;
        plan.classes = None;
        plan.script = None;
        let out = pass(&plan, 7, &arrivals);
        let delivered: Vec<_> = out.iter().filter_map(|departure| Some((departure, marks(departure.fate)?))).collect();
        prop_assert!(delivered.iter().all(|(_, marks)| !marks.overtook && !marks.held));
        prop_assert!(delivered.windows(2).all(|two| two[0].0.position <= two[1].0.position));
    }

    /// netem's jitter cannot reorder packets if there is a rate.
    #[test]
    fn neither_does_netem_with_a_rate(mut plan in plans(), arrivals in arrivals()) {
        prop_assume!(plan.bandwidth.is_some());
        plan.order = Order::Netem;
        plan.queue.discipline = posthaste_link::Discipline::DropTail;
        plan.classes = None;
        plan.reordering = None;
        plan.script = None;
        let out = pass(&plan, 7, &arrivals);
        let delivered: Vec<_> = out.iter().filter(|departure| marks(departure.fate).is_some()).collect();
        prop_assert!(delivered.windows(2).all(|two| two[0].position <= two[1].position));
    }
}

/// A packet overtakes by its missing delay: without any delay it has none to miss.
#[test]
fn going_at_once_needs_a_delay_to_go_ahead_of() {
    let reordering = |text: &str| Plan {
        reordering: Some(text.parse().unwrap()),
        ..Plan::default()
    };
    for order in [Order::Dummynet, Order::Netem] {
        for text in ["25%", "25%:5"] {
            let plan = Plan {
                order,
                ..reordering(text)
            };
            assert_eq!(plan.check(), Err(PlanError::NothingToOvertake), "{plan:?}");
            assert!(sequence(&plan, &every_ms(100)).is_sorted());
        }
        let hold = Plan {
            order,
            ..reordering("hold:25%:3")
        };
        assert_eq!(hold.check(), Ok(()));
        assert!(!sequence(&hold, &every_ms(100)).is_sorted());
    }
    let some = |change: fn(&mut Plan)| {
        let mut plan = reordering("25%");
        change(&mut plan);
        plan.check()
    };
    assert_eq!(some(|plan| plan.delay = Span::from_nanos(1)), Ok(()));
    assert_eq!(some(|plan| plan.jitter = "5ms".parse().ok()), Ok(()));
    assert!(
        some(|plan| plan.jitter = "50%".parse().ok()).is_err(),
        "half of no delay"
    );
    for (line, expected) in [
        ("up delay 5: 4ms", Ok(())),
        ("up delay from 5ms: 4ms", Ok(())),
        ("up drop 5", Err(PlanError::NothingToOvertake)),
    ] {
        let plan = Plan {
            script: patterned(line).script,
            ..reordering("25%")
        };
        assert_eq!(plan.check(), expected, "{line}");
    }
}

#[test]
fn jitter_reorders_where_it_may() {
    let jitter = Plan {
        delay: Span::from_millis(10),
        jitter: Some("uniform:9ms".parse().unwrap()),
        queue: "1000".parse().unwrap(),
        ..Plan::default()
    };
    let arrivals = every_ms(1000);
    assert!(sequence(&jitter, &arrivals).is_sorted());
    for order in [Order::Dummynet, Order::Netem] {
        let free = Plan {
            keeps_order: false,
            order,
            ..jitter.clone()
        };
        let out = pass(&free, 1, &arrivals);
        assert!(!out.iter().map(|departure| departure.position).is_sorted());
        // RFC 4737 counts packets that come after a later one. These come before an earlier one.
        let mut earlier_to_come = 0;
        for (at, departure) in out.iter().enumerate() {
            let overtook = out[at + 1..]
                .iter()
                .any(|later| later.position < departure.position);
            assert_eq!(
                marks(departure.fate).unwrap().overtook,
                overtook,
                "{departure:?}"
            );
            earlier_to_come += u32::from(overtook);
        }
        assert!(earlier_to_come > 100, "{order:?}: {earlier_to_come}");
    }
}

#[test]
fn a_held_packet_lets_exactly_its_number_go_first() {
    let plan = Plan {
        delay: Span::from_millis(5),
        ..patterned("up hold 3: 2\nup hold 4: 3")
    };
    let out = pass(&plan, 1, &every_ms(9));
    let order: Vec<u64> = out.iter().map(|departure| departure.position).collect();
    assert_eq!(order, [1, 2, 5, 6, 3, 7, 4, 8, 9]);
    for departure in &out {
        let held = [3, 4].contains(&departure.position);
        assert_eq!(
            marks(departure.fate).map(|marks| (marks.held, marks.overtook)),
            Some((held, false))
        );
    }
    let left = |position: u64| {
        out.iter()
            .find(|departure| departure.position == position)
            .unwrap()
            .left
    };
    assert_eq!((left(3), left(4)), (left(6), left(7)));
}

#[test]
fn copies_follow_a_packet_that_is_held_or_delayed() {
    let expected = [1, 3, 4, 2, 2, 2, 5, 6];
    for effect in ["up hold 2: 2", "up delay 2: 2500us"] {
        for order in [Order::Dummynet, Order::Netem] {
            let plan = Plan {
                keeps_order: false,
                order,
                ..patterned(&format!("{effect}\nup copy 2: 2"))
            };
            let out = pass(&plan, 1, &every_ms(6));
            let positions: Vec<u64> = out.iter().map(|departure| departure.position).collect();
            assert_eq!(positions, expected, "{effect}, {order:?}");
            let copies: Vec<u32> = out[3..6].iter().map(|departure| departure.copy).collect();
            assert_eq!(copies, [0, 1, 2], "{effect}, {order:?}");
        }
    }
}

#[test]
fn a_packet_held_for_missing_others_leaves_at_the_limit() {
    let out = pass(&patterned("up hold 2: 5"), 1, &every_ms(3));
    assert_eq!(out[2].position, 2);
    assert_eq!(out[2].left, at(1_000_000) + HOLD_LIMIT);
}

#[test]
fn with_a_gap_every_fifth_goes_at_once() {
    for order in [Order::Dummynet, Order::Netem] {
        let plan = Plan {
            delay: Span::from_millis(100),
            reordering: Some("100%:5".parse().unwrap()),
            order,
            ..Plan::default()
        };
        for departure in pass(&plan, 1, &every_ms(40)) {
            let at_once = departure.left == departure.arrived;
            assert_eq!(at_once, departure.position % 5 == 0, "{departure:?}");
        }
    }
}

#[test]
fn the_share_that_is_held_is_as_asked() {
    let plan = Plan {
        reordering: Some("hold:10%:3".parse().unwrap()),
        ..Plan::default()
    };
    let out = pass(&plan, 1, &every_ms(10_000));
    let held = out
        .iter()
        .filter(|departure| marks(departure.fate).is_some_and(|marks| marks.held))
        .count();
    assert!((850..1150).contains(&held), "{held}");
}

#[test]
fn of_the_same_time_the_first_decided_comes_first() {
    let plan = Plan {
        delay: Span::from_millis(5),
        ..patterned("up drop 2-5")
    };
    assert_eq!(sequence(&plan, &[(0, 1000); 6]), [2, 3, 4, 5, 1, 6]);
}
