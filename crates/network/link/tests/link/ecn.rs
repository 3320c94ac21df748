//! Marks of congestion, by CoDel and by a step.

use std::sync::Arc;

use posthaste_link::{Departure, DropReason, Ecn, Fate, Link, Plan};
use posthaste_units::{Seed, Span};

use crate::support::{Parcel, at, drain, dropped, marks, parcel, rate};

/// A link on which 1,250 bytes take 1 ms.
fn line(queue: &str) -> Plan {
    Plan {
        bandwidth: rate(10_000_000),
        queue: queue.parse().unwrap(),
        ..Plan::default()
    }
}

/// Passes packets of 1,250 bytes, all with `ecn`, one each `gap` ns.
fn flood(plan: &Plan, ecn: Ecn, packets: usize, gap: u64) -> Vec<Departure<Parcel>> {
    let mut link = Link::new(&Arc::new(plan.clone()), Seed(1));
    for id in 0..packets {
        let packet = Parcel {
            ecn,
            ..parcel(id, 1250)
        };
        link.push(at(id as u64 * gap), packet);
    }
    let out = drain(&mut link);
    assert_eq!(link.counters().marked.packets, marked(&out).len() as u64);
    for departure in &out {
        let is_marked = marks(departure.fate).is_some_and(|marks| marks.congested);
        let expected = if is_marked { Ecn::Ce } else { ecn };
        assert_eq!(departure.packet.ecn, expected, "{departure:?}");
    }
    out
}

fn marked(out: &[Departure<Parcel>]) -> Vec<u64> {
    let is_marked = |out: &&Departure<Parcel>| marks(out.fate).is_some_and(|marks| marks.congested);
    out.iter()
        .filter(is_marked)
        .map(|out| out.position)
        .collect()
}

/// A sender 10 % above the bandwidth. It does not slow down.
const GAP: u64 = 909_091;

#[test]
fn codel_marks_by_the_law_of_its_drops() {
    for ecn in [Ecn::Ect0, Ecn::Ect1] {
        let out = flood(&line("100000:codel:ecn"), ecn, 1500, GAP);
        assert_eq!(dropped(&out, DropReason::CoDel), [0_u64; 0]);
        let times: Vec<f64> = out
            .iter()
            .filter(|out| marks(out.fate).is_some_and(|marks| marks.congested))
            .map(|out| out.left.as_nanos() as f64 / 1e6 - 1.0)
            .collect();
        assert!(times.len() > 20, "{times:?}");
        assert!((150.0..170.0).contains(&times[0]), "{times:?}");
        let mut next = times[0];
        for (count, time) in times.iter().enumerate() {
            assert!(
                (0.0..1.0 + 1e-3).contains(&(time - next)),
                "mark {count}: {time} {next}"
            );
            next += 100.0 / (count as f64 + 1.0).sqrt();
        }
    }
}

#[test]
fn codel_drops_what_is_not_capable() {
    let plain = flood(&line("100000:codel"), Ecn::Ect0, 1500, GAP);
    let drops = dropped(&plain, DropReason::CoDel);
    assert!(drops.len() > 20 && marked(&plain).is_empty());
    let out = flood(&line("100000:codel:ecn"), Ecn::NotEct, 1500, GAP);
    assert_eq!(
        (dropped(&out, DropReason::CoDel), marked(&out)),
        (drops, vec![])
    );
}

#[test]
fn a_step_marks_what_finds_as_many_packets() {
    // One is in transmission and the others wait, so that the fourth finds three.
    let out = flood(&line("100:step:3"), Ecn::Ect0, 6, 0);
    assert_eq!(marked(&out), [4, 5, 6]);
    // The first is through when the fourth arrives.
    let out = flood(&line("100:step:3"), Ecn::Ect1, 6, 400_000);
    assert_eq!(marked(&out), [5, 6]);
    assert_eq!(
        marked(&flood(&line("100:step:3"), Ecn::NotEct, 6, 0)),
        [0_u64; 0]
    );
    let full = flood(&line("5:step:3"), Ecn::Ect0, 7, 0);
    assert_eq!(
        (marked(&full), dropped(&full, DropReason::QueueFull)),
        (vec![4, 5], vec![6, 7])
    );
}

#[test]
fn a_step_in_time_marks_what_has_waited() {
    let out = flood(&line("100:step:3ms"), Ecn::Ect0, 6, 0);
    assert_eq!(marked(&out), [4, 5, 6]);
    assert!(out.iter().all(|out| matches!(out.fate, Fate::Delivered(_))));
    let waited: Vec<Span> = out.iter().map(|out| out.left.since(out.arrived)).collect();
    assert_eq!(
        waited[3],
        Span::from_millis(4),
        "three of them before its transmission"
    );
}
