//! `--find` in virtual time: searches against the model of services, whose truth is known.

use posthaste_evaluation::find::{
    BoundedFigure, Capacity, Effort, Evidence, Objective, Proposal, Search,
};
use posthaste_services::truth::{ArrivalProcess, lasting};
use posthaste_services::{ServiceModel, ServicePreset, ServiceReply};
use posthaste_stats::Recorder;
use posthaste_units::{Instant, Seed, Span, Stream};
use rand_distr::{Distribution as _, Exp1};

/// Bounds after which a client gives up.
const TIMEOUT: f64 = 10.0;
/// Shortest time for which a truth is simulated, and the number of runs of that time.
const SHORTEST: f64 = 5.0;
const RUNS: u32 = 50;

/// The objective of a search for a preset, with its bound on the 99th percentile.
pub(crate) const fn objective(preset: &ServicePreset) -> Objective {
    Objective {
        figure: BoundedFigure::Response,
        quantile: Some(0.99),
        bound: preset.p99,
        tolerance: 0.01,
    }
}

/// A service and its clients in virtual time.
pub(crate) struct World {
    service: ServiceModel,
    /// The service before the last trial at each rate, with the time.
    before: Vec<(f64, ServiceModel, f64)>,
    arrivals: Stream,
    process: ArrivalProcess,
    now: f64,
    timeout: f64,
}

impl World {
    pub(crate) fn new(preset: &ServicePreset, process: ArrivalProcess, seed: Seed) -> Self {
        Self {
            service: preset.service(seed),
            before: Vec::new(),
            arrivals: seed.stream("arrivals"),
            process,
            now: 0.0,
            timeout: TIMEOUT * preset.p99.as_secs_f64(),
        }
    }

    /// Searches for `seconds`. Calls `report` after every trial.
    pub(crate) fn search(
        &mut self,
        objective: Objective,
        seconds: f64,
        report: &mut dyn FnMut(f64, &Proposal, &Evidence),
    ) -> Capacity {
        let effort = Effort {
            budget: Span::from_secs_f64(seconds),
            ..Effort::default()
        };
        let mut search = Search::new(objective, effort);
        while let Some(proposal) = search.propose() {
            self.before.retain(|(rate, ..)| *rate != proposal.rate);
            let before = (proposal.rate, self.service.clone(), self.now);
            self.before.push(before);
            let evidence = self.trial(&proposal, &objective);
            report(self.now, &proposal, &evidence);
            search.record(proposal, evidence);
        }
        search.answer(String::new())
    }

    /// Seconds that have passed.
    pub(crate) const fn now(&self) -> f64 {
        self.now
    }

    /// The highest rate that holds for the time that the answer looked at its rate, from the state before its last trial
    /// at that rate; without one, from now on. `None` if no rate does.
    pub(crate) fn truth(&self, preset: &ServicePreset, answer: &Capacity) -> Option<f64> {
        let is_held = |(rate, ..): &&(f64, ServiceModel, f64)| Some(*rate) == answer.held_at_per_s;
        let (service, now) = match self.before.iter().find(is_held) {
            Some((_, service, now)) => (service, *now),
            None => (&self.service, self.now),
        };
        let now = Instant::ORIGIN + Span::from_secs_f64(now);
        let time = Span::from_secs_f64(answer.looked_s.max(SHORTEST));
        let truth = lasting(service, now, preset.bound(), self.process, time, RUNS);
        truth.rate().map(|rate| rate.as_per_second())
    }

    fn gap(&mut self) -> f64 {
        if self.process == ArrivalProcess::Poisson {
            Exp1.sample(&mut self.arrivals)
        } else {
            1.0
        }
    }

    fn trial(&mut self, proposal: &Proposal, objective: &Objective) -> Evidence {
        let begin = self.now;
        let counted = begin + proposal.settle.as_secs_f64();
        let end = counted + proposal.length.as_secs_f64();
        let (mut all, mut good) = (Recorder::new(), Recorder::new());
        let (mut at, mut last, mut completed) = (begin, end, 0u64);
        loop {
            at += self.gap() / proposal.rate;
            if at >= end {
                break;
            }
            let (response, is_good) = self.response(at);
            let left = at + response.min(self.timeout);
            last = last.max(left);
            completed += u64::from(response <= self.timeout && left >= counted && left < end);
            if at < counted {
                continue;
            }
            let due = Span::from_secs_f64(at - counted);
            if response > self.timeout {
                all.record_censored(due, Some(Span::from_secs_f64(self.timeout)));
                continue;
            }
            let response = Span::from_secs_f64(response);
            all.record(due, response);
            if is_good {
                good.record(due, response);
            }
        }
        self.now = last;
        let mut evidence = Evidence::of_responses(objective, &all, &good);
        evidence.throughput = completed as f64 / (end - counted);
        evidence.elapsed = Span::from_secs_f64(last - begin);
        evidence
    }

    /// The response time in seconds of a request at `at`, and whether the reply is a success.
    fn response(&mut self, at: f64) -> (f64, bool) {
        let reply = self
            .service
            .arrive(Instant::ORIGIN + Span::from_secs_f64(at));
        match reply {
            ServiceReply::Answered { at: left, status } => {
                let response = left.since(Instant::ORIGIN).as_secs_f64() - at;
                (response.max(0.0), status < 400)
            }
            ServiceReply::Never => (f64::INFINITY, false),
        }
    }
}
