//! `gradient`: compares the current latency with the latency without a queue, after Netflix's `gradient2`.
//!
//! From `gradient2`: the rule `limit * gradient + queue` with smoothing, the gradient between 0.5 and 1, the tolerance,
//! their defaults, the averaging of latencies, and no growth of an unused limit.
//!
//! Changed here: the reference latency. `gradient2` uses a long-term average, which in a lasting overload includes the
//! queue, so that the limit grows without bound. Here, as in Envoy's adaptive concurrency, the limit is briefly reduced
//! to a quarter from time to time. The latency during this probe is the latency without a queue.
//!
//! In a lasting overload there is a queue during the probe, too: at a quarter of the limit, up to a quarter of the
//! latency. The gradient of a service with one worker is then `tolerance / 4`, and the limit grows without bound from
//! a tolerance of 4 on. So the probe reduces the limit at least to `1 / (2 * tolerance)`. The gradient is then at most
//! 0.5, and the limit stays at twice the `queue`. The lower bound of the limit does not hold during a probe: where it is
//! high, only a probe below it measures the latency without a queue.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Round;
use crate::parameter::{WrongParameter, positive, within};

/// Parameters of `gradient`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gradient {
    /// Multiple of the time without a queue that still counts as no queue.
    #[schemars(range(min = 1, max = 10))]
    pub tolerance: f64,
    /// Growth of the limit per round without a queue, in requests.
    #[schemars(range(min = 1))]
    pub queue: u32,
    /// Weight of a round compared with the limit so far.
    #[schemars(range(min = 0.01, max = 1))]
    pub smoothing: f64,
    /// Rounds between two measurements without a queue.
    #[schemars(range(min = 1))]
    pub probe: u32,
}

impl Default for Gradient {
    fn default() -> Self {
        Self {
            tolerance: 1.5,
            queue: 4,
            smoothing: 0.2,
            probe: 100,
        }
    }
}

impl Gradient {
    pub(super) fn check(&self) -> Result<(), WrongParameter> {
        within("tolerance", self.tolerance, 1.0, 10.0)?;
        positive("queue", self.queue > 0)?;
        within("smoothing", self.smoothing, 0.01, 1.0)?;
        positive("probe", self.probe > 0)
    }
}

/// Maximum number of rounds in which a probe waits for the queue to drain.
const PATIENCE: u32 = 10;

/// The limit in operation.
#[derive(Clone, Debug)]
pub(super) struct GradientState {
    gradient: Gradient,
    /// Latency without a queue, in seconds; `None` before the first round.
    alone: Option<f64>,
    stage: GradientPhase,
}

#[derive(Clone, Copy, Debug)]
enum GradientPhase {
    /// Rounds since the last probe.
    Working(u32),
    /// The limit is reduced to a quarter; earlier requests are still in service.
    Draining { before: f64, rounds: u32 },
    /// This round measures the latency without a queue.
    Probing(f64),
}

impl GradientState {
    pub(super) const fn new(gradient: Gradient) -> Self {
        Self {
            gradient,
            alone: None,
            stage: GradientPhase::Working(0),
        }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.gradient == other.gradient
    }

    /// The limit before the probe under way.
    pub(super) const fn before(&self) -> Option<f64> {
        match self.stage {
            GradientPhase::Working(_) => None,
            GradientPhase::Draining { before, .. } | GradientPhase::Probing(before) => Some(before),
        }
    }

    /// Ends a probe under way.
    pub(super) const fn rest(&mut self) {
        if self.before().is_some() {
            self.stage = GradientPhase::Working(0);
        }
    }

    /// The limit after a round.
    pub(super) fn close(&mut self, round: &Round, limit: f64) -> f64 {
        let Some(mean) = round.mean(self.alone) else {
            return limit;
        };
        match self.stage {
            GradientPhase::Working(rounds) if rounds >= self.gradient.probe => {
                if !round.was_needed(limit) {
                    // Nothing queues: this round measures the latency without a queue.
                    self.learn(mean);
                    self.stage = GradientPhase::Working(0);
                    return limit;
                }
                self.stage = GradientPhase::Draining {
                    before: limit,
                    rounds: 0,
                };
                self.probe_limit(limit)
            }
            GradientPhase::Working(rounds) => {
                self.stage = GradientPhase::Working(rounds + 1);
                let alone = self.alone.unwrap_or(mean);
                let alone = alone + (mean - alone).min(0.0) * self.gradient.smoothing;
                self.alone = Some(alone);
                self.weigh(alone, mean, round, limit)
            }
            // While more requests are in service than the limit allows, they are earlier ones or the caller admits some
            // above the limit. Nothing can be measured then.
            GradientPhase::Draining { before, rounds } => {
                let is_drained = f64::from(round.in_flight) <= limit;
                self.stage = match is_drained {
                    true => GradientPhase::Probing(before),
                    false if rounds < PATIENCE => GradientPhase::Draining {
                        before,
                        rounds: rounds + 1,
                    },
                    false => GradientPhase::Working(0),
                };
                if matches!(self.stage, GradientPhase::Working(_)) {
                    before
                } else {
                    limit
                }
            }
            GradientPhase::Probing(before) => {
                self.stage = GradientPhase::Working(0);
                self.learn(mean);
                before
            }
        }
    }

    /// Takes the mean of a round as the latency without a queue. Half of the previous value is kept, because a single
    /// round is too noisy.
    fn learn(&mut self, mean: f64) {
        self.alone = self.alone.map(|alone| (alone + mean) / 2.0);
    }

    /// The limit during a probe.
    fn probe_limit(&self, limit: f64) -> f64 {
        let divisor = (2.0 * self.gradient.tolerance).max(4.0);
        (limit / divisor).max(1.0)
    }

    fn weigh(&self, alone: f64, mean: f64, round: &Round, limit: f64) -> f64 {
        let Gradient {
            tolerance,
            queue,
            smoothing,
            ..
        } = self.gradient;
        if !round.was_needed(limit) {
            return limit;
        }
        let gradient = (tolerance * alone / mean.max(1e-9)).clamp(0.5, 1.0);
        debug_assert!((0.5..=1.0).contains(&gradient), "a gradient of {gradient}");
        let wanted = limit * gradient + f64::from(queue);
        limit + (wanted - limit) * smoothing
    }
}
