//! Effects of cross traffic on a queue.

use std::sync::Arc;

use posthaste_link::{BackgroundTraffic, Class, Classes, DropReason, Ecn, Fate, Link, Plan, Queue};
use posthaste_units::{BitRate, Dscp, Instant, Seed, Span};
use proptest::prelude::*;

use crate::support::{Parcel, at, drain, rate};

const BITS: u64 = 8_000_000;

fn background(text: &str) -> Plan {
    Plan {
        bandwidth: rate(BITS),
        background: Some(text.parse().unwrap()),
        ..Plan::default()
    }
}

fn parcel(bytes: u32, dscp: Dscp, id: usize) -> Parcel {
    Parcel {
        bytes,
        dscp,
        id,
        ecn: Ecn::NotEct,
        flips: 0,
    }
}

/// Pushes a packet of 1,000 bytes at each of these times. Returns the time in the link of each; `None` for a dropped
/// one.
fn meet(plan: &Plan, times: impl IntoIterator<Item = u64>) -> (Link<Parcel>, Vec<Option<Span>>) {
    assert_eq!(plan.check(), Ok(()));
    let mut link = Link::new(&Arc::new(plan.clone()), Seed(7));
    let mut out = Vec::new();
    for (id, ns) in times.into_iter().enumerate() {
        while let Some(departure) = link.pop(at(ns)) {
            out.push(departure);
        }
        link.push(at(ns), parcel(1000, Dscp::DEFAULT, id));
    }
    out.extend(drain(&mut link));
    out.sort_by_key(|departure| departure.packet.id);
    let waited = out.iter().map(|one| {
        let passed = matches!(one.fate, Fate::Delivered(_));
        passed.then(|| one.left.since(one.arrived))
    });
    let waited = waited.collect();
    (link, waited)
}

#[test]
fn it_takes_its_rate_and_leaves_the_rest() {
    // Cross traffic in packets of one millisecond takes three fifths; two fifths are left.
    let plan = Plan {
        queue: Queue {
            packets: 10_000,
            ..Queue::default()
        },
        ..background("600kB/s:1000")
    };
    let (link, waited) = meet(&plan, (0..4000).map(|n| n * 2_500_000));
    let longest = waited.iter().flatten().max().unwrap();
    assert!(*longest < Span::from_millis(20), "{longest}");
    let sent = link.background_counters().unwrap().sent;
    assert!((5990..=6001).contains(&sent.packets), "{sent:?}");
    assert_eq!(sent.bytes, sent.packets * 1000);
    // One percent more than the capacity left: the last packet waits for all the excess.
    let (_, waited) = meet(&plan, (0..4000).map(|n| n * 2_439_000));
    let last = waited[3999].unwrap().as_millis_f64();
    assert!((85.0..115.0).contains(&last), "{last}");
}

#[test]
fn drops_of_a_full_queue_are_counted_for_all_traffic() {
    let (link, waited) = meet(
        &background("1200kB/s:1000"),
        (0..1000).map(|n| n * 10_000_000 + n * 7919 % 1000 * 1000),
    );
    let lost = waited.iter().filter(|waited| waited.is_none()).count() as u64;
    let others = link.background_counters().unwrap();
    assert_eq!(link.counters().dropped(DropReason::QueueFull).packets, lost);
    // A load of 1.3 times the capacity.
    let (dropped, sent) = (
        lost + others.dropped.packets,
        1000 - lost + others.sent.packets,
    );
    let share = dropped as f64 / (dropped + sent) as f64;
    assert!((share - 3.0 / 13.0).abs() < 0.005, "{share}");
    // A slot is free until the next packet of cross traffic: about half of the time.
    assert!((400..700).contains(&lost), "{lost} of 1000");
}

#[test]
fn it_fills_its_own_class_only() {
    let class = |text: &str| text.parse::<Class>().unwrap();
    let classes = vec![class("af11:2Mbit..8Mbit"), class("rest:6Mbit..8Mbit")];
    let plan = Plan {
        classes: Some(Arc::new(Classes::new(classes))),
        ..background("2MB/s:1000")
    };
    assert_eq!(plan.check(), Ok(()));
    let mut link = Link::new(&Arc::new(plan), Seed(7));
    // 1.6 of the 2 Mbit/s that are guaranteed.
    for id in 0..1000 {
        link.push(at(id * 5_000_000), parcel(1000, Dscp::AF11, id as usize));
    }
    let out = drain(&mut link);
    let longest = out
        .iter()
        .map(|one| one.left.since(one.arrived))
        .max()
        .unwrap();
    assert!(longest <= Span::from_millis(4), "{longest}");
    let [own, rest] = link.class_counters()[..] else {
        panic!("two classes")
    };
    assert_eq!((own.guaranteed.packets, own.dropped.packets), (1000, 0));
    let others = link.background_counters().unwrap();
    assert_eq!(rest.dropped, others.dropped);
    assert_eq!(
        rest.guaranteed.packets + rest.borrowed.packets,
        others.sent.packets
    );
    let share = others.sent.bytes as f64 * 8.0 / 5.0;
    assert!((share / 6.4e6 - 1.0).abs() < 0.01, "{share}");
}

