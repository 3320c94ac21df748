//! A service with clients that have budgets: one server with a constant service time, requests at random times. Only
//! the price limits the load.

use posthaste_admission::{Controller, Observed, Pricing};
use posthaste_services::{ServiceLaw, ServiceModel};
use posthaste_units::{Instant, Seed, Span, Stream};
use rand::RngExt as _;
use rand_distr::{Distribution as _, Exp1, LogNormal};

/// Distribution of the clients' budgets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Budgets {
    /// Uniform from 0 to 1.
    Even,
    /// Mostly small, a few large: median 0.25.
    Skewed,
    /// The thesis's four clients: 0.10, 0.40, 0.50 and 0.70.
    Four,
    /// Unlimited.
    Rich,
}

/// Configuration of a simulation.
#[derive(Clone, Debug)]
pub(crate) struct PlantConfig {
    pub(crate) controller: Controller,
    pub(crate) budgets: Budgets,
    /// Age of the price that clients know. The server uses the current one.
    pub(crate) staleness: Span,
    /// Time between two samples.
    pub(crate) sample: Span,
    pub(crate) service: Span,
    pub(crate) seed: Seed,
}

/// One sample of the observed values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) at: f64,
    pub(crate) busy: f64,
    pub(crate) price: f64,
    /// Maximum wait since the last sample, in seconds.
    pub(crate) wait: f64,
}

pub(crate) struct Plant {
    world: PlantConfig,
    pricing: Pricing,
    random: Stream,
    now: f64,
    service: ServiceModel,
    /// Prices and the times from which they are known.
    prices: Vec<(f64, f64)>,
    pub(crate) seen: Vec<Moment>,
}

impl Plant {
    pub(crate) fn new(world: PlantConfig) -> Self {
        let currency = "EUR".parse().expect("a currency");
        Self {
            pricing: Pricing::new(world.controller.clone(), currency),
            random: world.seed.stream("plant"),
            now: 0.0,
            service: ServiceModel::new(ServiceLaw::Md1(world.service).into(), world.seed),
            prices: vec![(0.0, 0.0)],
            seen: Vec::new(),
            world,
        }
    }

    /// Runs for some seconds with requests that would make the server busy `load` times over.
    pub(crate) fn run(&mut self, load: f64, seconds: f64) -> &[Moment] {
        let from = self.seen.len();
        let end = self.now + seconds;
        let (service, sample) = (
            self.world.service.as_secs_f64(),
            self.world.sample.as_secs_f64(),
        );
        let gap = |random: &mut Stream| -> f64 {
            let exponential: f64 = Exp1.sample(random);
            exponential * service / load
        };
        let mut arrival = self.now + gap(&mut self.random);
        while self.now + sample / 2.0 < end {
            let next = self.now + sample;
            let (from, to) = (instant(self.now), instant(next));
            let (mut wait, mut waits, mut served) = (0.0, 0.0, 0u32);
            let mut work = self.service.backlog(from).min(self.world.sample);
            while arrival < next {
                let price = self
                    .known(arrival)
                    .max(self.pricing.price().micros() as f64 / 1e6);
                if self.budget() >= price {
                    let now = instant(arrival);
                    let visit = self.service.visit(now);
                    let (starts, _) = visit.served.expect("a plain service refuses nothing");
                    let waited = starts.since(now).as_secs_f64();
                    wait = f64::max(wait, waited);
                    waits += waited;
                    served += 1;
                    work += visit.service_within(from, to);
                }
                arrival += gap(&mut self.random);
            }
            self.now = next;
            let work = work.as_secs_f64();
            let (busy, mean) = (work / sample, waits / f64::from(served.max(1)));
            let seen = Observed {
                at: instant(next),
                busy,
                delay: Span::from_secs_f64(mean),
            };
            let price = self.pricing.push(seen).micros() as f64 / 1e6;
            self.prices.push((next, price));
            let at = next;
            self.seen.push(Moment {
                at,
                busy,
                price,
                wait,
            });
        }
        &self.seen[from..]
    }

    pub(crate) fn turns(&self) -> u64 {
        self.pricing.turns()
    }

    /// The price that clients know at a time.
    fn known(&self, at: f64) -> f64 {
        let then = at - self.world.staleness.as_secs_f64();
        let known = self.prices.iter().rev().find(|(since, _)| *since <= then);
        known.map_or(0.0, |(_, price)| *price)
    }

    fn budget(&mut self) -> f64 {
        let random = &mut self.random;
        match self.world.budgets {
            Budgets::Even => random.random(),
            Budgets::Skewed => {
                let spread = LogNormal::new(0.25f64.ln(), 0.6).expect("a distribution");
                spread.sample(random)
            }
            Budgets::Rich => f64::INFINITY,
            Budgets::Four => [0.1, 0.4, 0.5, 0.7][random.random_range(0..4)],
        }
    }
}

fn instant(seconds: f64) -> Instant {
    Instant::ORIGIN + Span::from_secs_f64(seconds)
}

pub(crate) fn mean(moments: &[Moment], part: fn(&Moment) -> f64) -> f64 {
    moments.iter().map(part).sum::<f64>() / moments.len() as f64
}

pub(crate) fn price_variance(moments: &[Moment]) -> f64 {
    let middle = mean(moments, |moment| moment.price);
    let squares = moments.iter().map(|moment| (moment.price - middle).powi(2));
    squares.sum::<f64>() / moments.len() as f64
}

/// Seconds until the price stays within 0.05 of its final value, the mean of the last third.
pub(crate) fn settling(moments: &[Moment]) -> f64 {
    let last = mean(&moments[moments.len() * 2 / 3..], |moment| moment.price);
    let outside = moments
        .iter()
        .rposition(|moment| (moment.price - last).abs() > 0.05);
    outside.map_or(0.0, |index| moments[index].at - moments[0].at)
}
