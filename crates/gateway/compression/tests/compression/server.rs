//! A server in virtual time: one processor, a queue, and optional compression decided by this crate's load controller,
//! CPU token bucket and policy.
//!
//! It measures itself as a gateway does: a sample every 100 to 250 ms, with an error, takes effect one sample later.
//! The results can be compared with queueing theory.

use posthaste_compression::{
    Accept, CostModel, CpuTokenBucket, Form, LoadController, LoadEstimate, Media, Menu, Origin,
    Policy, Preference, Question, Reason, Reply, Rules, Sample, Step, Steps, Threshold, Wish,
};
use posthaste_units::{Instant, Seed, Size, Span, Stream};
use rand_distr::{Distribution as _, Exp1, Normal};

/// Configuration of a simulation.
#[derive(Clone, Debug)]
pub(crate) struct SimulationConfig {
    pub(crate) policy: Policy,
    /// CPU time of a reply without compression.
    pub(crate) plain: Span,
    /// Factor between the real CPU time of compression and the initial cost model.
    pub(crate) slowness: f64,
    pub(crate) length: Size,
    /// Shares of clients that ask for compression and that refuse it. The others leave it open.
    pub(crate) asking: f64,
    pub(crate) refusing: f64,
    /// Standard error of a sample of the busy share.
    pub(crate) noise: f64,
    pub(crate) seed: Seed,
}

impl Default for SimulationConfig {
    fn default() -> Self {
        Self {
            policy: Policy::Threshold,
            plain: Span::from_micros(200),
            slowness: 10.0,
            length: Size::from_bytes(16_169),
            asking: 0.0,
            refusing: 0.0,
            noise: 0.02,
            seed: Seed(1),
        }
    }
}

/// Observations over an interval of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretch {
    pub(crate) replies: usize,
    pub(crate) optional: usize,
    pub(crate) optional_compressed: usize,
    pub(crate) demanded: usize,
    pub(crate) demanded_compressed: usize,
    pub(crate) refused_compressed: usize,
    pub(crate) busy: Span,
    pub(crate) length: Span,
    /// Times in the system, sorted.
    pub(crate) times: Vec<Span>,
    pub(crate) bytes_out: u64,
    pub(crate) changes: usize,
}

impl Stretch {
    /// Share of optional replies that were compressed.
    pub(crate) fn share(&self) -> f64 {
        self.optional_compressed as f64 / self.optional.max(1) as f64
    }

    pub(crate) fn busy(&self) -> f64 {
        self.busy.as_secs_f64() / self.length.as_secs_f64()
    }

    pub(crate) fn p99(&self) -> Span {
        self.times[(self.times.len() * 99 / 100).min(self.times.len() - 1)]
    }
}

/// The running server.
pub(crate) struct SimulatedServer {
    world: SimulationConfig,
    draws: Stream,
    menu: Menu,
    rules: Rules,
    controller: LoadController,
    estimate: LoadEstimate,
    coming: LoadEstimate,
    bucket: CpuTokenBucket,
    costs: CostModel,
    /// Time at which the processor has finished all accepted work.
    free: Instant,
    /// End of its last idle time.
    paused: Instant,
    /// Time up to which busy time has been counted.
    clock: Instant,
    sampled: Instant,
    next_sample: Instant,
    busy_since: Span,
    arrival: f64,
    seen: Stretch,
}

impl SimulatedServer {
    pub(crate) fn new(world: SimulationConfig) -> Self {
        let mut server = Self {
            draws: world.seed.stream("server"),
            menu: Menu::default(),
            rules: Rules::default(),
            controller: LoadController::new(Threshold::default(), 1.0),
            estimate: LoadEstimate::UNKNOWN,
            coming: LoadEstimate::UNKNOWN,
            bucket: CpuTokenBucket::new(1),
            costs: CostModel::default(),
            free: Instant::default(),
            paused: Instant::default(),
            clock: Instant::default(),
            sampled: Instant::default(),
            next_sample: Instant::default(),
            busy_since: Span::ZERO,
            arrival: 0.0,
            seen: Stretch::default(),
            world,
        };
        server.sample();
        server
    }

    /// CPU time of compressing one reply with the menu's first step.
    pub(crate) fn compressing(&self) -> Span {
        let assumed = CostModel::default()
            .estimate(Step::Zstd1, self.world.length)
            .cpu;
        Span::from_secs_f64(assumed.as_secs_f64() * self.world.slowness)
    }

    /// Requests per second at which compressing every reply uses the whole processor.
    pub(crate) fn capacity(&self) -> f64 {
        1.0 / (self.world.plain + self.compressing()).as_secs_f64()
    }

    /// Seconds of CPU time of an uncompressed reply.
    pub(crate) fn plain(&self) -> f64 {
        self.world.plain.as_secs_f64()
    }

    /// The busy share at `rate` without optional compression.
    pub(crate) fn unavoidable(&self, rate: f64) -> f64 {
        rate * (self.plain() + self.world.asking * self.compressing().as_secs_f64())
    }

    /// The share of optional replies that fits under 80 %.
    pub(crate) fn fitting(&self, rate: f64) -> f64 {
        let optional = 1.0 - self.world.asking - self.world.refusing;
        let all = rate * self.compressing().as_secs_f64() * optional;
        ((0.8 - self.unavoidable(rate)) / all).clamp(0.0, 1.0)
    }

