//! Response times of each kind of request without a queue.
//!
//! Requests of unlike kinds have unlike times, and a change of their mix is no queue. Each reply is therefore compared
//! with its own kind: its slow-down is its time divided by the kind's usual time without a queue. A usual time is the
//! mean of the fastest three quarters: in a queue that all requests share, hardly one is fast, and a few slow replies,
//! such as those of long polls or of requests that hang, change nothing.

use posthaste_units::Span;

/// Share of the replies, the fastest ones, that count for a usual time.
const FAST: f64 = 0.75;
/// Share of a kind's replies that take at most its slow time, and the step of that estimate in its logarithm.
const SLOW: f64 = 0.99;
const STEP: f64 = 0.3;
/// Replies at the beginning whose mean is the usual time.
const FIRST: u32 = 20;
/// Latest replies that tell if a kind queues, and the slow-down that all of them exceed if it does.
const LATEST: usize = 8;
const QUEUED: f32 = 3.0;

/// Index of a kind of request.
pub type Kind = usize;

/// The times of all kinds, by index.
#[derive(Clone, Debug, Default)]
pub(super) struct Kinds(Vec<KindTimes>);

/// The times of one kind, in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct KindTimes {
    /// Usual time without a queue.
    usual: f64,
    /// 99th percentile of all times.
    slow: f64,
    /// Number of replies, at most [`FIRST`].
    replies: u32,
    /// Slow-downs of the latest replies, in turn.
    latest: [f32; LATEST],
    next: usize,
}

impl Kinds {
    /// Adds a reply, and returns its slow-down.
    pub(super) fn push(&mut self, kind: Kind, time: f64) -> f64 {
        if kind >= self.0.len() {
            self.0.resize(kind + 1, KindTimes::default());
        }
        self.0[kind].push(time.max(1e-9))
    }

    /// Slow-down of a failure. A quick one does not show a shorter queue.
    pub(super) fn failed(&self, kind: Kind, time: f64) -> f64 {
        let times = self.0.get(kind).filter(|times| times.replies > 0);
        times.map_or(1.0, |times| (time / times.usual).max(1.0))
    }

    /// True if all latest replies of the kind were slow.
    pub(super) fn queues(&self, kind: Kind) -> bool {
        let times = self.0.get(kind);
        times.is_some_and(|times| times.latest.iter().all(|slow_down| *slow_down > QUEUED))
    }

    /// Multiplies the usual time of a kind.
    pub(super) fn scale(&mut self, kind: Kind, factor: f64) {
        debug_assert!(factor > 0.0, "a factor of {factor}");
        if let Some(times) = self.0.get_mut(kind) {
            times.usual *= factor;
        }
    }

    /// 99th percentile of the kind's times. `None` before the first reply.
    pub(super) fn slow(&self, kind: Kind) -> Option<Span> {
        let times = self.0.get(kind).filter(|times| times.replies > 0)?;
        Some(Span::from_secs_f64(times.slow))
    }
}

impl KindTimes {
    fn push(&mut self, time: f64) -> f64 {
        if self.replies == 0 {
            self.slow = time;
        }
        if self.replies < FIRST {
            self.replies += 1;
            self.usual += (time - self.usual) / f64::from(self.replies);
        }
        // Robbins and Monro 1951: the estimate of a quantile moves with each value.
        let moved = if time > self.slow { SLOW } else { SLOW - 1.0 };
        self.slow *= (STEP * moved).exp();
        let slow_down = time / self.usual;
        self.latest[self.next] = slow_down as f32;
        self.next = (self.next + 1) % LATEST;
        slow_down
    }
}

/// Mean of the fastest three quarters of sorted times.
pub(super) fn usual(sorted: &[f32]) -> f64 {
    let count = ((sorted.len() as f64 * FAST) as usize)
        .max(1)
        .min(sorted.len());
    let fast = &sorted[..count];
    fast.iter().map(|time| f64::from(*time)).sum::<f64>() / count as f64
}
