//! How much compressing the server can afford: from how busy it is, without the answer disturbing the question.
//!
//! A gate that closes when the server is busy sees it less busy at once, opens, and closes again: that is
//! why gates on measured load flap. Here what optional compression costs is taken out of the measured
//! load first. What is left does not depend on the decisions, and two things follow from it:
//! the [`Outlook::allowance`], the processor time that optional compression may take so that everything
//! together stays just under the threshold, and whether demand is high ([`Gate`]), which is asked of the
//! load as it would be if all optional replies were compressed.
//!
//! One controller for each thing that has a busy share of its own. Reading clocks and counters is the
//! caller's, a few times a second and off the path of requests.

use posthaste_units::{Instant, Ratio, Span};

/// When demand is high.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// Above this busy share demand is high, and up to this optional compression may fill the server:
    /// 80 % in the papers.
    pub high: Ratio,
    /// Below this busy share it is no longer high: 70 % by default.
    pub low: Ratio,
    /// Shortest time between two changes: 5 s by default.
    pub dwell: Span,
}

/// What was measured since the last sample. Work is what [`Purse`](crate::Purse) counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// Share of the time since the last sample in which the thing that is protected ran or waited for a
    /// processor, 0 to 1, the mean over its processors.
    pub busy: f64,
    /// Optional work until now.
    pub work: Work,
}

/// Processor time of optional compression, counted from the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// What it would have cost to compress every reply whose client left it open, by its cheapest step.
    pub wanted: Span,
    /// What compressing some of them has cost; zero where that does not show in the busy share, as when
    /// another machine's is watched.
    pub spent: Span,
}

/// What the controller says until the next sample. Small enough to be copied to every thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlook {
    /// Processors' time that optional compression may take: seconds per second, over all processors.
    pub allowance: f32,
    /// The allowance over what compressing every optional reply by its cheapest step would take. Below 1
    /// not all can be compressed; well above it, there is room for dearer steps.
    pub plenty: f32,
    /// Smoothed busy share, 0 to 1.
    pub busy: f32,
    /// Demand is high.
    pub is_high: bool,
    /// Something was measured: the rest is not just what there is before that.
    pub is_known: bool,
}

/// From samples to an outlook.
#[derive(Clone, Debug)]
pub struct Demand {
    threshold: Threshold,
    processors: f64,
    last: Option<Sample>,
    /// Samples that counted were taken.
    is_settled: bool,
    /// Shares of the processors, smoothed: what is left for optional compression, and what it would take.
    room: f64,
    wanted: f64,
    busy: f64,
    gate: Gate,
}

/// Two states with hysteresis, and at most one change in a [`Threshold::dwell`].
#[derive(Clone, Debug)]
pub struct Gate {
    threshold: Threshold,
    is_high: bool,
    changed: Option<Instant>,
}

/// How far below the threshold the controller aims: room for what smoothing lets through.
const MARGIN: f64 = 0.01;

/// Memory of the smoothing, as the time constant of an exponential.
const MEMORY: Span = Span::from_secs(1);

/// A sample above this counts whole where it lowers the allowance: a queue is building up, and the
/// measured share says less than the truth because it cannot pass 1.
const ALARM: f64 = 0.97;

/// Samples that come sooner are too noisy to be used: counters advance in steps.
const SHORTEST: Span = Span::from_millis(20);

impl Default for Threshold {
    fn default() -> Self {
        // As a share that is written in per cent is read.
        let share = |percent: f64| Ratio::new(percent * 0.01).unwrap_or_default();
        Self {
            high: share(80.0),
            low: share(70.0),
            dwell: Span::from_secs(5),
        }
    }
}

impl Outlook {
    /// Nothing is known yet: no optional compression. The first sample ends it.
    pub const UNKNOWN: Self = Self {
        allowance: 0.0,
        plenty: 0.0,
        busy: 0.0,
        is_high: false,
        is_known: false,
    };
}

impl Demand {
    /// A controller of something that has so many processors, at least a little of one.
    pub fn new(threshold: Threshold, processors: f64) -> Self {
        Self {
            threshold,
            processors: processors.max(0.01),
            last: None,
            is_settled: false,
            room: 0.0,
            wanted: 0.0,
            busy: 0.0,
            gate: Gate::new(threshold),
        }
    }

    /// Takes a sample. The first begins the count; one within 20 ms of the last is passed over.
    pub fn push(&mut self, sample: Sample) -> Outlook {
        let Some(last) = self.last else {
            self.last = Some(sample);
            return self.outlook();
        };
        let passed = sample.at.since(last.at);
        if passed < SHORTEST {
            return self.outlook();
        }
        let seconds = passed.as_secs_f64();
        let share = |now: Span, then: Span| {
            now.saturating_sub(then).as_secs_f64() / seconds / self.processors
        };
        let busy = match sample.busy.is_finite() {
            true => sample.busy.clamp(0.0, 1.0),
            false => 1.0,
        };
        let spent = share(sample.work.spent, last.work.spent).min(busy);
        let wanted = share(sample.work.wanted, last.work.wanted);
        let room = self.threshold.high.get() - MARGIN - (busy - spent);
        // The first counts whole: there is nothing yet that it could be weighed against.
        let weight = match std::mem::replace(&mut self.is_settled, true) {
            true => 1.0 - (-seconds / MEMORY.as_secs_f64()).exp(),
            false => 1.0,
        };
        let alarmed = busy > ALARM && room < self.room;
        self.room += (room - self.room) * if alarmed { 1.0 } else { weight };
        self.wanted += (wanted - self.wanted) * weight;
        self.busy += (busy - self.busy) * weight;
        self.last = Some(sample);
        let aim = self.threshold.high.get() - MARGIN;
        self.gate.push(sample.at, aim - self.room + self.wanted);
        self.outlook()
    }

    /// What follows from the samples so far.
    pub fn outlook(&self) -> Outlook {
        let room = self.room.max(0.0);
        Outlook {
            allowance: (room * self.processors) as f32,
            plenty: (room / self.wanted.max(1e-6)) as f32,
            busy: self.busy as f32,
            is_high: self.gate.is_high(),
            is_known: self.is_settled,
        }
    }
}

impl Gate {
    /// Demand begins low.
    pub const fn new(threshold: Threshold) -> Self {
        Self {
            threshold,
            is_high: false,
            changed: None,
        }
    }

    /// Takes a load, as a share that may pass 1; whether demand is high from now on.
    pub fn push(&mut self, now: Instant, load: f64) -> bool {
        let crossed = match self.is_high {
            true => load < self.threshold.low.get(),
            false => load > self.threshold.high.get(),
        };
        let rested = |changed: Instant| now.since(changed) >= self.threshold.dwell;
        if crossed && self.changed.is_none_or(rested) {
            self.is_high = !self.is_high;
            self.changed = Some(now);
        }
        self.is_high
    }

    /// Whether demand is high.
    pub const fn is_high(&self) -> bool {
        self.is_high
    }
}
