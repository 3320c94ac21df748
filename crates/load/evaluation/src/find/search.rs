//! The search as a state machine: it proposes a trial, receives its evidence, and finally gives an answer.
//!
//! It has no clock, socket or thread. The duration of a trial is part of its evidence. The rate and the length of a
//! trial are fixed before it; its result decides only about later ones.

use posthaste_units::Span;

use super::answer::{self, Capacity};
use super::evidence::Evidence;
use super::failure::is_failed;
use super::trial::{CompletedTrial, Proposal, Purpose};
use super::verdict::{COLD, Ends, Findings, LOOKED};
use crate::objective::{Effort, Objective};

/// Requests in a trial of light load.
const LIGHT: f64 = 10.0;
/// Limits of recovery. The service has recovered if the median of a light load is at most `RECOVERED` times the lowest
/// so far. At the start: if it is not below `DRAINING` times the previous one, as it is while a backlog drains.
const RECOVERED: f64 = 2.0;
const DRAINING: f64 = 0.7;
/// It has also recovered if the median is at most this share of the bound.
const IDLE: f64 = 0.25;
/// Share of the budget spent on waiting for recovery.
const PATIENCE: f64 = 0.2;
/// Length of a climbing trial, as a share of the budget, at least `CLIMB_BOUNDS` bounds.
const CLIMB: f64 = 0.02;
const CLIMB_BOUNDS: f64 = 8.0;
/// Share of the budget for the trial that narrows the bracket.
const NARROWING: f64 = 0.03;
/// The bracket is narrow enough at this ratio of its ends.
const NARROW: f64 = 1.09;
/// Share of the budget for a repetition of the failure.
const REPETITION: f64 = 0.05;
/// Maximum number of long looks, and the share of the budget for each.
const LOOKS: usize = 5;
const LOOK: f64 = 0.14;
/// Share of the budget that is left for confirmations.
const CONFIRMATIONS: f64 = 0.35;
/// Share of the budget that must be left for a look at a higher rate.
const HIGHER: f64 = 0.55;
/// Requests without a bad one that show that a rate holds, times the allowed share.
const SHORTEST_LOOK: f64 = 3.8;
/// A trial settles for this many bounds, at most this share of its time.
const SETTLE: f64 = 10.0;
const SETTLE_SHARE: f64 = 0.2;
/// Steps to a lower rate: after more bad requests than allowed, and otherwise.
const FAR: f64 = 0.7;
const NEAR: f64 = 0.8;
/// Trials shorter than this share of the budget are not made.
const SHORTEST: f64 = 0.01;
/// Lengths of a stream for which a trial of streams settles, and that it needs besides its own time: to settle, and
/// until its last stream ends.
const STREAM_SETTLE: f64 = 1.1;
const STREAM_TIME: f64 = 2.1;
/// Minimum share of the time of a long trial that is left for counting streams.
const STREAM_SHARE: f64 = 0.25;
/// Number of late trials at a rate after which the rate counts as the generator's limit.
const LATE_ATTEMPTS: usize = 2;

