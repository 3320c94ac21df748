//! CoDel, compared with the control law of RFC 8289.

use posthaste_link::{Departure, DropReason, Fate, Plan};
use posthaste_units::Span;

use crate::support::{Arrival, Parcel, at, dropped, pass, rate};

/// A link on which 1,250 bytes take 1 ms.
fn line() -> Plan {
    Plan {
        bandwidth: rate(10_000_000),
        queue: "100000:codel:5ms:100ms".parse().unwrap(),
        ..Plan::default()
    }
}

fn drops(out: &[Departure<Parcel>]) -> Vec<f64> {
    let by_codel = out
        .iter()
        .filter(|departure| departure.fate == Fate::Dropped(DropReason::CoDel));
    by_codel
        .map(|departure| departure.left.as_nanos() as f64 / 1e6)
        .collect()
}

/// A sender that does not slow down, 10 % above the bandwidth.
fn flood(packets: u64) -> Vec<Arrival> {
    (0..packets)
        .map(|packet| (packet * 909_091, 1250))
        .collect()
}

#[test]
fn drops_come_by_the_inverse_square_root() {
    let drops = drops(&pass(&line(), 1, &flood(1500)));
    assert!(drops.len() > 20, "{drops:?}");
    // The delay first exceeds 5 ms when 5 packets wait, shortly after 50 ms; the first drop follows an interval later.
    assert!((150.0..170.0).contains(&drops[0]), "{drops:?}");
    let mut next = drops[0];
    for (count, drop) in drops.iter().enumerate() {
        // A packet is dropped before its transmission, at most one transmission later than the law.
        assert!(
            (0.0..1.0 + 1e-3).contains(&(drop - next)),
            "drop {count}: {drop} {next}"
        );
        next += 100.0 / (count as f64 + 1.0).sqrt();
    }
}

#[test]
fn a_burst_shorter_than_an_interval_is_let_through() {
    let burst: Vec<Arrival> = (0..90).map(|_| (0, 1250)).collect();
    assert_eq!(
        dropped(&pass(&line(), 1, &burst), DropReason::CoDel),
        [0_u64; 0]
    );
}

#[test]
fn a_packet_behind_which_little_waits_is_never_dropped() {
    // One at a time, each waiting 8 ms for the previous one: above target, but never more than an MTU.
    let plan = Plan {
        bandwidth: rate(1_000_000),
        ..line()
    };
    let pairs: Vec<Arrival> = (0..1000)
        .map(|n| (n * 10_000_000 + if n > 0 { 0 } else { 1 }, 1250))
        .collect();
    let mut late = pairs.clone();
    late.insert(1, (1, 1000));
    let out = pass(&plan, 1, &late);
    assert!(
        out.iter()
            .skip(2)
            .all(|departure| departure.left.since(departure.arrived) > Span::from_millis(15))
    );
    assert_eq!(dropped(&out, DropReason::CoDel), [0_u64; 0]);
}

/// Dropping that resumes soon continues at its old rate (`delta` of section 5.3).
#[test]
fn a_relapse_is_met_at_the_old_rate() {
    let mut arrivals = flood(1500);
    let (last, _) = arrivals[arrivals.len() - 1];
    // The queue empties, and then the flood returns within 16 intervals.
    let again = last + 250_000_000;
    arrivals.extend(flood(1500).iter().map(|(ns, bytes)| (again + ns, *bytes)));
    let drops = drops(&pass(&line(), 1, &arrivals));
    let relapse = drops
        .iter()
        .position(|drop| *drop > again as f64 / 1e6)
        .unwrap();
    assert!(relapse > 20);
    let gap = drops[relapse + 1] - drops[relapse];
    assert!(gap < 100.0 / 4.0_f64.sqrt(), "{gap}");
    // Long after, it starts again from the beginning.
    let later = again + 10_000_000_000;
    arrivals.extend(flood(1500).iter().map(|(ns, bytes)| (later + ns, *bytes)));
    let drops = self::drops(&pass(&line(), 1, &arrivals));
    let fresh = drops
        .iter()
        .position(|drop| *drop > later as f64 / 1e6)
        .unwrap();
    let gap = drops[fresh + 1] - drops[fresh];
    assert!((gap - 100.0).abs() <= 1.0, "{gap}");
}

/// The purpose of CoDel: a sender keeps a window far beyond the capacity of the path, and halves it at each drop. The
/// delay stays near the target.
#[test]
fn the_standing_delay_comes_down() {
    use posthaste_link::Link;
    use posthaste_units::Seed;
    let plan = std::sync::Arc::new(Plan {
        delay: Span::from_millis(20),
        ..line()
    });
    let mut link: Link<Parcel> = Link::new(&plan, Seed(1));
    let (mut window, mut flying, mut id, mut waits) = (200.0_f64, 0.0, 0, Vec::new());
    let mut now = at(0);
    while now < at(20_000_000_000) {
        while flying + 1.0 <= window {
            link.push(now, crate::support::parcel(id, 1250));
            (id, flying) = (id + 1, flying + 1.0);
        }
        now = link.wake().unwrap();
        while let Some(departure) = link.pop(now) {
            flying -= 1.0;
            match departure.fate {
                Fate::Dropped(_) => window = (window / 2.0).max(2.0),
                Fate::Delivered(_) => window += 1.0 / window,
            }
            if now > at(5_000_000_000) {
                waits.push(departure.left.since(departure.arrived).as_millis_f64() - 21.0);
            }
        }
    }
    waits.sort_by(f64::total_cmp);
    let median = waits[waits.len() / 2];
    assert!(median < 10.0, "{median} ms in the queue");
    assert!(
        waits.len() > 14_000 * 9 / 10,
        "and the line is used: {}",
        waits.len()
    );
}
