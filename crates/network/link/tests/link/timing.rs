//! Times to the nanosecond, compared with a separate recursion, whole seconds and the paper's numbers.

use std::sync::Arc;

use posthaste_link::{DeliveryMarks, DropReason, Fate, Link, Order, Plan};
use posthaste_units::{Instant, Seed, Span};
use proptest::prelude::*;

use crate::support::{
    Arrival, Parcel, arrivals, at, drain, dropped, parcel, pass, patterned, rate,
};

fn line(bits: u64, delay_ms: u64) -> Plan {
    Plan {
        bandwidth: rate(bits),
        delay: Span::from_millis(delay_ms),
        queue: "100000".parse().unwrap(),
        ..Plan::default()
    }
}

/// Lindley's recursion in exact fractions of a nanosecond: the end of each transmission.
fn ends(arrivals: &[Arrival], bits: u64, overhead: u32) -> Vec<u64> {
    let bits = u128::from(bits);
    // In units of 1/bits ns.
    let mut free = 0u128;
    let end = |(ns, bytes): &Arrival| {
        let arrived = u128::from(*ns) * bits;
        // A link that becomes free within the nanosecond before the arrival counts as busy.
        let idle = free.div_ceil(bits) < u128::from(*ns);
        let start = if idle { arrived } else { free };
        free = start + u128::from(bytes + overhead) * 8_000_000_000;
        free.div_ceil(bits) as u64
    };
    arrivals.iter().map(end).collect()
}

proptest! {
    #[test]
    fn dummynet_is_a_recursion(arrivals in arrivals(), bits in 1_000u64..1_000_000_000, overhead in 0u32..40) {
        let plan = Plan { overhead, ..line(bits, 10) };
        let delay = Span::from_millis(10).as_nanos();
        let left: Vec<u64> = pass(&plan, 1, &arrivals).iter().map(|departure| departure.left.as_nanos()).collect();
        let expected: Vec<u64> = ends(&arrivals, bits, overhead).iter().map(|end| end + delay).collect();
        prop_assert_eq!(left, expected);
    }

    /// Both orders take the same time if only the bandwidth matters: netem delays first and transmits later.
    #[test]
    fn netem_delays_first(arrivals in arrivals(), bits in 1_000u64..1_000_000_000) {
        let delay = Span::from_millis(10).as_nanos();
        let plan = Plan { order: Order::Netem, ..line(bits, 10) };
        let delayed: Vec<Arrival> = arrivals.iter().map(|(ns, bytes)| (ns + delay, *bytes)).collect();
        let left: Vec<u64> = pass(&plan, 1, &arrivals).iter().map(|departure| departure.left.as_nanos()).collect();
        prop_assert_eq!(left, ends(&delayed, bits, 0));
    }
}

#[test]
fn a_second_of_any_bandwidth_is_exact() {
    for bits in [13_400, 300_000, 1_000_003, 100_000_000, 999_999_937] {
        for order in [Order::Dummynet, Order::Netem] {
            let packets = bits / 12_000 + 2;
            let arrivals: Vec<Arrival> = (0..packets).map(|_| (0, 1500)).collect();
            let plan = Plan {
                order,
                ..line(bits, 0)
            };
            let out = pass(&plan, 1, &arrivals);
            let second = out
                .iter()
                .filter(|departure| departure.left <= at(1_000_000_000))
                .count() as u64;
            assert_eq!(second, bits / 12_000, "{bits}");
            // The total time is that of all bits, rounded up once.
            let all = u128::from(packets) * 12_000 * 1_000_000_000;
            let last = out.last().unwrap().left.as_nanos();
            assert_eq!(u128::from(last), all.div_ceil(u128::from(bits)));
        }
    }
}

#[test]
fn no_burst_makes_up_for_idling() {
    let out = pass(
        &line(1_000_000, 0),
        1,
        &[(0, 125), (5_000_000_000, 125), (5_000_000_000, 125)],
    );
    let left: Vec<u64> = out
        .iter()
        .map(|departure| departure.left.as_nanos())
        .collect();
    assert_eq!(left, [1_000_000, 5_001_000_000, 5_002_000_000]);
}

/// 40 ms of a full segment at 300 kbit/s, the paper's 10 ms, and 14 bytes for Ethernet.
#[test]
fn the_paper_s_line() {
    let plan = Plan {
        overhead: 14,
        ..line(300_000, 10)
    };
    let left = pass(&plan, 1, &[(0, 1500)])[0].left;
    assert_eq!(left, at(40_373_334) + Span::from_millis(10));
}

#[test]
fn a_dropped_packet_takes_no_time_on_the_line() {
    let plan = Plan {
        script: patterned("up drop 1-9").script,
        ..line(300_000, 10)
    };
    let arrivals = [(0, 1500); 10];
    let out = pass(&plan, 1, &arrivals);
    assert_eq!(
        out.last().unwrap().left,
        at(40_000_000) + Span::from_millis(10)
    );
    assert!(
        out[..9]
            .iter()
            .all(|departure| departure.left == Instant::ORIGIN)
    );
}

