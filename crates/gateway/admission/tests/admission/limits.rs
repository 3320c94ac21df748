//! Adaptive limits with a service in virtual time: some workers, a queue before them, no prices.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use posthaste_admission::limit::{Aimd, Gradient};
use posthaste_admission::{Limit, Limiter};
use posthaste_units::{Seed, Span, Stream};
use rand_distr::{Distribution as _, Exp1};

struct ServiceModel {
    limit: Limit,
    random: Stream,
    /// Mean service time in seconds.
    work: f64,
    now: f64,
    /// Time at which each worker is free.
    free: BinaryHeap<Reverse<u64>>,
    /// Requests in service: the time of each reply and its latency, in nanoseconds, and the requests in service at its
    /// admission.
    answers: BinaryHeap<Reverse<(u64, u64, u32)>>,
}

#[derive(Default)]
struct LimitCourse {
    served: usize,
    refused: usize,
    /// Latencies in nanoseconds.
    latencies: VecDeque<u64>,
    highest: u32,
}

impl ServiceModel {
    fn new(limiter: Limiter, workers: usize, work: f64) -> Self {
        Self::seeded(crate::limit(limiter, 4, 1000), workers, work, 1)
    }

    fn seeded(limit: Limit, workers: usize, work: f64, seed: u64) -> Self {
        Self {
            limit,
            random: Seed(seed).stream("service"),
            work,
            now: 0.0,
            free: (0..workers).map(|_| Reverse(0)).collect(),
            answers: BinaryHeap::new(),
        }
    }

    fn capacity(&self) -> f64 {
        self.free.len() as f64 / self.work
    }

    fn draw(&mut self) -> f64 {
        Exp1.sample(&mut self.random)
    }

    /// Sends requests at random times, at `load` times the capacity of the service.
    fn run(&mut self, load: f64, seconds: f64) -> LimitCourse {
        let mut seen = LimitCourse::default();
        let (rate, end) = (load * self.capacity(), self.now + seconds);
        while self.now < end {
            self.now += self.draw() / rate;
            let now = (self.now * 1e9) as u64;
            while let Some(Reverse((at, took, among))) = self.answers.peek().copied() {
                if at > now {
                    break;
                }
                self.answers.pop();
                self.limit
                    .push(crate::reply(Span::from_nanos(took), among, false));
                seen.highest = seen.highest.max(self.limit.now());
                seen.served += 1;
                seen.latencies.push_back(took);
            }
            if self.answers.len() as u32 >= self.limit.now() {
                seen.refused += 1;
                continue;
            }
            let work = (self.draw() * self.work * 1e9) as u64;
            let Reverse(free) = self.free.pop().expect("workers");
            let done = free.max(now) + work;
            self.free.push(Reverse(done));
            let among = self.answers.len() as u32 + 1;
            self.answers.push(Reverse((done, done - now, among)));
        }
        seen.latencies.make_contiguous().sort_unstable();
        seen
    }
}

impl LimitCourse {
    fn p99(&self) -> f64 {
        self.latencies[self.latencies.len() * 99 / 100] as f64 / 1e9
    }
}

fn gradient() -> Limiter {
    Limiter::Gradient(Gradient::default())
}

#[test]
fn a_limit_keeps_goodput_and_latency_in_an_overload_that_lasts() {
    let aimd = Limiter::Aimd(Aimd {
        timeout: Span::from_millis(100),
        ..Aimd::default()
    });
    for (limiter, p99, highest) in [(gradient(), 0.1, 30), (aimd, 0.15, 40)] {
        let name = limiter.name();
        let mut service = ServiceModel::new(limiter, 4, 0.01);
        service.run(0.5, 10.0);
        // The first minute and the tenth. A reference average that includes the queue would let the limit grow.
        for minute in [1, 10] {
            if minute > 1 {
                service.run(5.0, 480.0);
            }
            let seen = service.run(5.0, 60.0);
            let goodput = seen.served as f64 / 60.0 / service.capacity();
            assert!(goodput > 0.95, "{name}, minute {minute}: {goodput}");
            assert!(seen.p99() < p99, "{name}, minute {minute}: {}", seen.p99());
            assert!(
                seen.highest <= highest,
                "{name}, minute {minute}: {}",
                seen.highest
            );
        }
        let seen = service.run(0.5, 60.0);
        let refused = seen.refused as f64 / (seen.refused + seen.served) as f64;
        assert!(refused < 0.01, "{name}: {refused} refused at half the load");
    }
}

#[test]
fn a_gradient_finds_out_when_the_service_has_become_slower() {
    let mut service = ServiceModel::new(gradient(), 32, 0.01);
    service.run(2.0, 60.0);
    service.work = 0.05;
    service.run(2.0, 120.0);
    let seen = service.run(2.0, 60.0);
    let goodput = seen.served as f64 / 60.0 / service.capacity();
    assert!(goodput > 0.95, "{goodput}");
    assert!(seen.highest <= 80, "{}", seen.highest);
}