/// After any idle time, a link is at once in the state that cross traffic would have caused.
#[test]
fn cross_traffic_during_idle_time_is_not_simulated() {
    let year = 365 * 86_400 * 1_000_000_000;
    let (link, waited) = meet(&background("100MB/s:1000"), [0, year]);
    let others = link.background_counters().unwrap();
    assert!(others.dropped.packets + others.sent.packets < 102_000);
    assert!(
        waited[1].is_none_or(|waited| waited >= Span::from_millis(48)),
        "{waited:?}"
    );
}

#[test]
fn nothing_is_due_when_nobody_waits() {
    for plan in [
        background("2MB/s"),
        Plan {
            queue: "50:codel".parse().unwrap(),
            ..background("2MB/s")
        },
    ] {
        let mut link = Link::new(&Arc::new(plan), Seed(7));
        assert_eq!(link.wake(), None);
        link.push(at(1_000_000_000), parcel(1000, Dscp::DEFAULT, 0));
        drain(&mut link);
        assert_eq!(link.wake(), None);
        assert_eq!(link.pop(Instant::FAR_FUTURE), None);
        // A past departure does not shift an arrival.
        assert_eq!(
            link.push(at(2_000_000_000), parcel(1000, Dscp::DEFAULT, 1)),
            at(2_000_000_000)
        );
    }
}

#[test]
fn it_is_read_as_it_is_written() {
    for text in ["6.4Mbit", "le:6.4Mbit", "af11:1Mbit:576", "1Mbit:576"] {
        assert_eq!(text.parse::<BackgroundTraffic>().unwrap().to_string(), text);
    }
    let read: BackgroundTraffic = "800kB/s".parse().unwrap();
    assert_eq!(
        (read.dscp, read.rate.as_bits(), read.bytes),
        (Dscp::DEFAULT, 6_400_000, 1500)
    );
    for wrong in [
        "",
        "800",
        "le",
        "le:",
        "af44:1Mbit",
        "1Mbit:",
        "1Mbit:many",
        "le:1Mbit:1:1",
    ] {
        let error = wrong.parse::<BackgroundTraffic>().unwrap_err().to_string();
        assert!(error.contains("le:6Mbit"), "{error}");
    }
    let refused = |plan: Plan| plan.check().unwrap_err().to_string();
    assert!(
        refused(Plan {
            bandwidth: None,
            ..background("1Mbit")
        })
        .contains("give the link one")
    );
    assert!(refused(background("1Mbit:19")).contains("20 to 65,535"));
    let netem = posthaste_link::Order::Netem;
    assert!(
        refused(Plan {
            order: netem,
            ..background("1Mbit")
        })
        .contains("leave the background out")
    );
}

/// The written form reads back as the same value.
fn again<T>(text: &str) -> Result<(), TestCaseError>
where
    T: std::str::FromStr + std::fmt::Display + std::fmt::Debug + PartialEq,
{
    if let Ok(value) = text.parse::<T>() {
        prop_assert_eq!(value.to_string().parse::<T>().ok(), Some(value));
    }
    Ok(())
}

proptest! {
    #[test]
    fn whatever_is_typed_is_read_or_refused(
        text in ".{0,40}",
        name in "(le|ef|af1[1-4]|rest|0x[0-9a-f]{1,2}|[0-9]{1,3})(,rest|,cs[0-9])?",
        rates in "[0-9]{1,4}(\\.[0-9]{1,3})?(bit|kbit|kB/s|B/s)(\\.\\.[0-9]{1,5}Mbit)?(:[0-9]{1,5})?",
    ) {
        for text in [&text, &rates, &format!("{name}:{rates}")] {
            again::<Class>(text)?;
            again::<BackgroundTraffic>(text)?;
        }
    }

    /// With any cross traffic, the link carries no more than its bandwidth, and packets are lost only to a full queue:
    /// packets in and packets out add up.
    #[test]
    fn the_line_is_shared_and_not_stretched(
        times in proptest::collection::vec(0u64..2_000_000_000, 1..200),
        rate in 100_000u64..20_000_000,
        codel in any::<bool>(),
    ) {
        let mut times = times;
        times.sort_unstable();
        let plan = Plan {
            background: Some(BackgroundTraffic { dscp: Dscp::LE, rate: BitRate::per_second(rate).unwrap(), bytes: 700 }),
            queue: if codel { "50:codel".parse().unwrap() } else { Queue::default() },
            ..background("1Mbit")
        };
        let (link, waited) = meet(&plan, times.iter().copied());
        let own = waited.iter().flatten().count() as u64;
        let others = link.background_counters().unwrap();
        let left = times.iter().zip(&waited).map(|(at, waited)| *at + waited.map_or(0, Span::as_nanos));
        let end = left.max().unwrap_or(0);
        // The last packet of cross traffic may have begun before that time and still be in transmission.
        let carried = (own * 1000 + others.sent.bytes) as f64 * 8.0;
        prop_assert!(carried <= BITS as f64 * (end as f64 / 1e9 + 0.06) , "{carried} bits by {end} ns");
        prop_assert_eq!(own + link.counters().dropped_in_all().packets, times.len() as u64);
    }
}
