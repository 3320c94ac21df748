//! Offsets of clocks over a simulated line.

use posthaste_fleet::conductor::offset::{ClockAccuracy, ClockExchange, EXCHANGES, estimate};
use posthaste_units::Span;
use proptest::prelude::*;

/// An exchange over a line with these delays, and a clock with this offset.
fn exchange(sent_ns: u64, there_ns: u64, back_ns: u64, offset_ns: i64) -> ClockExchange {
    ClockExchange {
        sent_ns,
        agent_ns: (sent_ns + there_ns).checked_add_signed(offset_ns).unwrap(),
        received_ns: sent_ns + there_ns + back_ns,
    }
}

#[test]
fn a_symmetric_line_has_no_error() {
    let estimate = estimate(&[exchange(1_000, 50, 50, 7_000)]).unwrap();
    assert_eq!(estimate.offset_ns, 7_000);
    assert_eq!(
        (estimate.bound, estimate.round_trip),
        (Span::from_nanos(50), Span::from_nanos(100))
    );
    assert_eq!(estimate.to_agent(10), Some(7_010));
}

#[test]
fn the_fastest_exchange_counts() {
    let slow = exchange(0, 900_000, 100, 5);
    let fast = exchange(2_000_000, 20, 30, 5);
    let estimate = estimate(&[slow, fast, slow]).unwrap();
    assert_eq!(estimate.round_trip, Span::from_nanos(50));
    assert_eq!(estimate.offset_ns, 0);
}

#[test]
fn implausible_exchanges_are_left_out() {
    let backward = ClockExchange {
        sent_ns: 10,
        agent_ns: 0,
        received_ns: 9,
    };
    let far = ClockExchange {
        sent_ns: 0,
        agent_ns: u64::MAX,
        received_ns: 1,
    };
    assert_eq!(estimate(&[]), None);
    assert_eq!(estimate(&[backward, far]), None);
    assert!(estimate(&[backward, exchange(0, 1, 1, 0), far]).is_some());
}

#[test]
fn a_step_of_a_clock_is_found_beyond_the_bounds() {
    let at = |offset, delay| estimate(&[exchange(1 << 40, delay, delay, offset)]).unwrap();
    let first = at(0, 50_000);
    let ms = 1_000_000;
    assert!(!at(5 * ms, 50_000).drift_since(&first).is_step());
    assert!(at(7 * ms, 50_000).drift_since(&first).is_step());
    assert!(at(-7 * ms, 50_000).drift_since(&first).is_step());
    // A slow line could show the same.
    assert!(!at(7 * ms, 3_000_000).drift_since(&first).is_step());
}

#[test]
fn slow_lines_are_coarse_and_very_slow_lines_are_refused() {
    let over = |delay_ms: u64| {
        let delay = delay_ms * 1_000_000;
        estimate(&[exchange(0, delay, delay, 0)])
            .unwrap()
            .accuracy()
    };
    assert_eq!(over(5), ClockAccuracy::Fine);
    assert_eq!(over(6), ClockAccuracy::Coarse);
    assert_eq!(over(50), ClockAccuracy::Coarse);
    assert_eq!(over(51), ClockAccuracy::TooCoarse);
}

proptest! {
    #[test]
    fn the_error_is_within_the_bound_for_any_delays(
        offset in -1i64 << 50..1i64 << 50,
        start in 1u64 << 51..1u64 << 52,
        delays in prop::collection::vec((0u64..1 << 36, 0u64..1 << 36), 1..EXCHANGES),
    ) {
        let mut sent = start;
        let exchanges: Vec<_> = delays
            .iter()
            .map(|(there, back)| {
                let exchange = exchange(sent, *there, *back, offset);
                sent = exchange.received_ns + 1;
                exchange
            })
            .collect();
        let estimate = estimate(&exchanges).unwrap();
        let error = Span::from_nanos(offset.abs_diff(estimate.offset_ns));
        prop_assert!(error <= estimate.bound, "{error:?} {estimate:?}");
        let least = delays.iter().map(|(there, back)| there + back).min().unwrap();
        prop_assert_eq!(estimate.round_trip, Span::from_nanos(least));
        prop_assert_eq!(estimate.bound, Span::from_nanos(least.div_ceil(2)));
    }

    #[test]
    fn any_numbers_are_read_without_overflow(numbers in prop::array::uniform3(any::<u64>())) {
        let [sent_ns, agent_ns, received_ns] = numbers;
        if let Some(estimate) = estimate(&[ClockExchange { sent_ns, agent_ns, received_ns }]) {
            prop_assert!(received_ns >= sent_ns);
            let _ = (estimate.to_agent(sent_ns), estimate.drift_since(&estimate).is_step());
        }
    }
}
