//! Classes: guarantees under overload, and borrowing from idle classes.

use std::sync::Arc;

use posthaste_link::{Class, Classes, DropReason, Ecn, Link, Plan, Queue};
use posthaste_units::{BitRate, Dscp, Instant, Seed};
use proptest::prelude::*;

use crate::support::{Parcel, at, drain, marks, rate};

/// The DiffServ router of the WS-QoS study: 1,024 kbyte/s, 0x0A has 30 %, everything else 70 %.
const BITS: u64 = 8_192_000;

fn bits(bits: u64) -> BitRate {
    rate(bits).unwrap()
}

fn router(af_ceiling: u64, be_ceiling: u64) -> Plan {
    let class = |dscp: &[Dscp], guaranteed: u64, ceiling: u64| Class {
        dscp: dscp.to_vec(),
        rest: dscp.is_empty(),
        guaranteed: bits(guaranteed),
        ceiling: bits(ceiling),
    };
    Plan {
        bandwidth: rate(BITS),
        classes: Some(Arc::new(Classes::new(vec![
            class(&[Dscp::AF11], BITS * 3 / 10, af_ceiling),
            class(&[], BITS * 7 / 10, be_ceiling),
        ]))),
        ..Plan::default()
    }
}

/// Offered load of one class: code point, bytes of a packet, bits per second.
type Offer = (Dscp, u32, u64);

/// Offers traffic for ten seconds. Returns the throughput of each class in bits per second.
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
                ecn: Ecn::NotEct,
                flips: 0,
            },
        );
    }
    let mut got = vec![0.0; offers.len()];
    for departure in drain(&mut link) {
        let left = departure.left.as_nanos();
        if marks(departure.fate).is_some() && (1_000_000_000..9_000_000_000).contains(&left) {
            got[departure.packet.id] += f64::from(departure.packet.bytes);
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
                &[(Dscp::AF11, af, af_load), (Dscp::DEFAULT, be, be_load)],
            );
            assert_close(got[0], BITS as f64 * 0.3);
            assert_close(got[1], BITS as f64 * 0.7);
        }
    }
}

#[test]
fn each_borrows_all_when_the_other_is_idle() {
    assert_close(
        share(&router(BITS, BITS), &[(Dscp::AF11, 1500, BITS * 2)])[0],
        BITS as f64,
    );
    assert_close(
        share(&router(BITS, BITS), &[(Dscp::AF32, 1500, BITS * 2)])[0],
        BITS as f64,
    );
}

#[test]
fn borrowing_ends_at_the_ceiling() {
    let assured = share(
        &router(BITS / 2, BITS * 7 / 10),
        &[(Dscp::AF11, 1500, BITS * 2)],
    );
    assert_close(assured[0], BITS as f64 / 2.0);
    // A class that must not borrow leaves the rest unused.
    let best_effort = share(
        &router(BITS / 2, BITS * 7 / 10),
        &[(Dscp::DEFAULT, 1500, BITS * 2)],
    );
    assert_close(best_effort[0], BITS as f64 * 0.7);
    // The ceiling of one class; the guarantee of the other, and more.
    let both = share(
        &router(BITS * 4 / 10, BITS),
        &[(Dscp::AF11, 1500, BITS), (Dscp::DEFAULT, 1500, BITS / 2)],
    );
    assert_close(both[0], BITS as f64 * 0.4);
    assert_close(both[1], BITS as f64 * 0.5);
}

/// Unused parts of a guarantee go to the other class.
#[test]
fn nothing_is_wasted() {
    let got = share(
        &router(BITS, BITS),
        &[
            (Dscp::AF11, 1500, BITS / 10),
            (Dscp::DEFAULT, 1500, BITS * 2),
        ],
    );
    assert_close(got[0], BITS as f64 * 0.1);
    assert_close(got[1], BITS as f64 * 0.9);
}

