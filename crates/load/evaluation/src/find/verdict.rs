//! Verdicts from trials alone: rates shown to hold, rates shown to fail, and changes of the service.
//!
//! A trial speaks about other rates, too, because a service only gets worse with the rate: what held at a rate holds
//! below it, and what failed at a rate fails above it. Trials are therefore pooled with those at higher rates to show
//! that a rate holds, and with those at lower rates to show that one fails.

use posthaste_units::Span;

use super::failure::{contradicts, is_failed};
use super::pool::Pool;
use super::trial::{CompletedTrial, Purpose};
use crate::objective::Objective;

/// Length of a look that shows that a rate holds, as a multiple of the response time at its end, or of the bound if that
/// is less. A queue that grows by 3 % of the time or more is longer.
pub(super) const LOOKED: f64 = 40.0;
/// Share of the budget in which the service may be cold: a failure is repeated, and later trials overrule it.
pub(super) const COLD: f64 = 0.12;
/// The smallest allowed share for which requests beyond half of the bound are compared with it.
const LEAST: f64 = 1e-3;

/// The ends of the interval, and the evidence for the lower one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ends {
    /// The highest rate shown to hold.
    pub(super) held: Option<f64>,
    /// The lowest rate shown to fail.
    pub(super) failed: Option<f64>,
    /// Bursts of bad requests at the held rate.
    pub(super) bursts: f64,
    /// Seconds of the trials at the held rate.
    pub(super) looked: f64,
    /// A rate that was shown to fail was shown to hold later, or the other way round.
    pub(super) changed: bool,
}

/// The trials that later ones do not contradict, in the order of time.
pub(super) struct Findings<'t> {
    objective: &'t Objective,
    trials: Vec<&'t CompletedTrial>,
    /// Trials of light load.
    light: Vec<&'t CompletedTrial>,
    changed: bool,
}

/// Rates from the first to the second.
type Rates = [f64; 2];

fn is_in([low, high]: Rates, made: &CompletedTrial) -> bool {
    (low..=high).contains(&made.proposal.rate)
}

/// True if one of the later trials, at no lower rate, contradicts `old`.
fn is_contradicted<'t>(
    old: &CompletedTrial,
    mut later: impl Iterator<Item = &'t CompletedTrial>,
) -> bool {
    later.any(|made| made.proposal.rate >= old.proposal.rate && contradicts(made, old))
}

/// The trials that began while the service may have been cold.
fn cold_trials(budget: Span, trials: &[CompletedTrial]) -> &[CompletedTrial] {
    let mut begin = 0.0;
    let count = trials.iter().take_while(|made| {
        let is_cold = begin < COLD * budget.as_secs_f64();
        begin += made.evidence.elapsed.as_secs_f64();
        is_cold
    });
    &trials[..count.count()]
}

impl<'t> Findings<'t> {
    pub(super) fn new(
        objective: &'t Objective,
        budget: Span,
        trials: &'t [CompletedTrial],
    ) -> Self {
        let is_light = |made: &&CompletedTrial| made.proposal.purpose == Purpose::Recover;
        let mut found = Self {
            objective,
            trials: Vec::new(),
            light: trials.iter().filter(is_light).collect(),
            changed: false,
        };
        for made in trials.iter().filter(|made| made.counts(objective)) {
            found.add(made);
        }
        found.remove_cold(cold_trials(budget, trials));
        found
    }

    /// Removes trials of a cold service, if later ones at no lower rate contradict them.
    fn remove_cold(&mut self, cold: &[CompletedTrial]) {
        let all = self.trials.clone();
        self.trials.retain(|old| {
            let is_cold = cold.iter().any(|made| std::ptr::eq(made, *old));
            let later = all.iter().skip_while(|made| !std::ptr::eq(**made, *old));
            !is_cold || !is_contradicted(old, later.copied())
        });
    }

    /// Adds a trial and removes those of an earlier state of the service.
    fn add(&mut self, made: &'t CompletedTrial) {
        let (rate, before) = (made.proposal.rate, self.trials.len());
        let (objective, allowed) = (self.objective, self.objective.allowed());
        if is_failed(objective, made) {
            let held = |old: &CompletedTrial| {
                old.proposal.rate >= rate && old.evidence.bad_pool().holds(allowed)
            };
            self.trials.retain(|old| !held(old));
        } else {
            let is_contradicted = self.trials.iter().any(|old| {
                old.proposal.rate <= rate && is_failed(objective, old) && contradicts(made, old)
            });
            // Older failures are of the earlier state, at whatever rate.
            self.trials
                .retain(|old| !is_contradicted || !is_failed(objective, old));
        }
        self.changed |= self.trials.len() < before;
        self.trials.push(made);
    }

    /// The ends that the trials show.
    pub(super) fn ends(&self) -> Ends {
        let failed = self.failed();
        let held = self.held(failed.unwrap_or(f64::INFINITY));
        let at_held = held.map_or(Vec::new(), |rate| self.looks_in([rate, rate]).collect());
        let bad: Pool = at_held.iter().map(|made| made.evidence.bad_pool()).sum();
        Ends {
            held,
            failed,
            bursts: bad.bursts,
            looked: at_held.iter().fold(0.0, |sum, made| sum + made.seconds()),
            changed: self.changed,
        }
    }

