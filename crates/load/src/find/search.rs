//! The search as a state machine: it proposes a trial, receives its evidence, and finally gives an answer.
//!
//! It has no clock, socket or thread. The duration of a trial is part of its evidence.

use posthaste_units::Span;

use super::answer::{self, Capacity};
use super::estimate::{fit, is_missed, is_shedding, saturation};
use super::evidence::Evidence;
use super::objective::{Effort, Objective};
use super::trial::{CompletedTrial, Proposal, Purpose};

/// Requests in a trial of light load.
const LIGHT: f64 = 10.0;
/// Limits of recovery. The service has recovered if the median of a light load is at most `RECOVERED` times the lowest
/// so far. At the start: if it is not below `DRAINING` times the previous one, as it is while a backlog drains.
const RECOVERED: f64 = 2.0;
const DRAINING: f64 = 0.7;
/// Share of the budget spent on waiting for recovery.
const PATIENCE: f64 = 0.2;
/// Size of a doubling trial: requests, and limits of its length in seconds. It lasts at least `DOUBLING_BOUNDS` bounds:
/// at twice its capacity a server needs two bounds until a request exceeds one, and more near the capacity.
const DOUBLING: (f64, f64, f64) = (40.0, 0.25, 1.0);
const DOUBLING_BOUNDS: f64 = 8.0;
/// Length in bounds of doubling trials after the first failure: long enough to see the reply rate of a saturated
/// server, too short for a backlog that makes clients give up.
const SATURATING_BOUNDS: f64 = 10.0;
/// Maximum number of doublings after the first failure, until the server is saturated.
const BEYOND: usize = 2;
/// Maximum number of trials that narrow the bracket, and the share of the budget for each.
const NARROWINGS: usize = 4;
const NARROWING: f64 = 0.03;
/// The bracket begins at the first failed rate divided by `BRACKET`, because doubling trials are too short for the rate
/// below it to count. It is narrow enough at a ratio of `NARROW` between its ends.
const BRACKET: f64 = 4.0;
const NARROW: f64 = 1.15;
/// A trial settles for this many bounds, at most this share of its time. A queue whose 99th percentile is at the bound
/// b has a relaxation time of 4 b / ln 100 / (1 - utilisation), by reflected Brownian motion: 20 bounds are 4 of them
/// at a utilisation of 0.8.
const SETTLE: f64 = 20.0;
const SETTLE_SHARE: f64 = 0.25;
/// Requests that a measuring trial expects on the rarer side of its quantile, if time permits.
const RARE: f64 = 30.0;
/// Minimum and maximum number of measuring trials.
const MEASURING: (f64, f64) = (5.0, 8.0);
/// Distance of measuring trials above and below the bound, in the logarithm of the share. The curve's slope needs a
/// distance, and the curve is straight only near the bound. A mean uses a third of it.
const ABOVE: f64 = 1.0;
const BELOW: f64 = 1.2;
/// Share of the remaining time for the confirmation.
const CONFIRMING: f64 = 0.25;
/// Trials shorter than this share of the budget are not made.
const SHORTEST: f64 = 0.01;
/// Lengths of a stream for which a trial of streams settles, and that it needs besides its own time: to settle, and
/// until its last stream ends.
const STREAM_SETTLE: f64 = 1.1;
const STREAM_TIME: f64 = 2.1;
/// Minimum share of the time of a measuring trial that is left for counting streams.
const STREAM_SHARE: f64 = 0.25;
/// Number of late trials at a rate after which the rate counts as the generator's limit.
const LATE_ATTEMPTS: usize = 2;

#[derive(Clone, Copy, Debug)]
enum SearchPhase {
    Double {
        rate: f64,
        failed: Option<f64>,
        beyond: usize,
    },
    Narrow {
        low: f64,
        high: f64,
        left: usize,
    },
    Measure,
    Confirm,
    Done,
}

