//! A simulated service in virtual time: one server, first come first served, with a known law.
//!
//! The true capacity is known ([`posthaste_stats::theory`]), so studies and tests can compare the search with it.

use posthaste_stats::Recorder;
use posthaste_units::{Seed, Span, Stream};
use rand_distr::{Distribution as _, Exp1};

use super::evidence::Evidence;
use super::objective::Objective;
use super::trial::Proposal;

/// The law of service times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedLaw {
    /// Exponential times.
    Exponential,
    /// A constant time.
    Constant,
    /// A constant time, for any number of requests at once.
    Unlimited,
}

/// A service under trial.
pub struct Simulated {
    service: SimulatedLaw,
    mean: f64,
    /// Remaining work of the server, in seconds.
    backlog: f64,
    /// Requests that find this many in the system are refused at once.
    system_limit: Option<usize>,
    /// The highest rate of the generator.
    limit: f64,
    timeout: f64,
    arrivals: Stream,
    services: Stream,
}

impl Simulated {
    /// An idle service.
    pub fn new(service: SimulatedLaw, mean: Span, seed: Seed) -> Self {
        Self {
            service,
            mean: mean.as_secs_f64(),
            backlog: 0.0,
            system_limit: None,
            limit: f64::INFINITY,
            timeout: f64::INFINITY,
            arrivals: seed.stream("arrivals"),
            services: seed.stream("services"),
        }
    }

    /// Adds a backlog: work that is already queued.
    pub fn with_backlog(self, backlog: Span) -> Self {
        Self {
            backlog: backlog.as_secs_f64(),
            ..self
        }
    }

    /// Adds a limit: a request that finds `limit` requests in the system is refused.
    pub fn with_system_limit(self, limit: usize) -> Self {
        Self {
            system_limit: Some(limit),
            ..self
        }
    }

    /// Adds a generator that sends at most `limit` requests per second.
    pub fn with_generator_limit(self, limit: f64) -> Self {
        Self { limit, ..self }
    }

    /// Adds clients that give up after `timeout`. The server still does their work.
    pub fn with_timeout(self, timeout: Span) -> Self {
        Self {
            timeout: timeout.as_secs_f64(),
            ..self
        }
    }

    /// Runs one trial.
    pub fn trial(&mut self, proposal: &Proposal, objective: &Objective) -> Evidence {
        let settle = proposal.settle.as_secs_f64();
        let end = settle + proposal.length.as_secs_f64();
        let mut times = Recorder::new();
        let (mut now, mut free, mut last) = (0.0, self.backlog, end);
        let mut leaving = std::collections::VecDeque::new();
        let (mut errors, mut completed) = (0, 0_u64);
        loop {
            let gap: f64 = Exp1.sample(&mut self.arrivals);
            now += gap / proposal.rate;
            if now >= end {
                break;
            }
            if let Some(limit) = self.system_limit {
                while leaving.front().is_some_and(|at| *at <= now) {
                    leaving.pop_front();
                }
                if leaving.len() >= limit {
                    if now >= settle {
                        errors += 1;
                        times.record(Span::from_secs_f64(now - settle), Span::from_micros(100));
                    }
                    continue;
                }
            }
            let draw: f64 = match self.service {
                SimulatedLaw::Exponential => Exp1.sample(&mut self.services),
                SimulatedLaw::Constant | SimulatedLaw::Unlimited => 1.0,
            };
            let begin = if self.service == SimulatedLaw::Unlimited {
                now
            } else {
                f64::max(free, now)
            };
            free = begin + draw * self.mean;
            if self.system_limit.is_some() {
                leaving.push_back(free);
            }
            let response = free - now;
            completed += u64::from(free >= settle && free < end && response <= self.timeout);
            last = f64::max(last, now + response.min(self.timeout));
            if now < settle {
                continue;
            }
            let at = Span::from_secs_f64(now - settle);
            match response > self.timeout {
                true => times.record_censored(at, Some(Span::from_secs_f64(self.timeout))),
                false => times.record(at, Span::from_secs_f64(response)),
            }
        }
        self.backlog = (free - last).max(0.0);
        let mut evidence = Evidence {
            throughput: completed as f64 / (end - settle),
            late: proposal.rate > self.limit,
            elapsed: Span::from_secs_f64(last),
            ..Evidence::new(objective, &times, errors)
        };
        if evidence.late {
            // Requests wait for the generator, so response times include its delay.
            evidence.beyond = evidence.requests;
            evidence.excess = f64::INFINITY;
        }
        evidence
    }
}
