//! How many requests may be in service at once: limits that find out, by name.
//!
//! No prices here, for who wants plain protection. A limit learns from replies alone, round by round: a
//! round is as many replies as the limit allows at once, ten at least, so that a round sees what the last
//! change has done. Refusing what is above it is the caller's.

mod aimd;
mod gradient;

use posthaste_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use aimd::Aimd;
pub use gradient::Gradient;

use super::WrongParameter;

/// A limit's name and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "policy", rename_all = "kebab-case")]
pub enum Limiter {
    /// The limit shrinks as replies take longer than without a queue.
    Gradient(Gradient),
    /// The limit grows by one per round, and shrinks by a share after failures and late replies.
    Aimd(Aimd),
}

/// A limit at work.
#[derive(Clone, Debug)]
pub struct Limit {
    limiter: Running,
    round: Round,
    least: u32,
    most: u32,
    now: f64,
}

#[derive(Clone, Debug)]
enum Running {
    Gradient(gradient::Running),
    Aimd(Aimd),
}

/// The replies since the last change.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    served: Latencies,
    failed: Latencies,
    longest: Span,
    /// The most requests that were in service when a reply came.
    in_flight: u32,
}

/// How long some replies took.
#[derive(Clone, Copy, Debug, Default)]
struct Latencies {
    count: u32,
    /// In seconds.
    sum: f64,
}

impl Default for Limiter {
    fn default() -> Self {
        Self::Gradient(Gradient::default())
    }
}

impl Limiter {
    /// Its name in configurations and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Gradient(_) => "gradient",
            Self::Aimd(_) => "aimd",
        }
    }

    /// Whether its parameters make sense together.
    pub fn check(&self) -> Result<(), WrongParameter> {
        match self {
            Self::Gradient(gradient) => gradient.check(),
            Self::Aimd(aimd) => aimd.check(),
        }
    }
}

/// Shortest round, in replies.
const ROUND: u32 = 10;

impl Limit {
    /// Begins at `least`, and never leaves `least` to `most`. A `least` of 0 counts as 1, a `most` below
    /// it as the same.
    pub fn new(limiter: Limiter, least: u32, most: u32) -> Self {
        let least = least.max(1);
        Self {
            limiter: match limiter {
                Limiter::Gradient(gradient) => Running::Gradient(gradient::Running::new(gradient)),
                Limiter::Aimd(aimd) => Running::Aimd(aimd),
            },
            round: Round::default(),
            least,
            most: most.max(least),
            now: f64::from(least),
        }
    }

    /// Takes a reply: how long it took from when its request went in, how many were in service then,
    /// itself included, and whether it failed.
    pub fn push(&mut self, latency: Span, in_flight: u32, failed: bool) {
        let round = &mut self.round;
        match failed {
            false => round.served.push(latency),
            true => round.failed.push(latency),
        }
        round.longest = round.longest.max(latency);
        round.in_flight = round.in_flight.max(in_flight);
        if round.served.count + round.failed.count < self.now().max(ROUND) {
            return;
        }
        let round = std::mem::take(&mut self.round);
        let wanted = match &mut self.limiter {
            Running::Gradient(running) => running.close(&round, self.now),
            Running::Aimd(aimd) => aimd.close(&round, self.now),
        };
        self.now = wanted.clamp(f64::from(self.least), f64::from(self.most));
    }

    /// Requests that may be in service at once.
    pub const fn now(&self) -> u32 {
        self.now as u32
    }
}

impl Round {
    /// Whether the limit was made use of: where it was not, the replies say nothing of a higher one.
    fn was_needed(&self, limit: f64) -> bool {
        f64::from(self.in_flight) >= limit / 2.0
    }

    /// Mean latency in seconds, where a reply usually takes `usual` if none has been served in this round. Failures
    /// that are quicker than what is served do not say that a queue has become shorter; those that are slower have
    /// waited in it.
    fn mean(&self, usual: Option<f64>) -> Option<f64> {
        let Self { served, failed, .. } = self;
        let usual = served.mean().or(usual)?;
        let failures = f64::from(failed.count);
        let failed = failed.sum.max(failures * usual);
        Some((served.sum + failed) / (f64::from(served.count) + failures))
    }
}

impl Latencies {
    fn push(&mut self, latency: Span) {
        self.count += 1;
        self.sum += latency.as_secs_f64();
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}
