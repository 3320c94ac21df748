//! The whole chain compared with queueing theory, in virtual time.
//!
//! Simulated queues (Poisson arrivals, one server, first come first served, Lindley's recursion) feed recorders as a
//! load generator would.
//! `COVERAGE_RUNS=2000 cargo test --release -p posthaste-stats --test oracle -- --nocapture coverage` repeats the
//! coverage study at full size.

use posthaste_stats::theory::{Md1, Mm1, Mm1k};
use posthaste_stats::{Recorder, Time, goodness};
use posthaste_units::{Seed, Span, Stream};
use rand_distr::{Distribution as _, Exp1, Gamma, Uniform};

const SERVICE: Span = Span::from_millis(5);

#[derive(Clone, Copy, Debug, PartialEq)]
enum ResponseLaw {
    Exponential,
    Deterministic,
}

/// An endless run, as pairs of arrival and sojourn.
struct Queue {
    law: ResponseLaw,
    service: f64,
    gap: f64,
    arrivals: Stream,
    services: Stream,
    now: f64,
    free: f64,
}

impl Queue {
    fn new(law: ResponseLaw, load: f64, service: Span, seed: Seed) -> Self {
        let service = service.as_secs_f64();
        Self {
            law,
            service,
            gap: service / load,
            arrivals: seed.stream("arrivals"),
            services: seed.stream("services"),
            now: 0.0,
            free: 0.0,
        }
    }

    fn record(&mut self, recorder: &mut Recorder, number: u64) {
        for (at, sojourn) in self.take(number as usize) {
            recorder.record(at, sojourn);
        }
    }
}

impl Iterator for Queue {
    type Item = (Span, Span);

    fn next(&mut self) -> Option<(Span, Span)> {
        self.now += exponential(&mut self.arrivals) * self.gap;
        let service = match self.law {
            ResponseLaw::Exponential => exponential(&mut self.services) * self.service,
            ResponseLaw::Deterministic => self.service,
        };
        self.free = self.free.max(self.now) + service;
        let (at, sojourn) = (self.now, self.free - self.now);
        Some((Span::from_secs_f64(at), Span::from_secs_f64(sojourn)))
    }
}

fn exponential(stream: &mut Stream) -> f64 {
    Exp1.sample(stream)
}

/// Mean and p99 of the sojourn.
fn truth(law: ResponseLaw, load: f64) -> (Span, Span) {
    match law {
        ResponseLaw::Exponential => {
            let queue = Mm1::new(load, SERVICE).unwrap();
            (queue.mean_sojourn(), queue.sojourn_quantile(0.99))
        }
        ResponseLaw::Deterministic => {
            let queue = Md1::new(load, SERVICE).unwrap();
            (queue.mean_sojourn(), queue.sojourn_quantile(0.99))
        }
    }
}

/// Results of the intervals of one statistic.
#[derive(Default)]
struct SimulatedStudy {
    covered: usize,
    too_low: usize,
    widths: Vec<f64>,
}

impl SimulatedStudy {
    fn add(&mut self, estimate: posthaste_stats::IntervalEstimate, truth: Span) {
        let known = |(low, high): (Time, Time)| Some((low.known()?, high.known()?));
        let interval = estimate
            .interval
            .and_then(known)
            .zip(estimate.value.known());
        let Some(((low, high), value)) = interval else {
            self.widths.push(f64::INFINITY);
            return;
        };
        self.covered += usize::from(low <= truth && truth <= high);
        self.too_low += usize::from(high < truth);
        let width = high.saturating_sub(low).as_secs_f64();
        self.widths.push(width / value.as_secs_f64());
    }

    fn report(&mut self, name: &str, requests: u64) {
        self.widths.sort_unstable_by(f64::total_cmp);
        let runs = self.widths.len();
        println!(
            "{name} of {requests} requests: covered {:.2} %, too low {:.2} %, width median {:.4}, 95 % below {:.4}",
            100.0 * self.covered as f64 / runs as f64,
            100.0 * self.too_low as f64 / runs as f64,
            self.widths[runs / 2],
            self.widths[runs * 95 / 100],
        );
    }

    /// Checks that coverage is within three standard deviations of a binomial around 95 %, and nineteen of twenty are
    /// narrow.
    fn check(&self, name: &str) {
        let runs = self.widths.len() as f64;
        let share = self.covered as f64 / runs;
        let tolerance = 3.0 * (0.95 * 0.05 / runs).sqrt();
        assert!((share - 0.95).abs() < tolerance, "{name} covered {share}");
        let narrow = self.widths.iter().filter(|&&width| width < 0.1).count();
        assert!(
            narrow as f64 >= 0.93 * runs,
            "{name}: {narrow} of {runs} below 10 %"
        );
    }
}

