//! Adaptive limits on the requests in service, by name.
//!
//! Protection without prices. A limit uses only replies, in rounds. A round has as many replies as the limit allows at
//! once, at least twenty, so that it shows the effect of the last change. The caller rejects the requests above the limit.

mod aimd;
mod gradient;
mod kinds;
mod round;

use posthaste_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use gradient::GradientState;
use kinds::Kinds;
use round::Round;

pub use aimd::Aimd;
pub use gradient::Gradient;
pub use kinds::Kind;

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

/// Bounds of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitBounds {
    /// Lower bound, at least 1. It does not hold during a probe.
    pub least: u32,
    /// The limit at the start, and after an overload.
    pub start: u32,
    /// Upper bound.
    pub most: u32,
}

/// An adaptive limit in operation.
#[derive(Clone, Debug)]
pub struct Limit {
    limiter: LimiterState,
    bounds: LimitBounds,
    kinds: Kinds,
    round: Round,
    now: f64,
    /// Highest limit that a round without failures used and did not lower, halved at each recovery.
    confirmed: f64,
}

/// A reply of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceReply {
    /// Kind of its request.
    pub kind: Kind,
    /// Time since the admission.
    pub time: Span,
    /// Requests in service at the admission, itself included.
    pub among: u32,
    /// The request has failed.
    pub is_failed: bool,
}

#[derive(Clone, Debug)]
enum LimiterState {
    Gradient(GradientState),
    Aimd(Aimd),
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

impl LimitBounds {
    /// These bounds in order: at least 1, `start` between the others.
    fn ordered(self) -> Self {
        let least = self.least.max(1);
        let most = self.most.max(least);
        Self {
            least,
            start: self.start.clamp(least, most),
            most,
        }
    }

    fn clamp(&self, limit: f64) -> f64 {
        limit.clamp(f64::from(self.least), f64::from(self.most))
    }
}

impl Limit {
    /// Starts at `start`.
    pub fn new(limiter: Limiter, bounds: LimitBounds) -> Self {
        let bounds = bounds.ordered();
        let start = f64::from(bounds.start);
        Self {
            limiter: match limiter {
                Limiter::Gradient(gradient) => LimiterState::Gradient(GradientState::new(gradient)),
                Limiter::Aimd(aimd) => LimiterState::Aimd(aimd),
            },
            kinds: Kinds::default(),
            round: Round::default(),
            bounds,
            now: start,
            confirmed: start,
        }
    }

    /// Takes over the limit found by `before`, within the bounds of this one, and the times of the kinds. An equal limiter
    /// keeps its history, too.
    #[must_use]
    pub fn continuing(self, before: Self) -> Self {
        let bounds = self.bounds;
        let confirmed = bounds.clamp(before.confirmed);
        let (limit, now) = if self.limiter.is_same(&before.limiter) {
            let now = before.now;
            (before, now)
        } else {
            let now = before.settled();
            let kinds = before.kinds;
            (Self { kinds, ..self }, now)
        };
        Self {
            bounds,
            now: bounds.clamp(now),
            confirmed,
            ..limit
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
        self.now = self.bounds.clamp(self.settled());
        self.round.clear();
        if let LimiterState::Gradient(running) = &mut self.limiter {
            running.rest();
        }
        let half = self.bounds.clamp(self.confirmed / 2.0);
        if self.now < half {
            (self.now, self.confirmed) = (half, half);
        }
    }

    /// The limit without a probe under way.
    fn settled(&self) -> f64 {
        match &self.limiter {
            LimiterState::Gradient(running) => running.before().unwrap_or(self.now),
            LimiterState::Aimd(_) => self.now,
        }
    }

    /// Adds a reply.
    pub fn push(&mut self, reply: ServiceReply) {
        debug_assert!(reply.among > 0, "a reply without a request in service");
        let time = reply.time.as_secs_f64();
        let slow_down = if reply.is_failed {
            self.kinds.failed(reply.kind, time)
        } else {
            self.kinds.push(reply.kind, time)
        };
        let counts = match &mut self.limiter {
            LimiterState::Gradient(running) => running.counts(reply.among, self.now),
            LimiterState::Aimd(_) => true,
        };
        if counts {
            let ServiceReply {
                kind, time, among, ..
            } = reply;
            self.round.push(kind, slow_down, time, among, self.now);
            self.round.failed += usize::from(reply.is_failed);
        }
        let is_complete = match &self.limiter {
            LimiterState::Gradient(running) => running.is_complete(&self.round, self.now),
            LimiterState::Aimd(_) => self.round.is_complete(self.now),
        };
        if is_complete {
            self.close();
        }
    }

    /// Ends a round.
    fn close(&mut self) {
        let round = &mut self.round;
        let start = f64::from(self.bounds.start);
        let wanted = match &mut self.limiter {
            LimiterState::Gradient(running) => {
                running.close(round, &mut self.kinds, self.now, start)
            }
            LimiterState::Aimd(aimd) => aimd.close(round, self.now),
        };
        debug_assert!(wanted.is_finite(), "a limit of {wanted}");
        if wanted >= self.now && round.failed == 0 && round.was_needed(self.now) {
            self.confirmed = self.confirmed.max(self.now);
        }
        round.clear();
        self.now = if self.is_probing() {
            wanted
        } else {
            self.bounds.clamp(wanted)
        };
    }

    /// Current maximum number of requests in service.
    pub const fn now(&self) -> u32 {
        self.now as u32
    }

    /// True if all latest replies of the kind were slow.
    pub fn queues(&self, kind: Kind) -> bool {
        self.kinds.queues(kind)
    }

    /// True while the limit is reduced for a measurement.
    pub fn is_probing(&self) -> bool {
        matches!(&self.limiter, LimiterState::Gradient(running) if running.before().is_some())
    }

    /// 99th percentile of the kind's times. `None` before the first reply.
    pub fn slow(&self, kind: Kind) -> Option<Span> {
        self.kinds.slow(kind)
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
