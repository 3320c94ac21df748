//! Verdicts from handmade trials.

use posthaste_stats::RequestPart;
use posthaste_units::Span;

use super::failure::is_failed;
use super::pool::Pool;
use super::verdict::{Ends, Findings};
use super::*;

const OBJECTIVE: Objective = Objective {
    figure: BoundedFigure::Response,
    quantile: Some(0.99),
    bound: Span::from_millis(50),
    tolerance: 0.01,
};

/// Intervals of 100 requests each, of which so many are bad.
fn parts(bad: &[f64]) -> Vec<RequestPart> {
    let part = |bad: &f64| RequestPart {
        count: 100.0,
        bad: *bad,
        mean: 0.01,
    };
    bad.iter().map(part).collect()
}

/// A trial of a second per interval.
fn trial(purpose: Purpose, rate: f64, bad: &[f64]) -> CompletedTrial {
    let parts = parts(bad);
    let time = Span::from_secs(bad.len() as u64);
    let count = 100 * bad.len() as u64;
    CompletedTrial {
        proposal: Proposal {
            purpose,
            rate,
            settle: Span::ZERO,
            length: time,
        },
        evidence: Evidence {
            requests: count,
            times: count,
            beyond: bad.iter().sum::<f64>() as u64,
            throughput: rate,
            elapsed: time,
            parts,
            slow: Pool::of_single(count as f64, 0.0),
            failures: Pool::of_single(count as f64, 0.0),
            ..Evidence::default()
        },
    }
}

fn look(rate: f64, bad: &[f64]) -> CompletedTrial {
    trial(Purpose::Measure, rate, bad)
}

fn ends(trials: &[CompletedTrial]) -> Ends {
    Findings::new(&OBJECTIVE, Span::from_secs(1), trials).ends()
}

const GOOD: [f64; 16] = [0.0; 16];
const SATURATED: [f64; 16] = [90.0; 16];

/// Good intervals but for one with 30 bad requests.
fn one_burst() -> [f64; 16] {
    let mut bad = GOOD;
    bad[5] = 30.0;
    bad
}

#[test]
fn requests_of_one_burst_count_as_one_event() {
    let single = Pool::from_parts(&parts(&[1.0, 0.0, 1.0, 0.0, 1.0, 0.0]));
    let burst = Pool::from_parts(&parts(&[3.0, 0.0, 0.0, 0.0, 0.0, 0.0]));
    assert_eq!((single.bad, single.bursts), (3.0, 3.0));
    assert_eq!((burst.bad, burst.bursts), (3.0, 1.0));
    // Three events are at most 8.77, one of three requests at most 5.57 times three (Garwood).
    let large = |pool: Pool| Pool {
        requests: 900.0,
        ..pool
    };
    assert!(large(single).holds(0.01) && !large(burst).holds(0.01));
}

#[test]
fn intervals_next_to_each_other_are_one_burst() {
    let pool = Pool::from_parts(&parts(&[5.0, 5.0, 5.0, 0.0]));
    assert_eq!((pool.bursts, pool.squares), (1.0, 225.0));
}

/// At a high rate every interval has a bad request, and that is no burst.
#[test]
fn evenly_spread_bad_requests_are_single_ones() {
    let even: Vec<f64> = (0..64).map(|index| f64::from(1 + index % 2)).collect();
    let pool = Pool::from_parts(&parts(&even));
    assert_eq!(pool.squares, pool.bad);
    assert!(!pool.holds(0.015) && pool.holds(0.02));
}

#[test]
fn a_quantile_needs_enough_requests_without_a_bad_one() {
    let pool = |requests| Pool::of_single(requests, 0.0);
    assert!(!pool(368.0).holds(0.01) && pool(370.0).holds(0.01));
    assert!(!pool(999.0).holds(0.0) && pool(1_000.0).holds(0.0));
    assert!(!Pool::of_single(1e6, 1.0).holds(0.0));
}