/// The faults of known models: a baseline measured in the overload, a lower bound that is also the limit of the probe,
/// and growth while nothing queues. `POSTHASTE_SEEDS=1000` runs a thousand.
#[test]
fn a_limit_recovers_within_10_s_of_half_an_hour_of_overload() {
    let seeds = std::env::var("POSTHASTE_SEEDS").map_or(3, |text| text.parse().expect("a number"));
    let aimd = Limiter::Aimd(Aimd {
        timeout: Span::from_millis(100),
        ..Aimd::default()
    });
    for seed in 0..seeds {
        // One, few and many workers; with a low and a high lower bound.
        for (limiter, workers, least) in [
            (gradient(), 1, 4),
            (gradient(), 4, 4),
            (gradient(), 4, 40),
            (aimd.clone(), 4, 4),
        ] {
            let name = format!("{}, {workers} workers, seed {seed}", limiter.name());
            let limit = crate::limit(limiter, least, 1000);
            let mut service = ServiceModel::seeded(limit, workers, 0.01, seed);
            let overloaded = service.run(2.0, 1800.0);
            assert!(
                overloaded.highest <= 80,
                "{name}: a limit of {}",
                overloaded.highest
            );
            service.run(0.5, 10.0);
            let relieved = service.run(0.5, 20.0);
            let refused = relieved.refused as f64 / (relieved.refused + relieved.served) as f64;
            // One worker rejects some by chance: a limit of 8 blocks 0.2 % of such requests, a probe a fifth.
            assert!(refused < 0.03, "{name}: {refused} refused");
            let loaded = service.run(1.5, 20.0);
            let goodput = loaded.served as f64 / 20.0 / service.capacity();
            assert!(goodput > 0.9, "{name}: {goodput} of the capacity");
        }
    }
}

#[test]
fn a_tolerant_limit_does_not_grow_in_an_overload() {
    for tolerance in [1.5, 4.0, 10.0] {
        let limiter = Limiter::Gradient(Gradient {
            tolerance,
            ..Gradient::default()
        });
        let mut service = ServiceModel::new(limiter, 1, 0.005);
        let seen = service.run(5.0, 1800.0);
        assert!(
            seen.highest <= 60,
            "tolerance {tolerance}: {}",
            seen.highest
        );
        assert!(
            service.limit.now() <= 30,
            "tolerance {tolerance}: {}",
            service.limit.now()
        );
    }
}

/// Such failures take no time and do not show the latency without a queue.
#[test]
fn quick_failures_leave_a_gradient_as_it_was() {
    let gradient = Gradient {
        probe: 10_000,
        ..Gradient::default()
    };
    let mut service = ServiceModel::new(Limiter::Gradient(gradient), 32, 0.05);
    service.run(2.0, 60.0);
    for _ in 0..20_000 {
        service
            .limit
            .push(crate::reply(Span::from_millis(1), 40, true));
    }
    let seen = service.run(2.0, 10.0);
    let goodput = seen.served as f64 / 10.0 / service.capacity();
    assert!(goodput > 0.95, "{goodput}");
}

/// Each failure is a timeout: more requests are in service than the service can handle.
#[test]
fn slow_failures_lower_a_gradient() {
    let mut limit = crate::limit(gradient(), 4, 100);
    for _ in 0..10_000 {
        limit.push(crate::reply(Span::from_millis(50), limit.now(), false));
    }
    assert_eq!(limit.now(), 100);
    for _ in 0..20_000 {
        limit.push(crate::reply(Span::from_secs(5), limit.now(), true));
    }
    assert!(limit.now() < 20, "{}", limit.now());
}

#[test]
fn a_limit_grows_only_when_used_and_stays_within_its_bounds() {
    for limiter in [gradient(), Limiter::Aimd(Aimd::default())] {
        let mut limit = crate::limit(limiter, 8, 20);
        (0..10_000).for_each(|_| limit.push(crate::reply(Span::from_millis(10), 3, false)));
        assert_eq!(limit.now(), 8);
        (0..10_000)
            .for_each(|_| limit.push(crate::reply(Span::from_millis(10), limit.now(), false)));
        assert_eq!(limit.now(), 20);
        (0..10_000).for_each(|_| limit.push(crate::reply(Span::from_secs(100), 20, true)));
        assert!((2..=20).contains(&limit.now()), "{}", limit.now());
    }
    assert_eq!(crate::limit(gradient(), 0, 0).now(), 1);
}

/// Requests with a quote pass a limit, so a probe that never sees few in service must still end.
#[test]
fn a_probe_gives_up() {
    let mut limit = crate::limit(gradient(), 1, 100);
    (0..10_000).for_each(|_| limit.push(crate::reply(Span::from_millis(10), 200, false)));
    assert_eq!(limit.now(), 100);
    let mut probes = 0;
    for _ in 0..10_000 {
        let was_probing = limit.is_probing();
        limit.push(crate::reply(Span::from_millis(100), 200, false));
        probes += u32::from(limit.is_probing() && !was_probing);
    }
    assert!(probes >= 2, "{probes} probes");
    assert!(limit.now() >= 25, "{}", limit.now());
}

#[test]
fn aimd_goes_down_once_a_round_whatever_fails_in_it() {
    let mut limit = crate::limit(Limiter::Aimd(Aimd::default()), 1, 1000);
    while limit.now() < 100 {
        limit.push(crate::reply(Span::from_millis(10), limit.now(), false));
    }
    (0..100).for_each(|_| limit.push(crate::reply(Span::from_millis(10), 100, true)));
    assert_eq!(limit.now(), 90);
    (0..90).for_each(|reply| {
        limit.push(crate::reply(
            Span::from_millis(if reply == 7 { 1001 } else { 10 }),
            90,
            false,
        ))
    });
    assert_eq!(limit.now(), 81);
}