#[derive(Clone, Copy, Debug)]
enum SearchPhase {
    /// Doubles the rate until a trial fails twice: a service may have been cold.
    Climb {
        rate: f64,
        repeated: bool,
    },
    /// Narrows the bracket by a short trial.
    Narrow,
    /// Repeats the failure.
    Top,
    /// Looks for long at a rate that may hold.
    Look {
        rate: f64,
        left: usize,
    },
    /// Looks once more at the highest rate shown to hold.
    Confirm {
        rate: f64,
    },
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
    /// A rate that seems to hold, and one that seems to fail.
    bracket: [f64; 2],
    /// Median of the light load of the idle service.
    floor: f64,
    /// Length of a stream under light load in seconds; zero unless the objective is about events.
    stream: f64,
    recovering: bool,
    waited: f64,
    late: usize,
    /// The lowest rate that the generator could not send.
    limit: Option<f64>,
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
            phase: SearchPhase::Climb {
                rate,
                repeated: false,
            },
            trials: Vec::new(),
            spent: 0.0,
            bracket: [rate, f64::INFINITY],
            floor: f64::INFINITY,
            stream: 0.0,
            recovering: true,
            waited: 0.0,
            late: 0,
            limit: None,
        }
    }

    /// Returns the next trial. `None` when the search is over.
    pub fn propose(&mut self) -> Option<Proposal> {
        let budget = self.effort.budget.as_secs_f64();
        if self.left() < SHORTEST * budget {
            self.phase = SearchPhase::Done;
        }
        if self.recovering && !matches!(self.phase, SearchPhase::Done) {
            let rate = self.start();
            let length = (LIGHT / rate).min(self.left());
            return Some(proposal(Purpose::Recover, rate, 0.0, length));
        }
        let bound = self.objective.bound.as_secs_f64();
        let left = self.left();
        match self.phase {
            SearchPhase::Climb { rate, .. } => {
                let time = (CLIMB_BOUNDS * bound)
                    .min(budget / 20.0)
                    .max(CLIMB * budget);
                Some(self.settled(Purpose::Locate, rate, 0.0, time.min(left)))
            }
            SearchPhase::Narrow => {
                let [low, high] = self.bracket;
                let time = (NARROWING * budget).min(left);
                let settle = (SETTLE * bound).min(SETTLE_SHARE * time);
                Some(self.settled(Purpose::Locate, (low * high).sqrt(), settle, time - settle))
            }
            SearchPhase::Top => {
                let rate = self.ends().failed.unwrap_or(self.bracket[1]);
                Some(self.long(Purpose::Locate, rate, (REPETITION * budget).min(left)))
            }
            SearchPhase::Look { rate, .. } => {
                Some(self.long(Purpose::Measure, rate, (LOOK * budget).min(left)))
            }
            SearchPhase::Confirm { rate } => {
                Some(self.long(Purpose::Confirm, rate, self.confirming(rate)))
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
        let fails = self.fails(&made);
        // A server that still works on requests given up by clients is not idle yet.
        let abandoned = made.evidence.unanswered as f64;
        let is_busy = abandoned > self.objective.allowed() * made.evidence.requests as f64;
        self.recovering = (fails || is_busy) && self.floor.is_finite();
        let is_late = fails && made.spoilt(&self.objective);
        self.trials.push(made);
        if is_late {
            self.record_late(proposal.rate);
            return;
        }
        self.late = 0;
        self.phase = self.phase_after(proposal.rate, fails);
    }

    /// Returns the answer from the trials so far.
    pub fn answer(&self, objective: String) -> Capacity {
        answer::conclude(
            objective,
            &self.objective,
            &self.effort,
            &self.trials,
            self.limit,
            !self.is_unrecovered(),
        )
    }

    /// Returns the last trial at the lowest rate, if that rate is shown to fail. There is then no capacity to find.
    pub fn hopeless(&self) -> Option<&CompletedTrial> {
        let ends = self.ends();
        let is_lowest = |made: &&CompletedTrial| {
            made.proposal.rate <= self.start() && made.counts(&self.objective)
        };
        let shown = ends.failed.is_some_and(|failed| failed <= self.start());
        self.trials.iter().rev().find(is_lowest).filter(|_| shown)
    }

    /// True if the service did not return to its response times under light load in the time limit.
    pub fn is_unrecovered(&self) -> bool {
        self.waited >= PATIENCE * self.effort.budget.as_secs_f64()
    }

    fn start(&self) -> f64 {
        self.effort.start.as_per_second()
    }

    fn left(&self) -> f64 {
        self.effort.budget.as_secs_f64() - self.spent
    }

    fn findings(&self) -> Findings<'_> {
        Findings::new(&self.objective, self.effort.budget, &self.trials)
    }

    fn ends(&self) -> Ends {
        self.findings().ends()
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
            (false, _) => {
                median <= (RECOVERED * self.floor).max(IDLE * self.objective.bound.as_secs_f64())
            }
        };
        self.waited += made.evidence.elapsed.as_secs_f64();
        self.floor = self.floor.min(median);
        if made.evidence.stream > 0.0 {
            self.stream = if self.stream > 0.0 {
                self.stream.min(made.evidence.stream)
            } else {
                made.evidence.stream
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
        self.limit = Some(self.limit.map_or(rate, |limit| limit.min(rate)));
        self.phase = self.phase_after(rate, true);
    }

    /// The phase after a trial that `fails` or not.
    fn phase_after(&mut self, rate: f64, fails: bool) -> SearchPhase {
        match self.phase {
            SearchPhase::Climb { repeated, .. }
                if fails && !repeated && self.spent < COLD * self.effort.budget.as_secs_f64() =>
            {
                SearchPhase::Climb {
                    rate,
                    repeated: true,
                }
            }
            SearchPhase::Climb { .. } if !fails => self.climb(2.0, rate),
            SearchPhase::Climb { .. } => {
                self.bracket = [(rate / 2.0).max(self.start()).min(rate), rate];
                self.narrow()
            }
            SearchPhase::Narrow => {
                self.bracket[usize::from(fails)] = rate;
                self.look(self.bracket[0], LOOKS)
            }
            // It has become better, or the failure was one burst.
            SearchPhase::Top if !fails && self.limit.is_none() && self.ends().failed.is_none() => {
                self.climb(1.5, rate)
            }
            // The next failure may be of the same earlier state.
            SearchPhase::Top if !fails && self.ends().failed > Some(rate) => SearchPhase::Top,
            SearchPhase::Top => self.confirm(f64::INFINITY),
            // The service was cold when this rate failed.
            SearchPhase::Look { .. } if !fails && rate >= self.bracket[1] => self.climb(2.0, rate),
            SearchPhase::Look { left, .. } => self.phase_after_look(rate, fails, left - 1),
            SearchPhase::Confirm { .. } => {
                let holds = self.ends().held.is_some_and(|held| held >= rate);
                if holds {
                    SearchPhase::Done
                } else {
                    self.confirm(rate)
                }
            }
            SearchPhase::Done => SearchPhase::Done,
        }
    }

    /// Climbs by `factor` from a rate that seems to hold.
    fn climb(&mut self, factor: f64, rate: f64) -> SearchPhase {
        self.bracket = [rate, f64::INFINITY];
        if self.left() < CONFIRMATIONS * self.effort.budget.as_secs_f64() {
            return self.look(rate, LOOKS);
        }
        SearchPhase::Climb {
            rate: factor * rate,
            repeated: false,
        }
    }

    /// Repeats a failure that only short trials have shown, before the end.
    fn top(&self) -> SearchPhase {
        let failed = self.ends().failed;
        let mut at = self
            .trials
            .iter()
            .filter(|made| Some(made.proposal.rate) == failed);
        let has_failed = self.bracket[1].is_finite();
        if has_failed && !at.any(CompletedTrial::is_look) {
            return SearchPhase::Top;
        }
        self.confirm(f64::INFINITY)
    }

    fn narrow(&self) -> SearchPhase {
        let [low, high] = self.bracket;
        debug_assert!(
            0.0 < low && low <= high && high.is_finite(),
            "the bracket is out of order"
        );
        if high / low > NARROW {
            return SearchPhase::Narrow;
        }
        self.look(low, LOOKS)
    }

    fn look(&self, rate: f64, left: usize) -> SearchPhase {
        if left == 0 || self.left() < CONFIRMATIONS * self.effort.budget.as_secs_f64() {
            return self.top();
        }
        SearchPhase::Look {
            rate: rate.max(self.start()),
            left,
        }
    }

    /// Looks higher after a rate that is shown to hold, and otherwise lower.
    fn phase_after_look(&mut self, rate: f64, fails: bool, left: usize) -> SearchPhase {
        if fails && rate < self.bracket[1] {
            self.bracket[1] = rate;
        }
        if !self.is_promising(rate) {
            return self.look(self.lower(rate), left);
        }
        self.bracket[0] = rate;
        let next = (rate * self.bracket[1]).sqrt();
        let has_time = self.left() > HIGHER * self.effort.budget.as_secs_f64();
        let is_higher = next / rate > NARROW.sqrt() && has_time;
        self.look(next, if is_higher { left } else { 0 })
    }

    /// True if a confirmation in the time that is left would probably show that the rate holds.
    fn is_promising(&self, rate: f64) -> bool {
        let more = self.confirming(rate) * rate * (1.0 - SETTLE_SHARE / 2.0);
        self.findings().is_promising(rate, more)
    }

    /// A lower rate than one that is not shown to hold, by the share of bad requests in its last trial.
    fn lower(&self, rate: f64) -> f64 {
        let mut last = self.trials.iter().rev();
        let last = last.find(|made| made.proposal.rate == rate);
        let share = last.map_or(0.0, |made| made.evidence.bad_share());
        let step = if share > 1.5 * self.objective.allowed() {
            FAR
        } else {
            NEAR
        };
        (step * rate).max(self.start())
    }

    /// Confirms the highest rate below `limit` that is shown to hold, or a lower one than those that are not.
    fn confirm(&self, limit: f64) -> SearchPhase {
        let looks = self.trials.iter().filter(|made| made.is_look());
        let rates = looks.map(|made| made.proposal.rate);
        let promising = rates
            .clone()
            .filter(|rate| *rate < limit && self.is_promising(*rate))
            .fold(0.0, f64::max);
        let lowest = rates.fold(limit.min(self.bracket[0]), f64::min);
        let rate = if promising > 0.0 {
            promising
        } else {
            self.lower(lowest)
        };
        if rate >= limit {
            return SearchPhase::Done;
        }
        SearchPhase::Confirm { rate }
    }

    /// Time of a confirmation: what is left, without the time for the shortest look at a lower rate.
    fn confirming(&self, rate: f64) -> f64 {
        let left = self.left();
        let shortest = SHORTEST_LOOK
            / self.objective.allowed().max(1e-3)
            / (0.85 * rate)
            / (1.0 - SETTLE_SHARE);
        let shortest =
            shortest.max(LOOKED * self.objective.bound.as_secs_f64() / (1.0 - SETTLE_SHARE));
        let reserve = shortest + 0.02 * self.effort.budget.as_secs_f64();
        if 2.0 * reserve > left {
            left
        } else {
            left - reserve
        }
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

    /// True if a trial fails, or has far more bad requests than allowed. It decides only about the next rate.
    fn fails(&self, made: &CompletedTrial) -> bool {
        let (evidence, allowed) = (&made.evidence, self.objective.allowed());
        let count = evidence.times.max(1) as f64;
        // Scatter of dependent requests: five count as one.
        let scatter = 2.0 * (5.0 * allowed * (1.0 - allowed) / count).sqrt();
        let is_slow = evidence.mean.is_some_and(|mean| mean.excess > 1.0);
        evidence.unknown
            || is_slow
            || evidence.bad_share() > allowed + scatter
            || is_failed(&self.objective, made)
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
