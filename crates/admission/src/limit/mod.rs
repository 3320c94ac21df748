//! Adaptive limits on the requests in service, by name.
//!
//! Protection without prices. A limit uses only replies, in rounds. A round has as many replies as the limit allows at
//! once, at least ten, so that it shows the effect of the last change. The caller rejects the requests above the limit.

mod aimd;
mod gradient;

use posthaste_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use gradient::GradientState;

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

/// An adaptive limit in operation.
#[derive(Clone, Debug)]
pub struct Limit {
    limiter: LimiterState,
    round: Round,
    least: u32,
    most: u32,
    now: f64,
    /// Highest limit that a round without failures used and did not lower, halved at each recovery.
    confirmed: f64,
}

#[derive(Clone, Debug)]
enum LimiterState {
    Gradient(GradientState),
    Aimd(Aimd),
}

/// The replies since the last change of the limit.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    served: Latencies,
    failed: Latencies,
    longest: Span,
    /// Maximum number of requests in service when a reply arrived.
    in_flight: u32,
}

/// Count and sum of latencies.
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

    /// Fails if its parameters contradict each other.
    pub fn check(&self) -> Result<(), WrongParameter> {
        match self {
            Self::Gradient(gradient) => gradient.check(),
            Self::Aimd(aimd) => aimd.check(),
        }
    }
}

/// Minimum length of a round, in replies.
const ROUND: u32 = 10;

impl Limit {
    /// Starts at `least` and stays within `least` to `most`, except below it during a probe. A `least` of 0 counts as 1, a `most` below it as `least`.
    pub fn new(limiter: Limiter, least: u32, most: u32) -> Self {
        let least = least.max(1);
        Self {
            limiter: match limiter {
                Limiter::Gradient(gradient) => LimiterState::Gradient(GradientState::new(gradient)),
                Limiter::Aimd(aimd) => LimiterState::Aimd(aimd),
            },
            round: Round::default(),
            least,
            most: most.max(least),
            now: f64::from(least),
            confirmed: f64::from(least),
        }
    }

    /// Takes over the limit found by `before`, within the bounds of this one. An equal limiter keeps its history, too.
    #[must_use]
    pub fn continuing(self, before: &Self) -> Self {
        let (least, most) = (f64::from(self.least), f64::from(self.most));
        let (start, now) = match self.limiter.is_same(&before.limiter) {
            true => (before.clone(), before.now),
            false => (self.clone(), before.settled()),
        };
        Self {
            least: self.least,
            most: self.most,
            now: now.clamp(least, most),
            confirmed: before.confirmed.clamp(least, most),
            ..start
        }
    }

    /// The service has come to rest: nothing is in service, and nothing was rejected ([`Rest`](crate::Rest)).
    ///
    /// - A probe ends, and the limit before it applies. Its queue has drained.
    /// - A round that has not ended is discarded. Its replies belong to the load before.
    /// - A limit below half of the highest confirmed one is raised to that half. The reason that lowered it may have
    ///   gone with the load, and without replies nothing else would raise it. Half, as TCP restarts after a loss (RFC
    ///   5681): if the service is still overloaded, a round of replies or failures lowers it again. Each recovery
    ///   halves the confirmed limit, until rounds confirm a higher one.
    pub fn rest(&mut self) {
        // The bounds may have changed since the probe began.
        let (least, most) = (f64::from(self.least), f64::from(self.most));
        self.now = self.settled().clamp(least, most);
        self.round = Round::default();
        if let LimiterState::Gradient(running) = &mut self.limiter {
            running.rest();
        }
        let half = (self.confirmed / 2.0).max(least);
        if self.now < half {
            (self.now, self.confirmed) = (half, half);
        }
        debug_assert!(self.now <= most, "a limit of {}", self.now);
    }

    /// The limit without a probe under way.
    fn settled(&self) -> f64 {
        match &self.limiter {
            LimiterState::Gradient(running) => running.before().unwrap_or(self.now),
            LimiterState::Aimd(_) => self.now,
        }
    }

    /// Adds a reply: its latency since admission, the requests in service at that time, itself included, and its
    /// failure.
    pub fn push(&mut self, latency: Span, in_flight: u32, failed: bool) {
        debug_assert!(in_flight > 0, "a reply without a request in service");
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
            LimiterState::Gradient(running) => running.close(&round, self.now),
            LimiterState::Aimd(aimd) => aimd.close(&round, self.now),
        };
        debug_assert!(wanted.is_finite(), "a limit of {wanted}");
        if wanted >= self.now && round.failed.count == 0 && round.was_needed(self.now) {
            self.confirmed = self.confirmed.max(self.now);
        }
        let least = match &self.limiter {
            LimiterState::Gradient(running) if running.before().is_some() => 1.0,
            _ => f64::from(self.least),
        };
        self.now = wanted.clamp(least, f64::from(self.most));
    }

    /// Current maximum number of requests in service.
    pub const fn now(&self) -> u32 {
        self.now as u32
    }
}

impl LimiterState {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Gradient(one), Self::Gradient(other)) => one.is_same(other),
            (Self::Aimd(one), Self::Aimd(other)) => one == other,
            _ => false,
        }
    }
}

impl Round {
    /// Returns true if the limit was at least half used. Otherwise the replies say nothing about a higher limit.
    fn was_needed(&self, limit: f64) -> bool {
        f64::from(self.in_flight) >= limit / 2.0
    }

    /// Mean latency in seconds. `usual` replaces the mean of the served replies if there are none. Failures count at
    /// least as long as served replies: fast ones do not show a shorter queue, slow ones have waited in it.
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