/// A search in progress.
///
/// Call [`Search::propose`], make that trial, pass its evidence to [`Search::record`], and repeat until there is no
/// proposal. Then call [`Search::answer`].
#[derive(Debug)]
pub struct Search {
    objective: Objective,
    effort: Effort,
    phase: SearchPhase,
    trials: Vec<CompletedTrial>,
    spent: f64,
    /// Rate around which trials are made, between a rate that seemed to hold and one that failed.
    centre: f64,
    bracket: [f64; 2],
    measured: usize,
    planned: usize,
    each: f64,
    /// Median of the light load of the idle service.
    floor: f64,
    /// Length of a stream under light load in seconds; zero unless the objective is about events.
    stream: f64,
    recovering: bool,
    waited: f64,
    late: usize,
    /// The lowest rate that the generator could not send.
    limit: Option<f64>,
    hopeless: bool,
}

impl Search {
    /// Creates a search for the highest rate at which `objective` holds.
    pub fn new(objective: Objective, effort: Effort) -> Self {
        assert!(
            !objective.bound.is_zero(),
            "an objective has a bound above zero"
        );
        let rate = effort.start.as_per_second();
        Self {
            objective,
            effort,
            phase: SearchPhase::Double {
                rate,
                failed: None,
                beyond: 0,
            },
            trials: Vec::new(),
            spent: 0.0,
            centre: rate,
            bracket: [rate, f64::INFINITY],
            measured: 0,
            planned: 0,
            each: 0.0,
            floor: f64::INFINITY,
            stream: 0.0,
            recovering: true,
            waited: 0.0,
            late: 0,
            limit: None,
            hopeless: false,
        }
    }

    /// Returns the next trial. `None` when the search is over.
    pub fn propose(&mut self) -> Option<Proposal> {
        let budget = self.effort.budget.as_secs_f64();
        if self.left() < SHORTEST * budget {
            self.phase = SearchPhase::Done;
        }
        let bound = self.objective.bound.as_secs_f64();
        if self.recovering && !matches!(self.phase, SearchPhase::Done) {
            let rate = self.effort.start.as_per_second();
            let length = (LIGHT / rate).min(self.left());
            return Some(proposal(Purpose::Recover, rate, 0.0, length));
        }
        match self.phase {
            SearchPhase::Double { rate, failed, .. } => {
                let (requests, shortest, longest) = DOUBLING;
                let (shortest, bounds) = match failed {
                    Some(_) => (0.0, SATURATING_BOUNDS),
                    None => (shortest, DOUBLING_BOUNDS),
                };
                let slow = (bounds * bound).min(budget / 20.0);
                let length = (requests / rate).clamp(shortest, longest).max(slow);
                let length = length.min(self.left());
                Some(self.settled(Purpose::Locate, rate, 0.0, length))
            }
            SearchPhase::Narrow { low, high, .. } => {
                let time = (NARROWING * budget).min(self.left());
                let settle = (SETTLE * bound).min(SETTLE_SHARE * time);
                let rate = self.between(low, high);
                Some(self.settled(Purpose::Locate, rate, settle, time - settle))
            }
            SearchPhase::Measure => {
                if self.measured == 0 {
                    self.share_out();
                }
                Some(self.long(Purpose::Measure, self.around(), self.each.min(self.left())))
            }
            SearchPhase::Confirm => {
                let rate = self.estimate();
                Some(self.long(Purpose::Confirm, rate, self.left()))
            }
            SearchPhase::Done => None,
        }
    }