#[test]
fn saturation_sets_an_upper_end_and_a_burst_does_not() {
    let found = ends(&[look(100.0, &GOOD), look(200.0, &SATURATED)]);
    assert_eq!((found.held, found.failed), (Some(100.0), Some(200.0)));
    let found = ends(&[look(100.0, &GOOD), look(200.0, &one_burst())]);
    assert_eq!((found.held, found.failed), (Some(100.0), None));
}

#[test]
fn one_burst_takes_the_lower_end_from_its_rate_and_higher_ones() {
    let found = ends(&[
        look(80.0, &GOOD),
        look(100.0, &one_burst()),
        look(120.0, &GOOD),
    ]);
    assert_eq!(found.held, Some(80.0));
}

#[test]
fn short_trials_speak_against_a_rate_and_not_for_it() {
    let short = |bad: &[f64]| trial(Purpose::Locate, 100.0, bad);
    assert_eq!(ends(&[short(&GOOD)]).held, None);
    assert_eq!(ends(&[look(100.0, &GOOD), short(&one_burst())]).held, None);
    assert_eq!(ends(&[short(&SATURATED)]).failed, Some(100.0));
}

#[test]
fn a_queue_that_drains_is_no_saturation() {
    let mut made = look(100.0, &SATURATED);
    for (index, part) in made.evidence.parts.iter_mut().enumerate() {
        part.mean = 2.0 - 0.1 * index as f64;
    }
    assert!(!is_failed(&OBJECTIVE, &made));
    assert!(is_failed(&OBJECTIVE, &look(100.0, &SATURATED)));
}

#[test]
fn a_later_success_shows_a_change_and_removes_older_failures() {
    let found = ends(&[
        look(300.0, &SATURATED),
        look(200.0, &SATURATED),
        look(220.0, &GOOD),
    ]);
    assert!(found.changed);
    assert_eq!((found.held, found.failed), (Some(220.0), None));
}

/// 16 s hold for 40 times 400 ms, and not for a queue that has become longer.
#[test]
fn a_look_is_long_compared_with_the_queue_at_its_end() {
    let slow = Objective {
        bound: Span::from_secs(1),
        ..OBJECTIVE
    };
    let held = |mean: f64| {
        let mut made = look(100.0, &GOOD);
        for part in &mut made.evidence.parts {
            part.mean = mean;
        }
        let findings = [made];
        Findings::new(&slow, Span::from_secs(1), &findings)
            .ends()
            .held
    };
    assert_eq!((held(0.39), held(0.41)), (Some(100.0), None));
}

#[test]
fn a_late_generator_is_no_failure_of_the_service() {
    let mut made = look(100.0, &SATURATED);
    made.evidence.late = true;
    assert_eq!(ends(std::slice::from_ref(&made)).failed, None);
    // Failures by status are the service's.
    made.evidence.failed = 1_440;
    assert_eq!(ends(&[made]).failed, Some(100.0));
}

#[test]
fn failed_requests_matter_for_a_median_too() {
    let median = Objective {
        quantile: Some(0.5),
        ..OBJECTIVE
    };
    let mut made = look(100.0, &GOOD);
    made.evidence.failed = 80;
    made.evidence.failures = Pool::of_single(1_600.0, 80.0);
    let found = Findings::new(&median, Span::from_secs(1), std::slice::from_ref(&made)).ends();
    assert_eq!((found.held, found.failed), (None, Some(100.0)));
}

#[test]
fn one_burst_of_failed_requests_sets_no_upper_end() {
    let mut made = look(100.0, &one_burst());
    (made.evidence.failed, made.evidence.failures) = (30, made.evidence.bad_pool());
    let found = ends(&[made]);
    assert_eq!((found.held, found.failed), (None, None));
}

#[test]
fn a_figure_of_events_that_is_unknown_has_failed() {
    let mut made = look(100.0, &GOOD);
    made.evidence.unknown = true;
    assert_eq!(ends(&[made]).failed, Some(100.0));
}