/// Run lengths are the shortest with 95 % of intervals narrower than 10 %.
#[test]
fn coverage_of_theory() {
    let runs = std::env::var("COVERAGE_RUNS").map_or(200, |runs| runs.parse().unwrap());
    let cases = [
        (ResponseLaw::Exponential, 0.5, 30_000, 145_000),
        (ResponseLaw::Exponential, 0.7, 100_000, 480_000),
        (ResponseLaw::Deterministic, 0.5, 5_300, 70_000),
        (ResponseLaw::Deterministic, 0.7, 28_000, 236_000),
    ];
    let mut studies = Vec::new();
    for (law, load, for_mean, for_p99) in cases {
        let (mean, p99) = truth(law, load);
        let (mut of_mean, mut of_p99) = (SimulatedStudy::default(), SimulatedStudy::default());
        for run in 0..runs {
            let mut queue = Queue::new(law, load, SERVICE, Seed(run));
            let mut recorder = Recorder::new();
            queue.record(&mut recorder, for_mean);
            of_mean.add(recorder.mean(), mean);
            queue.record(&mut recorder, for_p99 - for_mean);
            of_p99.add(recorder.quantile(0.99), p99);
        }
        let name = |statistic: &str| format!("{law:?} service, load {load}: {statistic}");
        of_mean.report(&name("mean"), for_mean);
        of_p99.report(&name("p99"), for_p99);
        studies.extend([(name("mean"), of_mean), (name("p99"), of_p99)]);
    }
    for (name, study) in studies {
        study.check(&name);
    }
}

#[test]
fn theory_agrees_with_a_long_run() {
    for law in [ResponseLaw::Exponential, ResponseLaw::Deterministic] {
        for (load, tolerance) in [(0.5, 0.01), (0.9, 0.03)] {
            let (mean, p99) = truth(law, load);
            let mut recorder = Recorder::new();
            Queue::new(law, load, SERVICE, Seed(1)).record(&mut recorder, 5_000_000);
            for (found, truth) in [(recorder.mean(), mean), (recorder.quantile(0.99), p99)] {
                let error = found.value.known().unwrap().as_secs_f64() / truth.as_secs_f64() - 1.0;
                assert!(
                    error.abs() < tolerance,
                    "{law:?} at {load}: off by {error:.4}"
                );
            }
        }
    }
}

#[test]
fn theory_agrees_with_a_full_queue() {
    let (load, room) = (0.9, 4);
    let theory = Mm1k::new(load, SERVICE, room).unwrap();
    let mut stream = Seed(1).stream("full queue");
    let mut departures = std::collections::VecDeque::new();
    let (mut now, mut free, mut blocked, mut sojourns) = (0.0f64, 0.0f64, 0u32, 0.0);
    let requests = 2_000_000;
    for _ in 0..requests {
        now += exponential(&mut stream) * SERVICE.as_secs_f64() / load;
        while departures
            .front()
            .is_some_and(|&departure| departure <= now)
        {
            departures.pop_front();
        }
        if departures.len() == room as usize {
            blocked += 1;
            continue;
        }
        free = free.max(now) + exponential(&mut stream) * SERVICE.as_secs_f64();
        departures.push_back(free);
        sojourns += free - now;
    }
    let share = f64::from(blocked) / f64::from(requests);
    assert!((share / theory.blocking() - 1.0).abs() < 0.01, "{share}");
    let mean = sojourns / f64::from(requests - blocked);
    assert!(
        (mean / theory.mean_sojourn().as_secs_f64() - 1.0).abs() < 0.01,
        "{mean}"
    );
}

const GAPS: usize = 100_000;
const GAP: Span = Span::from_millis(1);

fn gaps(mut draw: impl FnMut(&mut Stream) -> f64, seed: u64) -> Vec<Span> {
    let mut stream = Seed(seed).stream("gaps");
    (0..GAPS)
        .map(|_| Span::from_secs_f64(draw(&mut stream) * GAP.as_secs_f64()))
        .collect()
}

#[test]
fn exponential_gaps_are_accepted_as_often_as_they_should() {
    let mut p_values = Vec::new();
    for seed in 0..40 {
        let gaps = gaps(exponential, seed);
        p_values.push(goodness::exponential_gaps(&gaps, GAP).unwrap().p_value);
        let variation = goodness::coefficient_of_variation(&gaps).unwrap();
        assert!((variation - 1.0).abs() < 0.02, "{variation}");
        let lag = goodness::lag_one_correlation(&gaps).unwrap();
        assert!(lag.value.abs() < 2.0 * lag.bound, "{lag:?}");
    }
    // Uniform if true: 20 of 40 above a half, at most 6 below a twentieth.
    let above = |limit: f64| p_values.iter().filter(|&&p| p > limit).count();
    assert!(
        (11..=29).contains(&above(0.5)) && above(0.05) >= 34,
        "{p_values:?}"
    );
}

#[test]
fn other_gaps_are_rejected() {
    let noise = Uniform::new(0.95, 1.05).unwrap();
    let constant = gaps(|stream| noise.sample(stream), 1);
    let gamma = Gamma::new(1.1, 1.0 / 1.1).unwrap();
    let nearly = gaps(|stream| gamma.sample(stream), 1);
    for gaps in [constant, nearly] {
        let found = goodness::exponential_gaps(&gaps, GAP).unwrap();
        assert!(found.p_value < 1e-6, "{found:?}");
    }
}
