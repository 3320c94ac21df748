//! `gradient`: compares the times of replies with those without a queue, after Netflix's `gradient2`.
//!
//! From `gradient2`: the rule `limit * gradient + queue` with smoothing, the gradient between 0.5 and 1, the tolerance and
//! their defaults. From Envoy's adaptive concurrency: a probe reduces the limit to measure the time without a queue.
//!
//! Changed here:
//!
//! - The slow-down of a round is that of its quick replies, each compared with its own kind
//!   ([`kinds`](super::kinds)), of the kind that is slowed least. A mean over unlike requests would take a change of their
//!   mix, long polls or one slow kind for a queue.
//! - There is no long-term average. In a lasting overload it includes the queue, and the limit grows without bound.
//! - Probes answer a doubt instead of a clock: with slow replies the limit goes down for a moment. If the slow-down
//!   goes down with it, there is a queue, and the limit follows by Little's law: in the proportion of both. If
//!   not, the service has become slower, its time is learned, and the limit stays. The interval between probes doubles
//!   as long as they find nothing new.
//!
//! In a lasting overload there is a queue during the probe, too. The probe reduces the limit to `1 / (2 * tolerance)`, a
//! third by default, and teaches no longer time where it finds a queue: otherwise the usual time would grow with the
//! queue, and the limit with it. The lower bound of the limit does not hold during a probe: where it is high, only a probe
//! below it tells a queue from a slow service.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kinds::Kinds;
use super::round::Round;
use crate::parameter::{WrongParameter, positive, within};

/// Parameters of `gradient`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gradient {
    /// Slow-down that still counts as no queue: a multiple of the time without one.
    #[schemars(range(min = 1, max = 10))]
    pub tolerance: f64,
    /// Requests that may queue, and minimum growth of the limit in a round without a queue.
    #[schemars(range(min = 1))]
    pub queue: u32,
    /// Weight of a round with a queue compared with the limit so far, and growth of the limit in one without.
    #[schemars(range(min = 0.01, max = 1))]
    pub smoothing: f64,
    /// Maximum number of rounds with a queue between two probes.
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

/// Replies among few in service that end a probe, at least, and at least twice as many as may be in service: the first
/// ones are the fast ones.
const PROBED: usize = 20;
/// Replies after which a probe gives up, as a multiple of the limit before it: the caller admits more than the limit.
const PATIENCE: f64 = 10.0;
/// A slow-down lower by this factor at the lower limit shows a queue.
const LOWER: f64 = 1.25;
/// Limit after a probe that found a queue, as a multiple of the requests that fit without one.
const ROOM: f64 = 1.2;
/// Slow-down below which the service has become faster.
const FASTER: f64 = 0.5;
/// Minimum number of rounds between two probes, as long as they find something new.
const SHORTEST: u32 = 2;
/// Rounds after a growth of the limit in which a slow-down is still that of fewer requests.
const STEADY: u32 = 2;
/// Growth of the usual time from which a probe has found something new.
const NEW: f64 = 2.5;
/// Weight of the time in a probe that found a queue, if it is below the usual one.
const LEARNED: f64 = 0.5;
/// Multiple of the tolerance from which a slow-down begins a probe soon.
const DOUBT: f64 = 2.0;

/// The limit in operation.
#[derive(Clone, Debug)]
pub(super) struct GradientState {
    gradient: Gradient,
    phase: GradientPhase,
    /// Rounds since the last probe.
    rounds: u32,
    /// Minimum number of rounds between two probes.
    gap: u32,
    /// Rounds since the limit grew or a probe ended. The replies of the first one are from before.
    steady: u32,
}

#[derive(Clone, Copy, Debug)]
enum GradientPhase {
    Working,
    /// The limit is reduced, and replies of requests admitted among few are collected.
    Probing {
        /// The limit before.
        before: f64,
        /// The slow-down before.
        slow_down: f64,
        /// Replies since then.
        replies: u32,
    },
}

impl GradientState {
    pub(super) const fn new(gradient: Gradient) -> Self {
        Self {
            gradient,
            phase: GradientPhase::Working,
            rounds: 0,
            gap: SHORTEST,
            steady: STEADY,
        }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.gradient == other.gradient
    }