    fn looks(&self) -> impl Iterator<Item = &'t CompletedTrial> + '_ {
        self.trials.iter().copied().filter(|made| made.is_look())
    }

    fn looks_in(&self, rates: Rates) -> impl Iterator<Item = &'t CompletedTrial> + '_ {
        self.looks().filter(move |made| is_in(rates, made))
    }

    /// The rates of all trials, the lowest first.
    fn rates(&self) -> Vec<f64> {
        let mut rates: Vec<f64> = self.trials.iter().map(|made| made.proposal.rate).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        rates
    }

    /// The lowest rate shown to fail: by one trial, or by the bursts of all trials at it and below it that a later one
    /// does not contradict.
    fn failed(&self) -> Option<f64> {
        let allowed = self.objective.allowed();
        let by_itself = self
            .trials
            .iter()
            .filter(|made| is_failed(self.objective, made))
            .map(|made| made.proposal.rate);
        let uncontradicted: Vec<_> = self
            .trials
            .iter()
            .enumerate()
            .filter(|(index, old)| !is_contradicted(old, self.trials[index + 1..].iter().copied()))
            .map(|(_, made)| *made)
            .collect();
        let fails = |rates: Rates| {
            let inside = || uncontradicted.iter().filter(|made| is_in(rates, made));
            let bad: Pool = inside().map(|made| made.evidence.bad_pool()).sum();
            let failed: Pool = inside().map(|made| made.evidence.failures).sum();
            bad.fails(allowed) || failed.fails(self.objective.tolerance)
        };
        let rates = self.rates();
        let is_shown = |high: &f64| {
            let mut lower = rates.iter().take_while(|low| *low <= high);
            lower.any(|low| fails([*low, *high]))
        };
        let by_bursts = rates.iter().copied().filter(is_shown);
        by_itself.chain(by_bursts).reduce(f64::min)
    }

    /// The highest rate below `limit` at which there was a long look and up to which all such rates are shown to hold.
    fn held(&self, limit: f64) -> Option<f64> {
        let rates = self.rates();
        let is_looked_at = |rate: &f64| self.looks().any(|made| made.proposal.rate == *rate);
        let is_held = |rate: &f64| {
            let mut higher = rates.iter().filter(|high| *high >= rate);
            *rate < limit && higher.any(|high| self.holds([*rate, *high]))
        };
        let looked_at = rates.iter().copied().filter(is_looked_at);
        looked_at
            .take_while(is_held)
            .filter(|rate| self.mean_holds(*rate))
            .last()
    }

    /// True if the trials at these rates show that the lowest of them holds.
    fn holds(&self, rates: Rates) -> bool {
        let bound = self.objective.bound.as_secs_f64();
        self.looks_in(rates)
            .any(|made| made.seconds() >= LOOKED * made.evidence.last_mean().min(bound))
            && self.pool(rates).holds(self.objective.allowed())
            && self.succeeds(rates)
            && self.is_quick(rates)
    }

    /// True if few enough requests failed at these rates.
    fn succeeds(&self, rates: Rates) -> bool {
        let failed: Pool = self
            .looks_in(rates)
            .map(|made| made.evidence.failures)
            .sum();
        failed.holds(self.objective.tolerance)
    }

    /// The requests at these rates. Only a long look speaks for its rate; a short trial speaks against it.
    fn pool(&self, rates: Rates) -> Pool {
        let inside = self.trials.iter().filter(|made| is_in(rates, made));
        let pools = inside.map(|made| {
            let all = made.evidence.bad_pool();
            let requests = if made.is_look() { all.requests } else { 0.0 };
            Pool { requests, ..all }
        });
        pools.sum()
    }

    /// True if few enough requests are beyond half of the bound, in looks at these rates. In a queue, the share beyond the
    /// bound is about the square of that share. Requests that are as slow at half of the rate have another reason.
    fn is_quick(&self, rates: Rates) -> bool {
        let here: Pool = self.looks_in(rates).map(|made| made.evidence.slow).sum();
        let usual: Pool = self
            .trials
            .iter()
            .chain(&self.light)
            .filter(|made| made.proposal.rate <= rates[0] / 2.0)
            .map(|made| made.evidence.slow)
            .sum();
        here.most() - usual.share() <= self.objective.allowed().max(LEAST).sqrt()
    }

    /// True unless the objective is a mean that is not shown to be within its bound at this rate.
    fn mean_holds(&self, rate: f64) -> bool {
        // The last look alone: the best of several would hold too often by chance.
        let looks = self.looks().filter(|made| made.proposal.rate == rate);
        let last = looks.last();
        self.objective.quantile.is_some()
            || last.is_some_and(|made| made.evidence.mean.is_some_and(|mean| mean.most() < 1.0))
    }

    /// True if `more` requests at `rate` would probably show that it holds.
    pub(super) fn is_promising(&self, rate: f64, more: f64) -> bool {
        self.looks().any(|highest| {
            let rates = [rate, highest.proposal.rate];
            let looks = self.looks_in(rates);
            let seen: Pool = looks.map(|made| made.evidence.bad_pool()).sum();
            seen.requests > 0.0
                && seen.would_hold(more, self.objective.allowed())
                && self.is_quick(rates)
        })
    }
}
