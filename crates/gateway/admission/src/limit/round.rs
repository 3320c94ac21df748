//! The replies since the last change of a limit.

use std::collections::BTreeMap;

use posthaste_units::Span;

use super::kinds::{Kind, usual};

/// Minimum number of replies in a round.
const SHORTEST: usize = 20;
/// Maximum number of replies that a round waits for.
const LONGEST: usize = 256;
/// Replies of a kind in a round from which it is judged by itself, and from which its usual time is learned.
const ENOUGH: usize = 10;
const LEARNED: usize = 20;

/// The replies since the last change of the limit.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    /// Kind and slow-down of each reply.
    replies: Vec<(Kind, f32)>,
    pub(super) failed: usize,
    pub(super) longest: Span,
    /// Maximum number of requests in service at the admission of one of them.
    pub(super) in_flight: u32,
    /// Admissions with fewer than half of the limit in service.
    below_half: usize,
}

impl Round {
    pub(super) fn push(
        &mut self,
        kind: Kind,
        slow_down: f64,
        latency: Span,
        in_flight: u32,
        limit: f64,
    ) {
        self.replies.push((kind, slow_down as f32));
        self.longest = self.longest.max(latency);
        self.in_flight = self.in_flight.max(in_flight);
        self.below_half += usize::from(f64::from(in_flight) < limit / 2.0);
    }

    /// True with as many replies as the limit allows at once, at least twenty, so that the round shows the effect of the
    /// last change.
    pub(super) fn is_complete(&self, limit: f64) -> bool {
        self.replies.len() >= (limit as usize).clamp(SHORTEST, LONGEST)
    }

    pub(super) const fn len(&self) -> usize {
        self.replies.len()
    }

    pub(super) fn clear(&mut self) {
        self.replies.clear();
        (self.failed, self.below_half) = (0, 0);
        (self.longest, self.in_flight) = (Span::ZERO, 0);
    }

    /// True if the limit was at least half used nearly all the time. Otherwise a queue was that of a burst, and has drained.
    pub(super) const fn was_full(&self) -> bool {
        self.below_half * 10 <= self.replies.len()
    }

    /// True if most of the replies are failures.
    pub(super) const fn mostly_failed(&self) -> bool {
        self.failed * 2 > self.replies.len()
    }

    /// True if the limit was at least half used. Otherwise the replies say nothing about a higher limit.
    pub(super) fn was_needed(&self, limit: f64) -> bool {
        f64::from(self.in_flight) >= limit / 2.0
    }

    /// Slow-down of the kind that is slowed least: in a queue that all kinds share, all of them are slow. Kinds with few
    /// replies count together.
    pub(super) fn slow_down(&self) -> f64 {
        let mut few = Vec::new();
        let mut least = f64::INFINITY;
        for (_, times) in self.by_kind() {
            if times.len() >= ENOUGH {
                least = least.min(usual(&times));
            } else {
                few.extend(times);
            }
        }
        if few.len() >= ENOUGH || least == f64::INFINITY && !few.is_empty() {
            few.sort_unstable_by(f32::total_cmp);
            least = least.min(usual(&few));
        }
        if least.is_finite() { least } else { 1.0 }
    }

    /// The slow-down of each kind with enough replies to learn from.
    pub(super) fn slow_downs(&self) -> impl Iterator<Item = (Kind, f64)> {
        let enough = self.by_kind().filter(|(_, times)| times.len() >= LEARNED);
        enough.map(|(kind, times)| (kind, usual(&times)))
    }

    /// The slow-downs of each kind, sorted.
    fn by_kind(&self) -> impl Iterator<Item = (Kind, Vec<f32>)> {
        let mut kinds: BTreeMap<Kind, Vec<f32>> = BTreeMap::new();
        for (kind, slow_down) in &self.replies {
            kinds.entry(*kind).or_default().push(*slow_down);
        }
        kinds.into_iter().map(|(kind, mut times)| {
            times.sort_unstable_by(f32::total_cmp);
            (kind, times)
        })
    }
}