    /// Applies the evidence of a trial.
    pub fn record(&mut self, proposal: Proposal, evidence: Evidence) {
        debug_assert!(
            evidence.beyond <= evidence.times && evidence.failed <= evidence.requests,
            "more requests or times are bad than there were"
        );
        self.spent += evidence.elapsed.as_secs_f64();
        let made = CompletedTrial { proposal, evidence };
        if proposal.purpose == Purpose::Recover {
            self.record_light(made);
            return;
        }
        // A server that still works on requests given up by clients is not idle yet.
        self.recovering = made.evidence.unanswered > 0 && self.floor.is_finite();
        let fails = self.fails(&made);
        let late = made.evidence.late && fails;
        let over = is_missed(&self.objective, &made.evidence);
        let saturated = made.is_saturated();
        let start = self.effort.start.as_per_second();
        self.trials.push(made);
        if late {
            self.record_late(proposal.rate);
            return;
        }
        self.late = 0;
        match self.phase {
            SearchPhase::Double {
                rate,
                failed,
                beyond,
            } => {
                self.hopeless |= fails && rate <= start;
                let first = failed.is_none();
                let failed = failed.or(fails.then_some(rate));
                self.phase = match failed {
                    _ if self.hopeless => SearchPhase::Done,
                    Some(high) if beyond >= BEYOND || saturated || !first && !fails => {
                        self.narrow((high / BRACKET).max(start), high, NARROWINGS)
                    }
                    _ => SearchPhase::Double {
                        rate: rate * 2.0,
                        failed,
                        beyond: beyond + usize::from(failed.is_some()),
                    },
                };
            }
            SearchPhase::Narrow { low, high, left } => {
                let (low, high) = match over {
                    true => (low, proposal.rate),
                    false => (proposal.rate, high),
                };
                self.phase = self.narrow(low, high, left - 1);
            }
            SearchPhase::Measure => {
                self.bracket = self.bracket_after(proposal.rate, over);
                let [low, high] = self.bracket;
                debug_assert!(
                    low < high || self.limit.is_some(),
                    "the bracket {low} to {high} is out of order"
                );
                self.measured += 1;
                if self.measured >= self.planned {
                    self.phase = SearchPhase::Confirm;
                }
            }
            SearchPhase::Confirm | SearchPhase::Done => self.phase = SearchPhase::Done,
        }
    }

    /// Returns the answer from the trials so far.
    pub fn answer(&self, objective: String) -> Capacity {
        answer::conclude(
            objective,
            &self.objective,
            &self.effort,
            &self.trials,
            (self.limit, !self.is_unrecovered()),
        )
    }

    /// Returns the trial that failed at the lowest rate, if one did. There is then no capacity to find.
    pub fn hopeless(&self) -> Option<&CompletedTrial> {
        self.trials.last().filter(|_| self.hopeless)
    }

    /// True if the service did not return to its response times under light load in the time limit.
    pub fn is_unrecovered(&self) -> bool {
        self.waited >= PATIENCE * self.effort.budget.as_secs_f64()
    }

    fn left(&self) -> f64 {
        self.effort.budget.as_secs_f64() - self.spent
    }

    fn record_light(&mut self, made: CompletedTrial) {
        let median = made.evidence.median;
        let before = self.trials.last().map(|made| made.evidence.median);
        let is_first = self
            .trials
            .iter()
            .all(|made| made.proposal.purpose == Purpose::Recover);
        let recovered = match (is_first, before) {
            (true, None) => false,
            (true, Some(before)) => median.is_finite() && median >= DRAINING * before,
            (false, _) => median <= RECOVERED * self.floor,
        };
        self.waited += made.evidence.elapsed.as_secs_f64();
        self.floor = self.floor.min(median);
        if made.evidence.stream > 0.0 {
            self.stream = match self.stream > 0.0 {
                true => self.stream.min(made.evidence.stream),
                false => made.evidence.stream,
            };
        }
        self.recovering = !recovered && !self.is_unrecovered();
        self.trials.push(made);
    }