#[test]
fn unguaranteed_bandwidth_is_lent_in_proportion() {
    let class = |dscp: Dscp, guaranteed: u64| Class {
        dscp: vec![dscp],
        rest: dscp == Dscp::CS1,
        guaranteed: bits(guaranteed),
        ceiling: bits(BITS),
    };
    let list = vec![
        class(Dscp::CS1, BITS / 10),
        class(Dscp::CS2, BITS / 5),
        class(Dscp::CS3, BITS / 5),
    ];
    let plan = Plan {
        classes: Some(Arc::new(Classes::new(list))),
        ..router(BITS, BITS)
    };
    // Half is lent: to the first two classes as one to two, while the third takes less than its guarantee.
    let got = share(
        &plan,
        &[
            (Dscp::CS1, 900, BITS),
            (Dscp::CS2, 1500, BITS),
            (Dscp::CS3, 1500, BITS / 10),
        ],
    );
    assert_close(got[0], BITS as f64 * 0.3);
    assert_close(got[1], BITS as f64 * 0.6);
    assert_close(got[2], BITS as f64 * 0.1);
}

/// A class that floods its own queue takes no space from another's.
#[test]
fn queues_are_apart() {
    let mut link = Link::new(&Arc::new(router(BITS, BITS)), Seed(1));
    for id in 0..100 {
        let dscp = if id < 95 { Dscp::DEFAULT } else { Dscp::AF11 };
        link.push(
            at(0),
            Parcel {
                bytes: 1500,
                dscp,
                id,
                ecn: Ecn::NotEct,
                flips: 0,
            },
        );
    }
    let out = drain(&mut link);
    let full = crate::support::dropped(&out, DropReason::QueueFull);
    assert_eq!(full.len(), 45);
    assert!(full.iter().all(|position| *position <= 95));
    let dropped = link.class_counters().into_iter().map(|class| class.dropped);
    let dropped: Vec<u64> = dropped.map(|tally| tally.packets).collect();
    assert_eq!(dropped, [0, 45]);
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
    assert!(with(&|classes| classes.list[1].dscp = vec![Dscp::AF11]).contains("list each once"));
    assert!(with(&|classes| classes.list[1].rest = false).contains("name rest in one"));
    assert!(with(&|classes| classes.list[0].rest = true).contains("and in no other"));
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

#[test]
fn classes_are_read_as_they_are_written() {
    for text in [
        "af11,af12:300kbit..1Mbit",
        "rest:700kbit",
        "le,rest:1Mbit..2Mbit",
    ] {
        assert_eq!(text.parse::<Class>().unwrap().to_string(), text);
    }
    let numbers: Class = "0x0a,46: 800kB/s .. 1MB/s".parse().unwrap();
    assert_eq!(numbers.to_string(), "af11,ef:6.4Mbit..8Mbit");
    for wrong in [
        "",
        "af11",
        ":1Mbit",
        "af11:",
        "af11:1Mbit..",
        "af44:1Mbit",
        "af11:1",
        "af11:1Mbit..2Mbit..3Mbit",
    ] {
        let error = wrong.parse::<Class>().unwrap_err().to_string();
        assert!(error.contains("af11,af12:300kbit..1Mbit"), "{error}");
    }
}

/// Classes 0, 1, ...: guarantees in percent of the bandwidth, and ceilings in percent of the difference between
/// guarantee and bandwidth.
fn mixed(percents: &[(u64, u64)]) -> Plan {
    let class = |(code, (guaranteed, more)): (u8, &(u64, u64))| Class {
        dscp: vec![crate::support::dscp(code)],
        rest: code == 0,
        guaranteed: bits(BITS * guaranteed / 100),
        ceiling: bits(BITS * (100 * guaranteed + (100 - guaranteed) * more) / 10_000),
    };
    Plan {
        bandwidth: rate(BITS),
        classes: Some(Arc::new(Classes::new(
            (0..).zip(percents).map(class).collect(),
        ))),
        queue: Queue {
            packets: 100_000,
            ..Queue::default()
        },
        ..Plan::default()
    }
}

/// Packets by departure, with class, arrival, departure and bytes.
fn through(plan: &Plan, arrivals: &[(u64, u8, u32)]) -> Vec<(u8, Instant, Instant, u32)> {
    assert_eq!(plan.check(), Ok(()));
    let mut link = Link::new(&Arc::new(plan.clone()), Seed(1));
    for (ns, code, bytes) in arrivals {
        let parcel = Parcel {
            bytes: *bytes,
            dscp: crate::support::dscp(*code),
            id: 0,
            ecn: Ecn::NotEct,
            flips: 0,
        };
        link.push(at(*ns), parcel);
    }
    let out = drain(&mut link).into_iter();
    out.map(|one| {
        (
            one.packet.dscp.get(),
            one.arrived,
            one.left,
            one.packet.bytes,
        )
    })
    .collect()
}

prop_compose! {
    /// Two to four classes with at most 90 % guaranteed, and traffic of any kind, in bursts.
    fn mixes()(
        percents in proptest::collection::vec((5u64..=22, 0u64..=100), 2..=4),
        bursts in proptest::collection::vec((0u64..400_000_000, 0u8..4, 1usize..60, 0u64..2_000_000, 60u32..1500), 1..60),
    ) -> (Plan, Vec<(u64, u8, u32)>) {
        let classes = percents.len() as u8;
        let mut arrivals: Vec<_> = bursts.into_iter().flat_map(|(start, code, count, gap, bytes)| {
            (0..count as u64).map(move |n| (start + n * gap, code % classes, bytes))
        }).collect();
        arrivals.sort_unstable();
        (mixed(&percents), arrivals)
    }
}

/// Bits that pass at `rate` in that many nanoseconds.
fn work(rate: BitRate, ns: u64) -> f64 {
    rate.as_bits() as f64 * ns as f64 / 1e9
}

proptest! {
    /// In no period does a class send more than its ceiling and its burst.
    #[test]
    fn ceilings_hold_for_any_mix((plan, arrivals) in mixes()) {
        let classes = plan.classes.clone().unwrap();
        let out = through(&plan, &arrivals);
        for (code, class) in (0..).zip(&classes.list) {
            // Largest excess of any period that ends here. A packet counts when it is through.
            let (mut excess, mut last) = (0f64, 0);
            for (_, _, left, bytes) in out.iter().filter(|one| one.0 == code) {
                excess = (excess - work(class.ceiling, left.as_nanos() - last)).max(0.0);
                excess += f64::from(*bytes) * 8.0;
                last = left.as_nanos();
                let most = 8.0 * (classes.burst.as_bytes() + 2 * 1500) as f64;
                prop_assert!(excess <= most, "{excess} bits too many of {most}");
            }
        }
    }

    /// If all may borrow everything, the link is as busy as without classes.
    #[test]
    fn no_bandwidth_is_left_while_anybody_waits((plan, mut arrivals) in mixes()) {
        let mut classes = (*plan.classes.clone().unwrap()).clone();
        classes.list.iter_mut().for_each(|class| class.ceiling = bits(BITS));
        // Apart from the burst, a ceiling is a rate of its own.
        classes.burst = posthaste_units::Size::from_bytes(1 << 30);
        arrivals.iter_mut().for_each(|arrival| arrival.2 = 1000);
        let one = Plan { classes: None, ..plan.clone() };
        let all = Plan { classes: Some(Arc::new(classes)), ..plan };
        let left = |plan| through(plan, &arrivals).iter().map(|one| one.2).collect::<Vec<_>>();
        prop_assert_eq!(left(&all), left(&one));
    }

    /// A class within its guarantee waits only briefly, for any load of the others.
    #[test]
    fn within_its_guarantee_nobody_is_starved((plan, mut arrivals) in mixes(), bytes in 60u32..1500) {
        let classes = plan.classes.clone().unwrap();
        let gap = 8_000_000_000 * u64::from(bytes) / classes.list[1].guaranteed.as_bits() + 1;
        arrivals.retain(|arrival| arrival.1 != 1);
        arrivals.extend((0..500_000_000 / gap).map(|n| (n * gap, 1, bytes)));
        arrivals.sort_unstable();
        // Its own packet at its own rate, preceded by the credit of the others.
        let others = (classes.list.len() - 1) as u64 * (classes.burst.as_bytes() + 1500);
        let most = gap + others * 8_000_000_000 / BITS + 1500 * 8_000_000_000 / BITS;
        for (_, arrived, left, _) in through(&plan, &arrivals).iter().filter(|one| one.0 == 1) {
            let waited = left.since(*arrived).as_nanos();
            prop_assert!(waited <= most, "{waited} ns of {most}");
        }
    }
}