    /// The limit before the probe under way.
    pub(super) const fn before(&self) -> Option<f64> {
        match self.phase {
            GradientPhase::Working => None,
            GradientPhase::Probing { before, .. } => Some(before),
        }
    }

    /// Ends a probe under way.
    pub(super) const fn rest(&mut self) {
        self.phase = GradientPhase::Working;
        (self.rounds, self.gap) = (0, SHORTEST);
    }

    /// True if a reply of a request admitted among so many says something in this phase.
    pub(super) fn counts(&mut self, in_flight: u32, limit: f64) -> bool {
        match &mut self.phase {
            GradientPhase::Working => true,
            GradientPhase::Probing { replies, .. } => {
                *replies += 1;
                f64::from(in_flight) <= limit
            }
        }
    }

    /// True if the round has enough replies, or if no more are expected.
    pub(super) fn is_complete(&self, round: &Round, limit: f64) -> bool {
        match self.phase {
            GradientPhase::Working => round.is_complete(limit),
            GradientPhase::Probing { .. } if round.len() >= PROBED.max(2 * limit as usize) => true,
            GradientPhase::Probing {
                before, replies, ..
            } => f64::from(replies) > PATIENCE * before,
        }
    }

    /// The limit after a round, towards `start` while it is not needed.
    pub(super) fn close(
        &mut self,
        round: &Round,
        kinds: &mut Kinds,
        limit: f64,
        start: f64,
    ) -> f64 {
        let GradientPhase::Probing {
            before, slow_down, ..
        } = self.phase
        else {
            return self.work(round, kinds, limit, start);
        };
        (self.phase, self.rounds) = (GradientPhase::Working, 0);
        self.steady = 0;
        if round.len() < PROBED {
            return before;
        }
        if round.mostly_failed() {
            return limit;
        }
        let found = round.slow_down();
        let has_queue = found * LOWER < slow_down;
        let is_new = !has_queue && found > NEW;
        self.gap = if is_new {
            SHORTEST
        } else {
            (self.gap * 2).min(self.gradient.probe)
        };
        for (kind, slow_down) in round.slow_downs() {
            if !has_queue {
                kinds.scale(kind, slow_down);
            } else if slow_down < FASTER {
                kinds.scale(kind, slow_down.powf(LEARNED));
            }
        }
        if !has_queue {
            return before;
        }
        let fits = (before * found / slow_down).max(limit);
        (fits * ROOM + f64::from(self.gradient.queue)).min(before)
    }

    /// The limit after a round without a probe.
    fn work(&mut self, round: &Round, kinds: &mut Kinds, limit: f64, start: f64) -> f64 {
        let Gradient {
            tolerance,
            queue,
            smoothing,
            ..
        } = self.gradient;
        self.rounds += 1;
        self.steady += 1;
        if self.rounds == 1 && self.steady == 1 {
            // Some of the replies are from the time of the probe.
            return limit;
        }
        let queue = f64::from(queue);
        let slow_down = round.slow_down();
        let is_needed = round.was_needed(limit);
        for (kind, slow_down) in round.slow_downs() {
            if slow_down < FASTER {
                kinds.scale(kind, slow_down.powf(LEARNED));
            } else if !is_needed {
                kinds.scale(kind, slow_down.powf(smoothing));
            }
        }
        if round.mostly_failed() && slow_down <= tolerance {
            return limit;
        }
        if is_needed && slow_down <= tolerance {
            self.steady = 0;
            return limit + queue.max(limit * smoothing);
        }
        if !round.was_full() {
            return limit.max(start.min(limit + queue));
        }
        let has_doubt = slow_down > DOUBT * tolerance || self.rounds >= self.gradient.probe;
        if has_doubt && self.rounds >= self.gap && self.steady >= STEADY {
            self.phase = GradientPhase::Probing {
                before: limit,
                slow_down,
                replies: 0,
            };
            return (limit / (2.0 * tolerance).max(2.0)).max(1.0);
        }
        let gradient = (tolerance / slow_down).clamp(0.5, 1.0);
        let wanted = limit * gradient + queue;
        limit + (wanted - limit) * smoothing
    }
}
