//! Classes: what is guaranteed under overload, what is borrowed from those who are idle.

use std::sync::Arc;

use posthaste_link::{Class, Classes, Link, Plan, Reason};
use posthaste_units::{BitRate, Seed};

use crate::support::{Parcel, at, drain, marks, rate};

/// The DiffServ router of the WS-QoS study: 1,024 kbyte/s, 0x0A has 30 %, everything else 70 %.
const BITS: u64 = 8_192_000;

fn bits(bits: u64) -> BitRate {
    rate(bits).unwrap()
}

fn router(af_ceiling: u64, be_ceiling: u64) -> Plan {
    let class = |dscp: &[u8], guaranteed: u64, ceiling: u64| Class {
        dscp: dscp.to_vec(),
        guaranteed: bits(guaranteed),
        ceiling: bits(ceiling),
    };
    Plan {
        bandwidth: rate(BITS),
        classes: Some(Arc::new(Classes::new(vec![
            class(&[0x0a], BITS * 3 / 10, af_ceiling),
            class(&[], BITS * 7 / 10, be_ceiling),
        ]))),
        ..Plan::default()
    }
}

/// What one class is offered: code point, bytes of a packet, bits per second.
type Offer = (u8, u32, u64);

/// Offers traffic for ten seconds; returns what each got of it in bits per second.
fn share(plan: &Plan, offers: &[Offer]) -> Vec<f64> {
    let mut arrivals: Vec<(u64, usize)> = Vec::new();
    for (class, (_, bytes, bits)) in offers.iter().enumerate() {
        let gap = u64::from(*bytes) * 8_000_000_000 / bits;
        arrivals.extend((0..10_000_000_000 / gap).map(|n| (n * gap, class)));
    }
    arrivals.sort_unstable();
    assert_eq!(plan.check(), Ok(()));
    let mut link = Link::new(&Arc::new(plan.clone()), Seed(1));
    for (ns, class) in arrivals {
        let (dscp, bytes, _) = offers[class];
        link.push(
            at(ns),
            Parcel {
                bytes,
                dscp,
                id: class,
                flips: 0,
            },
        );
    }
    let mut got = vec![0.0; offers.len()];
    for passage in drain(&mut link) {
        let left = passage.left.as_nanos();
        if marks(passage.fate).is_some() && (1_000_000_000..9_000_000_000).contains(&left) {
            got[passage.packet.id] += f64::from(passage.packet.bytes);
        }
    }
    let classes = link.class_counters();
    let sent: u64 = classes
        .iter()
        .map(|class| class.guaranteed.bytes + class.borrowed.bytes)
        .sum();
    assert_eq!(sent, link.counters().delivered.bytes);
    got
}

fn assert_close(found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() < 0.01,
        "{found} instead of {expected}"
    );
}

#[test]
fn guarantees_hold_under_overload_whatever_the_packets() {
    for (af, be) in [(1500, 1500), (100, 1500), (1500, 100), (577, 1499)] {
        for (af_load, be_load) in [(BITS, BITS), (BITS / 2, BITS * 3)] {
            let got = share(
                &router(BITS, BITS),
                &[(0x0a, af, af_load), (0, be, be_load)],
            );
            assert_close(got[0], BITS as f64 * 0.3);
            assert_close(got[1], BITS as f64 * 0.7);
        }
    }
}

#[test]
fn each_borrows_all_when_the_other_is_idle() {
    assert_close(
        share(&router(BITS, BITS), &[(0x0a, 1500, BITS * 2)])[0],
        BITS as f64,
    );
    assert_close(
        share(&router(BITS, BITS), &[(0x1c, 1500, BITS * 2)])[0],
        BITS as f64,
    );
}

#[test]
fn borrowing_ends_at_the_ceiling() {
    let got = share(&router(BITS / 2, BITS * 7 / 10), &[(0x0a, 1500, BITS * 2)]);
    assert_close(got[0], BITS as f64 / 2.0);
    // Who must not borrow leaves the rest unused.
    let got = share(&router(BITS / 2, BITS * 7 / 10), &[(0, 1500, BITS * 2)]);
    assert_close(got[0], BITS as f64 * 0.7);
    // Ceiling of one, guarantee and more of the other.
    let got = share(
        &router(BITS * 4 / 10, BITS),
        &[(0x0a, 1500, BITS), (0, 1500, BITS / 2)],
    );
    assert_close(got[0], BITS as f64 * 0.4);
    assert_close(got[1], BITS as f64 * 0.5);
}

/// What one leaves of its guarantee is the other's.
#[test]
fn nothing_is_wasted() {
    let got = share(
        &router(BITS, BITS),
        &[(0x0a, 1500, BITS / 10), (0, 1500, BITS * 2)],
    );
    assert_close(got[0], BITS as f64 * 0.1);
    assert_close(got[1], BITS as f64 * 0.9);
}

#[test]
fn what_nobody_is_guaranteed_is_lent_in_proportion() {
    let class = |dscp: u8, guaranteed: u64| Class {
        dscp: vec![dscp],
        guaranteed: bits(guaranteed),
        ceiling: bits(BITS),
    };
    let list = vec![class(1, BITS / 10), class(2, BITS / 5), class(3, BITS / 5)];
    let plan = Plan {
        classes: Some(Arc::new(Classes::new(list))),
        ..router(BITS, BITS)
    };
    // Half is lent: to the first two, one to two, while the third takes less than its own.
    let got = share(
        &plan,
        &[(1, 900, BITS), (2, 1500, BITS), (3, 1500, BITS / 10)],
    );
    assert_close(got[0], BITS as f64 * 0.3);
    assert_close(got[1], BITS as f64 * 0.6);
    assert_close(got[2], BITS as f64 * 0.1);
}

/// A class that floods its own queue takes no room from the other's.
#[test]
fn queues_are_apart() {
    let mut link = Link::new(&Arc::new(router(BITS, BITS)), Seed(1));
    for id in 0..100 {
        let dscp = if id < 95 { 0 } else { 0x0a };
        link.push(
            at(0),
            Parcel {
                bytes: 1500,
                dscp,
                id,
                flips: 0,
            },
        );
    }
    let out = drain(&mut link);
    let full = crate::support::dropped(&out, Reason::QueueFull);
    assert_eq!(full.len(), 45);
    assert!(full.iter().all(|position| *position <= 95));
}

#[test]
fn classes_that_do_not_fit_are_refused_with_the_remedy() {
    let with = |change: &dyn Fn(&mut Classes)| {
        let mut classes = (*router(BITS, BITS).classes.unwrap()).clone();
        change(&mut classes);
        let plan = Plan {
            classes: Some(Arc::new(classes)),
            ..router(BITS, BITS)
        };
        plan.check().unwrap_err().to_string()
    };
    assert!(with(&|classes| classes.list[0].guaranteed = bits(BITS)).contains("guarantee less"));
    assert!(with(&|classes| classes.list[1].ceiling = bits(1)).contains("raise it"));
    assert!(with(&|classes| classes.list[1].dscp = vec![0x0a]).contains("list each once"));
    assert!(with(&|classes| classes.list[1].dscp = vec![64]).contains("above 0x3f"));
    assert!(with(&|classes| classes.rest = 2).contains("name one"));
    let plan = Plan {
        bandwidth: None,
        ..router(BITS, BITS)
    };
    assert!(
        plan.check()
            .unwrap_err()
            .to_string()
            .contains("give the link one")
    );
}
