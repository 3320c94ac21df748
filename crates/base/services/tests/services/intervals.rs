//! Intervals of one run on services that are no ideal queues: two speeds, several servers, stalls, independent times.

use posthaste_services::{ServiceModel, ServiceReply};
use posthaste_stats::{IntervalEstimate, Recorder};
use posthaste_units::{Instant, Seed, Span};
use rand::RngExt as _;
use rand_distr::Exp1;

use crate::spec;

/// Values of the run that stands for the truth.
const MANY: usize = 500_000;

/// `number` response times of a service under Poisson arrivals, from a random moment on.
fn record(text: &str, rate: f64, number: usize, seed: Seed) -> Recorder {
    let mut service = ServiceModel::new(spec(text), seed);
    let mut arrivals = seed.stream("arrivals");
    let mut recorder = Recorder::new();
    let start: f64 = arrivals.random_range(0.0..60.0);
    let mut now = start;
    for _ in 0..number {
        now += arrivals.sample::<f64, _>(Exp1) / rate;
        let at = Instant::ORIGIN + Span::from_secs_f64(now);
        if let ServiceReply::Answered { at: left, .. } = service.arrive(at) {
            recorder.record(Span::from_secs_f64(now - start), left.since(at));
        }
    }
    recorder
}

fn covers(estimate: &IntervalEstimate, truth: Span) -> Option<bool> {
    let (low, high) = estimate.interval?;
    let low = low.known()?;
    Some(low <= truth && high.known().is_none_or(|high| truth <= high))
}

/// Checks that at least 92 % of the intervals of the mean, p50, p90 and p99 contain the truth, but for chance.
fn check(text: &str, rate: f64, number: usize, runs: u64) {
    let long = record(text, rate, MANY, Seed(1_000_000));
    for share in [None, Some(0.5), Some(0.9), Some(0.99)] {
        let estimate = |all: &Recorder| share.map_or_else(|| all.mean(), |q| all.quantile(q));
        let truth = estimate(&long).value.known().unwrap();
        let one = |run| covers(&estimate(&record(text, rate, number, Seed(run))), truth);
        let given: Vec<bool> = (0..runs).filter_map(one).collect();
        let count = given.len() as f64;
        let covered = given.iter().filter(|covers| **covers).count() as f64;
        println!("{text} at {rate}/s, {number} requests, {share:?}: {covered} of {count}");
        let chance = 3.0 * (count * 0.92 * 0.08).sqrt();
        assert!(count >= 0.5 * runs as f64 && covered >= 0.92 * count - chance);
    }
}

/// A stall of 300 ms every 30 s is left out: in a run of 20 s it may not occur, and no run knows of events that it did
/// not see.
#[test]
fn intervals_hold_on_services_that_are_no_queue_of_one_server() {
    let runs = std::env::var("COVERAGE_RUNS").map_or(40, |runs| runs.parse().unwrap());
    for (text, rate, number) in [
        ("bimodal:5ms:50ms:10%", 60.0, 2_000),
        ("mmc:5ms:4", 600.0, 2_000),
        ("lognormal:5ms:1.5", 100.0, 2_000),
        ("inf:2ms", 500.0, 2_000),
        ("md1:5ms,stall=300ms/2s", 60.0, 2_000),
        ("md1:5ms,stall=300ms/30s", 100.0, 10_000),
    ] {
        check(text, rate, number, runs);
    }
}