/// A pattern of hundreds of entries over a million packets, together with random loss.
#[test]
fn positions_are_exact_over_a_million_packets() {
    const PACKETS: usize = 1_000_000;
    let wanted: Vec<u64> = (1..1000u64).map(|n| n * 997 % PACKETS as u64 + 1).collect();
    let list: Vec<String> = wanted.iter().map(u64::to_string).collect();
    let plan = Plan {
        loss: Some("1%".parse().unwrap()),
        delay: Span::from_millis(1),
        ..patterned(&format!("up drop {}", list.join(", ")))
    };
    let mut link: Link<Parcel> = Link::new(&Arc::new(plan), Seed(1));
    let mut out = Vec::with_capacity(PACKETS);
    for id in 0..PACKETS {
        let now = at(id as u64 * 1_000);
        link.push(now, parcel(id, 100));
        out.extend(std::iter::from_fn(|| link.pop(now)));
    }
    out.extend(drain(&mut link));
    assert_eq!(out.len(), PACKETS);
    assert!(
        out.iter()
            .all(|departure| departure.position == departure.packet.id as u64 + 1)
    );
    let mut wanted = wanted;
    wanted.sort_unstable();
    assert_eq!(dropped(&out, DropReason::Pattern), wanted);
}

#[test]
fn the_pattern_s_bandwidth_and_delay_hold_when_a_packet_is_sent() {
    let script =
        patterned("up bandwidth from 100ms: 3Mbit\nup delay from 3: 20ms\nup delay 2: 5ms").script;
    let plan = Plan {
        script,
        ..line(300_000, 10)
    };
    let out = pass(&plan, 1, &[(0, 1500); 5]);
    let left: Vec<u64> = out
        .iter()
        .map(|departure| departure.left.as_nanos() / 1_000_000)
        .collect();
    // Transmitted at 40 and 80 ms. The third is half transmitted at 100 and takes 2 ms more.
    assert_eq!(left, [50, 95, 122, 126, 130]);
}

/// A tenth of the rate in every fourth millisecond, repeatedly: the throughput is the integral.
#[test]
fn a_changing_bandwidth_is_the_integral_over_time() {
    let script =
        patterned("up bandwidth from 0ms: 10Mbit\nup bandwidth from 3ms: 1Mbit\nup repeat 4ms")
            .script;
    for order in [Order::Dummynet, Order::Netem] {
        let plan = Plan {
            script: script.clone(),
            order,
            ..line(300_000, 0)
        };
        // 31,000 bits each 4 ms, as 31 packets of 125 bytes, the last of them taking a whole ms.
        let out = pass(&plan, 1, &[(0, 125); 3100]);
        for (at, departure) in out.iter().enumerate() {
            let (rounds, rest) = (at as u64 / 31, at as u64 % 31);
            let within = if rest < 30 {
                (rest + 1) * 100_000
            } else {
                4_000_000
            };
            assert_eq!(departure.left.as_nanos(), rounds * 4_000_000 + within);
        }
        // One large packet of a whole number of periods.
        let out = pass(&plan, 1, &[(2_000_000, 38_750)]);
        assert_eq!(out[0].left.as_nanos(), 2_000_000 + 40_000_000);
    }
}

#[test]
fn bits_flip_where_the_pattern_says() {
    let plan = Arc::new(patterned("up flip 2: 0, 9-10, 64, 5000"));
    let mut link: Link<Vec<u8>> = Link::new(&plan, Seed(1));
    link.push(Instant::ORIGIN, vec![0; 9]);
    link.push(Instant::ORIGIN, vec![0; 9]);
    let out = drain(&mut link);
    assert_eq!(out[0].packet, vec![0; 9]);
    assert_eq!(out[1].packet, [0x80, 0x60, 0, 0, 0, 0, 0, 0, 0x80]);
    let marks = DeliveryMarks {
        flipped: 4,
        ..DeliveryMarks::default()
    };
    assert_eq!(out[1].fate, Fate::Delivered(marks));
    assert_eq!(link.counters().corrupted.packets, 1);
}

#[test]
fn copies_are_sent_as_packets_of_their_own() {
    let script = patterned("up copy 1: 2\nup flip 1: 3").script;
    let out = pass(
        &Plan {
            script,
            ..line(300_000, 0)
        },
        1,
        &[(0, 1500), (0, 1500)],
    );
    let seen: Vec<_> = out
        .iter()
        .map(|departure| {
            (
                departure.position,
                departure.copy,
                departure.packet.flips,
                departure.left.as_nanos() / 1_000_000,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [(1, 0, 1, 40), (1, 1, 0, 80), (1, 2, 0, 120), (2, 0, 0, 160)]
    );
}
