//! The whole chain compared with queueing theory, in virtual time.
//!
//! Simulated queues (Poisson arrivals, one server, first come first served, Lindley's recursion) feed recorders as a
//! load generator would.
//! `COVERAGE_RUNS=2000 cargo test --release -p posthaste-stats --test oracle -- --nocapture coverage` repeats the
//! coverage study at full size.

use posthaste_stats::theory::{Md1, Mm1, Mm1k};
use posthaste_stats::{FEWEST_FOR_INTERVAL, IntervalEstimate, Recorder, Time, goodness};
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
    /// Without an upper end.
    open: usize,
    absent: usize,
    widths: Vec<f64>,
}

impl SimulatedStudy {
    fn add(&mut self, estimate: IntervalEstimate, truth: Span) {
        let value = estimate.value.known();
        let Some(((Time::Known(low), high), value)) = estimate.interval.zip(value) else {
            self.absent += 1;
            return;
        };
        self.covered += usize::from(low <= truth && high.known().is_none_or(|high| truth <= high));
        self.too_low += usize::from(high.known().is_some_and(|high| high < truth));
        self.open += usize::from(high.known().is_none());
        let width = high.known().map_or(f64::INFINITY, |high| {
            high.saturating_sub(low).as_secs_f64() / value.as_secs_f64()
        });
        self.widths.push(width);
    }

    /// Share of the given intervals that cover the truth.
    fn coverage(&self) -> f64 {
        self.covered as f64 / self.widths.len() as f64
    }

    fn report(&mut self, name: &str, requests: u64) {
        self.widths.sort_unstable_by(f64::total_cmp);
        let given = self.widths.len();
        println!(
            "{name} of {requests} requests: covered {:.1} %, too low {:.1} %, open {}, absent {}, width median {:.3}, \
             95 % below {:.3}",
            100.0 * self.coverage(),
            100.0 * self.too_low as f64 / given as f64,
            self.open,
            self.absent,
            self.widths.get(given / 2).copied().unwrap_or(f64::NAN),
            self.widths
                .get(given * 95 / 100)
                .copied()
                .unwrap_or(f64::NAN),
        );
    }

    /// Checks that no more intervals miss than `share`, with three standard deviations of a binomial.
    fn check(&self, name: &str, share: f64) {
        let tolerance = 3.0 * (share * (1.0 - share) / self.widths.len() as f64).sqrt();
        assert!(
            self.coverage() > 1.0 - share - tolerance,
            "{name} covered {}",
            self.coverage()
        );
    }
}

fn coverage_runs(usual: u64) -> u64 {
    std::env::var("COVERAGE_RUNS").map_or(usual, |runs| runs.parse().unwrap())
}

/// Run lengths with nine of ten intervals narrower than 10 %.
#[test]
fn coverage_of_long_runs() {
    let cases = [
        (ResponseLaw::Exponential, 0.5, 55_000, 320_000),
        (ResponseLaw::Exponential, 0.7, 160_000, 1_100_000),
        (ResponseLaw::Deterministic, 0.5, 20_000, 170_000),
        (ResponseLaw::Deterministic, 0.7, 65_000, 550_000),
    ];
    let mut studies = Vec::new();
    for (law, load, for_mean, for_p99) in cases {
        let (mean, p99) = truth(law, load);
        let (mut of_mean, mut of_p99) = (SimulatedStudy::default(), SimulatedStudy::default());
        for run in 0..coverage_runs(40) {
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
        study.check(&name, 0.05);
        let narrow = study.widths.iter().filter(|&&width| width < 0.1).count();
        let runs = study.widths.len();
        assert!(
            narrow * 100 >= 85 * runs,
            "{name}: {narrow} of {runs} below 10 %"
        );
    }
}

/// Few requests: intervals are wide, and cover. They depend on the number of requests alone, so that calm runs are not
/// the only ones with an interval.
#[test]
fn coverage_of_few_requests() {
    for (law, load) in [ResponseLaw::Exponential, ResponseLaw::Deterministic]
        .into_iter()
        .flat_map(|law| [0.5, 0.7, 0.85].map(|load| (law, load)))
    {
        let truth = |share: Option<f64>| match (law, share) {
            (ResponseLaw::Exponential, None) => Mm1::new(load, SERVICE).unwrap().mean_sojourn(),
            (ResponseLaw::Exponential, Some(q)) => {
                Mm1::new(load, SERVICE).unwrap().sojourn_quantile(q)
            }
            (ResponseLaw::Deterministic, None) => Md1::new(load, SERVICE).unwrap().mean_sojourn(),
            (ResponseLaw::Deterministic, Some(q)) => {
                Md1::new(load, SERVICE).unwrap().sojourn_quantile(q)
            }
        };
        for requests in [100, 350, 1_000, 1_500, 2_000, 5_000, 10_000] {
            let shares = [None, Some(0.5), Some(0.9), Some(0.95), Some(0.99)];
            let mut studies = shares.map(|_| SimulatedStudy::default());
            for run in 0..coverage_runs(100) {
                let mut recorder = Recorder::new();
                let mut queue = Queue::new(law, load, SERVICE, Seed(run));
                queue.record(&mut recorder, requests);
                for (study, share) in studies.iter_mut().zip(shares) {
                    let found = share.map_or_else(|| recorder.mean(), |q| recorder.quantile(q));
                    study.add(found, truth(share));
                }
            }
            for (study, share) in studies.iter_mut().zip(shares) {
                let statistic = share.map_or("mean".to_owned(), |q| format!("p{}", 100.0 * q));
                let name = format!("{law:?} service, load {load}: {statistic}");
                if requests < FEWEST_FOR_INTERVAL {
                    assert_eq!(study.widths.len(), 0, "{name} of {requests} requests");
                    continue;
                }
                study.report(&name, requests);
                study.check(&name, 0.08);
                assert!(
                    load > 0.7 || requests < 2_000 || study.absent == 0,
                    "{name} of {requests} requests"
                );
            }
        }
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