    /// Handles a trial spoilt by the generator: repeats it, or continues at a lower rate.
    fn record_late(&mut self, rate: f64) {
        self.late += 1;
        if self.late < LATE_ATTEMPTS {
            return;
        }
        self.late = 0;
        let start = self.effort.start.as_per_second();
        self.limit = Some(self.limit.map_or(rate, |limit| limit.min(rate)));
        self.phase = match self.phase {
            SearchPhase::Double { rate, failed, .. } => {
                let high = failed.unwrap_or(rate);
                self.narrow((high / BRACKET).max(start), high, NARROWINGS)
            }
            SearchPhase::Narrow { low, left, .. } => self.narrow(low, rate, left - 1),
            SearchPhase::Measure => {
                self.measured += 1;
                self.bracket[1] = self.bracket[1].min(rate);
                match self.measured >= self.planned {
                    true => SearchPhase::Confirm,
                    false => SearchPhase::Measure,
                }
            }
            SearchPhase::Confirm | SearchPhase::Done => SearchPhase::Done,
        };
    }

    fn narrow(&mut self, low: f64, high: f64, left: usize) -> SearchPhase {
        debug_assert!(
            0.0 < low && low <= high && high.is_finite(),
            "the bracket {low} to {high} is out of order"
        );
        self.bracket = [low, high];
        self.centre = self.between(low, high);
        if left > 0 && high / low > NARROW {
            return SearchPhase::Narrow { low, high, left };
        }
        // If the generator ends the search, there is no curve to measure, only a rate to show.
        match self.limit.is_some_and(|limit| high >= limit) {
            true => {
                self.centre = low;
                SearchPhase::Confirm
            }
            false => SearchPhase::Measure,
        }
    }

    /// Returns the bracket after a measuring trial. The trial overrules the short trials that made the bracket. If a
    /// rate holds that seemed to fail, the next failed rate above it is the new end, and the other way round.
    fn bracket_after(&self, rate: f64, over: bool) -> [f64; 2] {
        let [low, high] = self.bracket;
        let located = self
            .trials
            .iter()
            .filter(|made| made.proposal.purpose == Purpose::Locate);
        let rates = |over: bool| {
            let is_over =
                move |made: &&CompletedTrial| is_missed(&self.objective, &made.evidence) == over;
            located
                .clone()
                .filter(is_over)
                .map(|made| made.proposal.rate)
        };
        match over {
            true if rate > low => [low, high.min(rate)],
            true => {
                let below = rates(false).filter(|held| *held < rate);
                [below.fold(rate / BRACKET, f64::max), rate]
            }
            false if rate < high => [low.max(rate), high],
            false => {
                let above = rates(true).filter(|failed| *failed > rate);
                [rate, above.fold(rate * BRACKET, f64::min)]
            }
        }
    }

    /// Divides the remaining time into measuring trials and the confirmation.
    fn share_out(&mut self) {
        let time = self.left() * (1.0 - CONFIRMING);
        let allowed = self.objective.allowed();
        let rare = allowed.min(1.0 - allowed).max(1e-4);
        let (fewest, most) = MEASURING;
        let wanted = RARE / rare / self.centre;
        self.each = wanted.max(time / most).min(time / fewest);
        self.planned = (time / self.each).round() as usize;
        debug_assert!(self.planned > 0, "no measuring trial is planned");
    }

    fn long(&self, purpose: Purpose, rate: f64, time: f64) -> Proposal {
        let time = (time - STREAM_TIME * self.stream).max(STREAM_SHARE * time);
        let settle = (SETTLE * self.objective.bound.as_secs_f64()).min(SETTLE_SHARE * time);
        self.settled(purpose, rate, settle, time - settle)
    }

    /// Returns a trial that also settles for the length of a stream: before that, fewer streams are open and fewer end
    /// than at this rate.
    fn settled(&self, purpose: Purpose, rate: f64, settle: f64, length: f64) -> Proposal {
        proposal(purpose, rate, settle + STREAM_SETTLE * self.stream, length)
    }