    /// Serves clients that send the next request after each reply, for `length`. Returns the observations.
    pub(crate) fn saturate(&mut self, length: Span) -> Stretch {
        self.seen = Stretch::default();
        let end = self.free + length;
        while self.free < end {
            self.serve(self.free);
        }
        self.arrival = self.free.as_nanos() as f64 / 1e9;
        let mut seen = std::mem::take(&mut self.seen);
        seen.length = length;
        seen
    }

    /// Serves Poisson arrivals at `rate` per second for `length`. Returns the observations of that time.
    pub(crate) fn run(&mut self, rate: f64, length: Span) -> Stretch {
        self.seen = Stretch::default();
        let (begin, end) = (self.arrival, self.arrival + length.as_secs_f64());
        loop {
            let gap: f64 = Exp1.sample(&mut self.draws);
            self.arrival += gap / rate;
            if self.arrival > end {
                self.arrival = end;
                break;
            }
            self.serve(Instant::from_nanos((self.arrival * 1e9) as u64));
        }
        let mut seen = std::mem::take(&mut self.seen);
        seen.length = Span::from_secs_f64(end - begin);
        seen.times.sort_unstable();
        seen
    }

    fn serve(&mut self, arrival: Instant) {
        let start = arrival.max(self.free);
        if start > self.free {
            self.paused = start;
        }
        self.pass(start, false);
        let decided = start + self.world.plain;
        self.pass(decided, true);
        let wish = self.wish();
        let question = Question {
            now: decided,
            preference: Preference {
                wish,
                origin: Origin::Prefer,
            },
            form: Form::Content,
            accept: Accept::read([&b"gzip, br, zstd"[..]]),
            reply: Reply {
                to_head: false,
                status: 200,
                length: Some(self.world.length),
                media: Media::Text,
                is_coded: false,
                no_transform: false,
                is_range: false,
                is_sealed: false,
            },
            rules: &self.rules,
            menu: &self.menu,
            at_hand: Steps::default(),
            estimate: self.estimate,
            backlog: decided.saturating_since(self.paused),
            line: None,
            costs: &self.costs,
        };
        let decision = self.world.policy.decide(&question, &mut self.bucket);
        let mut took = self.world.plain;
        self.free = decided;
        let mut out = self.world.length;
        if let Some(step) = decision.step {
            let estimate = CostModel::default().estimate(step, self.world.length);
            let spread: f64 = Normal::new(1.0, 0.1).unwrap().sample(&mut self.draws);
            let factor = self.world.slowness * spread.clamp(0.5, 2.0);
            let time = Span::from_secs_f64(estimate.cpu.as_secs_f64() * factor);
            out = estimate.out;
            self.free = decided + time;
            self.pass(self.free, true);
            took += time;
            self.costs.observe(step, self.world.length, out, time);
            if let Some(mut reservation) = decision.reservation {
                self.bucket.spend(&mut reservation, time);
                self.bucket.settle(reservation);
            }
        }
        self.note(wish, decision.reason, decision.step.is_some());
        self.seen.busy += took;
        self.seen.bytes_out += out.as_bytes();
        self.seen.times.push(self.free.saturating_since(arrival));
    }

    fn wish(&mut self) -> Wish {
        let draw: f64 = rand_distr::StandardUniform.sample(&mut self.draws);
        if draw < self.world.asking {
            Wish::Always
        } else if draw < self.world.asking + self.world.refusing {
            Wish::Never
        } else {
            Wish::Unstated
        }
    }

    fn note(&mut self, wish: Wish, reason: Reason, compressed: bool) {
        let seen = &mut self.seen;
        seen.replies += 1;
        match wish {
            Wish::Always => {
                seen.demanded += 1;
                seen.demanded_compressed += usize::from(compressed);
            }
            Wish::Never => seen.refused_compressed += usize::from(compressed),
            _ => {
                assert_ne!(reason, Reason::Asked);
                seen.optional += 1;
                seen.optional_compressed += usize::from(compressed);
            }
        }
    }

    /// Advances time to `until`, with the processor busy or idle, and takes the samples that are due.
    fn pass(&mut self, until: Instant, busy: bool) {
        while self.next_sample <= until {
            let stretch = self.next_sample.saturating_since(self.clock);
            if busy {
                self.busy_since += stretch;
            }
            self.clock = self.next_sample;
            self.sample();
        }
        if busy {
            self.busy_since += until.saturating_since(self.clock);
        }
        self.clock = until;
    }

    fn sample(&mut self) {
        let now = self.next_sample;
        let length = now.saturating_since(self.sampled).as_secs_f64().max(1e-9);
        let error: f64 = Normal::new(0.0, self.world.noise)
            .unwrap()
            .sample(&mut self.draws);
        let busy = (self.busy_since.as_secs_f64() / length + error).clamp(0.0, 1.0);
        self.estimate = self.coming;
        self.coming = self.controller.push(Sample {
            at: now,
            busy,
            work: self.bucket.work(),
        });
        self.seen.changes += usize::from(self.coming.is_high != self.estimate.is_high);
        self.busy_since = Span::ZERO;
        self.sampled = now;
        let draw: f64 = rand_distr::StandardUniform.sample(&mut self.draws);
        self.next_sample = now + Span::from_secs_f64(0.1 + 0.15 * draw);
    }
}
