//! Load controller: how much CPU time optional compression may use.
//!
//! A rule that stops compressing at a busy threshold oscillates, because stopping lowers the measured load at once.
//! This controller first subtracts the cost of optional compression from the measured load. The rest does not depend on
//! the decisions. Two results follow from it:
//!
//! - [`LoadEstimate::allowance`]: the CPU time for optional compression that keeps the total just under the threshold
//! - [`Gate`]: high demand, judged by the load that would result if all optional replies were compressed
//!
//! Each resource with its own busy share needs its own controller. The caller reads clocks and counters, a few times a
//! second and outside the path of requests.

use posthaste_units::{Instant, Ratio, Span};

/// Bounds of high demand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// Busy share above which demand is high, and up to which optional compression may load the server: 80 % in the
    /// papers.
    pub high: Ratio,
    /// Busy share below which demand is no longer high: 70 % by default.
    pub low: Ratio,
    /// Minimum time between two changes: 5 s by default.
    pub dwell: Span,
}

/// Measurements since the last sample. Work is counted by [`CpuTokenBucket`](crate::CpuTokenBucket).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Time of the sample.
    pub at: Instant,
    /// Share of the time since the last sample in which the protected resource ran or waited for a processor, 0 to 1.
    /// Mean over its processors.
    pub busy: f64,
    /// Optional work until now.
    pub work: Work,
}

/// CPU time of optional compression, counted from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Cost if every optional reply had been compressed with its cheapest step.
    pub wanted: Span,
    /// Cost of the optional replies that were compressed. Zero if it does not show in the busy share, as for the load
    /// of another machine.
    pub spent: Span,
}

/// Load estimate until the next sample. Small enough to be copied to every thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadEstimate {
    /// CPU time for optional compression, in seconds per second over all processors.
    pub allowance: f32,
    /// Allowance divided by the cost of compressing every optional reply with its cheapest step. Below 1 not all can be
    /// compressed. Well above 1, more expensive steps are possible.
    pub plenty: f32,
    /// Smoothed busy share, 0 to 1.
    pub busy: f32,
    /// Demand is high.
    pub is_high: bool,
    /// False until something was measured. The other fields are then only defaults.
    pub is_known: bool,
}

/// Load controller: turns samples into a load estimate.
#[derive(Clone, Debug)]
pub struct LoadController {
    threshold: Threshold,
    processors: f64,
    last: Option<Sample>,
    /// At least one sample was used.
    is_known: bool,
    /// Smoothed shares of the processors: available for optional compression, and wanted by it.
    room: f64,
    wanted: f64,
    busy: f64,
    gate: Gate,
}

/// Two states with hysteresis and at most one change per [`Threshold::dwell`].
#[derive(Clone, Debug)]
pub struct Gate {
    threshold: Threshold,
    is_high: bool,
    changed: Option<Instant>,
}

/// Distance between the threshold and the controller's target: a margin for errors of the smoothing.
const MARGIN: f64 = 0.01;

/// Time constant of the exponential smoothing.
const MEMORY: Span = Span::from_secs(1);

/// A sample above this busy share is not smoothed if it lowers the allowance: a queue is building up, and the measured
/// share is too low because it cannot exceed 1.
const ALARM: f64 = 0.97;

/// Minimum time between two samples. Shorter intervals are too noisy, because counters advance in steps.
const SHORTEST: Span = Span::from_millis(20);

impl Default for Threshold {
    fn default() -> Self {
        // Equals the value that is read from a percentage.
        let share = |percent: f64| Ratio::new(percent * 0.01).unwrap_or_default();
        Self {
            high: share(80.0),
            low: share(70.0),
            dwell: Span::from_secs(5),
        }
    }
}

impl LoadEstimate {
    /// Nothing is known yet and no optional compression is allowed. Replaced at the first measurement.
    pub const UNKNOWN: Self = Self {
        allowance: 0.0,
        plenty: 0.0,
        busy: 0.0,
        is_high: false,
        is_known: false,
    };
}

impl LoadController {
    /// Creates a controller for a resource with `processors` processors, at least 0.01.
    pub fn new(threshold: Threshold, processors: f64) -> Self {
        Self {
            threshold,
            processors: processors.max(0.01),
            last: None,
            is_known: false,
            room: 0.0,
            wanted: 0.0,
            busy: 0.0,
            gate: Gate::new(threshold),
        }
    }

    /// Adds a sample and returns the new estimate. The first sample only starts the count. A sample within 20 ms of the
    /// last is ignored.
    pub fn push(&mut self, sample: Sample) -> LoadEstimate {
        let Some(last) = self.last else {
            self.last = Some(sample);
            return self.estimate();
        };
        let passed = sample.at.saturating_since(last.at);
        if passed < SHORTEST {
            return self.estimate();
        }
        let seconds = passed.as_secs_f64();
        let share = |now: Span, then: Span| {
            now.saturating_sub(then).as_secs_f64() / seconds / self.processors
        };
        let busy = if sample.busy.is_finite() {
            sample.busy.clamp(0.0, 1.0)
        } else {
            1.0
        };
        let spent = share(sample.work.spent, last.work.spent).min(busy);
        let wanted = share(sample.work.wanted, last.work.wanted);
        let room = self.threshold.high.get() - MARGIN - (busy - spent);
        // The first measurement has full weight, because there is no earlier one.
        let weight = if std::mem::replace(&mut self.is_known, true) {
            1.0 - (-seconds / MEMORY.as_secs_f64()).exp()
        } else {
            1.0
        };
        let alarmed = busy > ALARM && room < self.room;
        self.room += (room - self.room) * if alarmed { 1.0 } else { weight };
        self.wanted += (wanted - self.wanted) * weight;
        self.busy += (busy - self.busy) * weight;
        self.last = Some(sample);
        let aim = self.threshold.high.get() - MARGIN;
        self.gate.push(sample.at, aim - self.room + self.wanted);
        self.estimate()
    }

    /// The estimate from the samples so far.
    pub fn estimate(&self) -> LoadEstimate {
        let room = self.room.max(0.0);
        debug_assert!(room.is_finite(), "a load of {room}");
        LoadEstimate {
            allowance: (room * self.processors) as f32,
            plenty: (room / self.wanted.max(1e-6)) as f32,
            busy: self.busy as f32,
            is_high: self.gate.is_high(),
            is_known: self.is_known,
        }
    }
}

impl Gate {
    /// Starts with low demand.
    pub const fn new(threshold: Threshold) -> Self {
        Self {
            threshold,
            is_high: false,
            changed: None,
        }
    }

    /// Adds a load, as a share that may exceed 1. Returns true if demand is now high.
    pub fn push(&mut self, now: Instant, load: f64) -> bool {
        let crossed = if self.is_high {
            load < self.threshold.low.get()
        } else {
            load > self.threshold.high.get()
        };
        let rested = |changed: Instant| now.saturating_since(changed) >= self.threshold.dwell;
        if crossed && self.changed.is_none_or(rested) {
            self.is_high = !self.is_high;
            self.changed = Some(now);
        }
        self.is_high
    }

    /// Returns true if demand is high.
    pub const fn is_high(&self) -> bool {
        self.is_high
    }
}