    /// Returns a rate in the bracket near which the objective's statistic may reach its bound.
    ///
    /// The inverse of a queue's response time falls linearly with the rate, which is accurate enough here.
    fn between(&self, low: f64, high: f64) -> f64 {
        let spare = |rate: f64| {
            let mut made = self.trials.iter().rev();
            let made = made.find(|made| (made.proposal.rate / rate - 1.0).abs() < 1e-9);
            made.map_or(0.0, |made| 1.0 - 1.0 / made.evidence.excess)
        };
        let (below, above) = (spare(low), spare(high));
        let share = match below < 0.0 && above > 0.0 {
            true => below / (below - above),
            false => 0.5,
        };
        low * (high / low).powf(share.clamp(0.25, 0.75))
    }

    /// True if the response time decides, by a law that a curve can follow.
    fn has_curve(&self) -> bool {
        self.objective.law().is_some() && !is_shedding(&self.objective, &self.trials)
    }

    /// Returns the current estimate of the capacity.
    fn estimate(&self) -> f64 {
        let [low, high] = self.bracket;
        if !self.has_curve() || self.limit.is_some() {
            return low;
        }
        let fitted = fit(&self.objective, &self.trials).map(|fit| fit.rate);
        fitted
            .unwrap_or(self.centre)
            .clamp(0.7 * low, 1.1 * high.max(low))
    }

    /// Returns the next rate for a measurement.
    fn around(&self) -> f64 {
        let [low, high] = self.bracket;
        if !self.has_curve() {
            // Every other trial repeats the end at which a short trial failed.
            return match self.measured % 2 {
                0 if high.is_finite() => high,
                _ => (low * high).sqrt(),
            };
        }
        let end = match self.objective.law() {
            Some(posthaste_stats::BoundedStatistic::Share { allowed }) => -allowed.ln(),
            _ => 1.0,
        };
        let saturation = saturation(&self.trials).map(|(rate, _)| rate);
        let (rate, slope) = match fit(&self.objective, &self.trials) {
            Some(fit) => (fit.rate, fit.slope),
            None => {
                let spare = saturation.map_or(0.2 * self.centre, |saturation| {
                    (saturation - self.centre).max(0.05 * saturation)
                });
                (self.centre, end / spare)
            }
        };
        let offset = match self.measured {
            0 => 0.0,
            odd if odd % 2 == 1 => ABOVE,
            _ => -BELOW,
        };
        let scale = if self.objective.quantile.is_some() {
            1.0
        } else {
            1.0 / 3.0
        };
        let rate = (rate + scale * offset / slope).clamp(0.8 * rate, 1.25 * rate);
        let top = saturation.map_or(1.1 * self.centre.max(high), |saturation| 0.96 * saturation);
        let top = top.min(1.4 * self.centre);
        // A saturation far below the bracket overrules the bracket, which was found by short trials.
        rate.max(0.7 * self.centre).min(top)
    }

    /// True if a trial fails beyond the scatter of a short trial.
    fn fails(&self, made: &CompletedTrial) -> bool {
        let evidence = &made.evidence;
        // Scatter of dependent requests: five count as one.
        let beyond = |share: f64, allowed: f64, count: u64| {
            let count = count.max(1) as f64;
            share > allowed + 2.0 * (5.0 * allowed * (1.0 - allowed) / count).sqrt()
        };
        let slow = match self.objective.quantile {
            Some(_) => beyond(evidence.share(), self.objective.allowed(), evidence.times),
            None => evidence.excess > 1.3,
        };
        let tolerance = self.objective.tolerance;
        let bad = beyond(evidence.errors(), tolerance, evidence.requests);
        evidence.unknown || slow || bad || made.falls_behind()
    }
}

fn proposal(purpose: Purpose, rate: f64, settle: f64, length: f64) -> Proposal {
    debug_assert!(
        rate.is_finite() && rate > 0.0,
        "{rate} is no rate of a trial"
    );
    Proposal {
        purpose,
        rate,
        settle: Span::from_secs_f64(settle.max(0.0)),
        length: Span::from_secs_f64(length.max(1e-3)),
    }
}
