//! Instants of the monotonic clock.

use std::time::{Duration, Instant};

use posthaste_fleet::clock::{instant_of, monotonic_ns};

/// A difference beyond any distance of two readings of one clock, the closest of many.
const TOLERANCE: Duration = Duration::from_millis(1);

#[test]
fn an_instant_has_the_time_of_its_number() {
    let before = Instant::now();
    let ns = monotonic_ns();
    let after = Instant::now();
    let instant = instant_of(ns).unwrap();
    assert!(instant + TOLERANCE >= before && instant <= after + TOLERANCE);
}

#[test]
fn an_origin_that_has_passed_stays_in_the_past() {
    // An agent that is paused before its start sends late, and does not shift its schedule.
    let hour = Duration::from_secs(3_600);
    let ns = monotonic_ns();
    let now = instant_of(ns).unwrap();
    for (other, expected) in [
        (ns + 3_600_000_000_000, now.checked_add(hour)),
        (
            ns.saturating_sub(5_000_000),
            now.checked_sub(Duration::from_millis(5)),
        ),
    ] {
        let (found, expected) = (instant_of(other).unwrap(), expected.unwrap());
        let apart = found.max(expected) - found.min(expected);
        assert!(apart <= TOLERANCE, "{apart:?}");
    }
}
