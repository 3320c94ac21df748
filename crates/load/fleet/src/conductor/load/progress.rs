//! The conductor's record of one agent in a run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posthaste_load::{AgentReport, Generator, LoadTally, Outcome, Plan, Run, Share};
use posthaste_units::{Instant, Span, visible};
use tokio::time::Instant as TokioInstant;

use crate::conductor::offset::{ClockAccuracy, ClockEstimate};
use crate::protocol::message::{Note, NoteContent};
use crate::protocol::names::AgentName;
use crate::protocol::work::{EndFacts, PreparedFacts};

/// Silence after which an agent is in doubt.
pub(super) const SILENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// The part of an agent in a run.
pub(super) struct AgentProgress {
    pub(super) name: AgentName,
    pub(super) share: Share,
    pub(super) facts: PreparedFacts,
    pub(super) clock: ClockEstimate,
    /// Change of the clock's offset since the start.
    drift: Option<Span>,
    /// The largest change that is more than a drift.
    clock_step: Span,
    /// The sum of its seconds.
    sum: LoadTally,
    /// Its own sum of them.
    total: Option<LoadTally>,
    end: Option<EndFacts>,
    heard: TokioInstant,
    /// The last second of which it has sent the tally.
    last_second: u64,
    /// Clock requests in a row without a reply.
    pub(super) unanswered: u32,
    /// The reason why nothing more of it counts.
    distrust: Option<String>,
    warnings: Vec<String>,
}

impl AgentProgress {
    pub(super) fn new(
        name: AgentName,
        share: Share,
        facts: PreparedFacts,
        clock: ClockEstimate,
        plan: &Plan,
    ) -> Self {
        Self {
            name,
            share,
            facts,
            clock,
            drift: None,
            clock_step: Span::ZERO,
            sum: LoadTally::for_plan(plan),
            total: None,
            end: None,
            heard: TokioInstant::now(),
            last_second: 0,
            unanswered: 0,
            distrust: None,
            warnings: Vec::new(),
        }
    }

    /// Adds a note. Returns the tally of new seconds, with the number of the last of them.
    pub(super) fn add(
        &mut self,
        plan: &Plan,
        note: Note<Box<LoadTally>, EndFacts>,
    ) -> Option<(u64, Box<LoadTally>)> {
        self.heard = TokioInstant::now();
        self.unanswered = 0;
        match note.content {
            NoteContent::Seconds { last, sum, .. } => {
                if let Err(error) = sum.check(plan) {
                    self.distrust(format!("its tally of second {last}: {error}"));
                    return None;
                }
                self.last_second = last.max(self.last_second);
                self.sum.merge(&sum);
                return Some((last, sum));
            }
            NoteContent::Total { sum } => match sum.check(plan) {
                Ok(()) => {
                    let mut total = LoadTally::for_plan(plan);
                    total.merge(&sum);
                    self.total = Some(total);
                }
                Err(error) => self.distrust(format!("its total: {error}")),
            },
            NoteContent::StoodDown { reason } => {
                self.warn(format!("did not start: {reason}"));
                self.distrust("it did not start".to_owned());
            }
            NoteContent::End { end, .. } => self.end = Some(end),
        }
        None
    }

    /// Lets nothing more of the agent count.
    pub(super) fn distrust(&mut self, reason: String) {
        self.distrust.get_or_insert(reason);
    }

    pub(super) fn warn(&mut self, warning: String) {
        self.warnings.push(visible(&warning).into_owned());
    }

    /// Records the change of the clock against that of the conductor.
    pub(super) fn record_clock(&mut self, now: &ClockEstimate) {
        let drift = now.drift_since(&self.clock);
        let change = Span::from_nanos(drift.change_ns.unsigned_abs());
        self.drift = Some(change);
        if drift.is_step() {
            self.clock_step = change.max(self.clock_step);
        }
    }

    /// True if nothing more is expected of the agent.
    pub(super) fn is_over(&self) -> bool {
        // The end may come before a total that was lost on its way and is read again.
        let has_ended = |end: &EndFacts| self.total.is_some() || end.error.is_some();
        self.distrust.is_some() || self.end.as_ref().is_some_and(has_ended)
    }

    /// True if the agent has been silent for so long that it is in doubt.
    pub(super) fn is_silent(&self) -> bool {
        !self.is_over() && self.heard.elapsed() > SILENCE
    }

    /// The time for which the server was away does not count as silence.
    pub(super) fn forgive(&mut self) {
        self.heard = TokioInstant::now();
        self.unanswered = 0;
    }

    /// The tally of the agent's whole share of a run that was over at this time. The requests that it has not accounted
    /// for are added. `due` is the number of requests of the share, which a closed loop does not have.
    pub(super) fn whole(&mut self, plan: &Plan, over: Instant, due: Option<u64>) -> LoadTally {
        match self.reported(plan, due) {
            Ok(mut total) => {
                let due = due.unwrap_or_else(|| total.intended());
                if due > total.intended() {
                    let unbegun = due - total.intended();
                    self.warn(format!("left early: {unbegun} requests were not begun"));
                    total.add_unbegun(plan, self.share, over);
                    assert_eq!(total.intended(), due, "the rest of the share was added");
                }
                total
            }
            Err(reason) => {
                self.warn(format!("lost after second {}: {reason}", self.last_second));
                let mut tally = self.sum.clone();
                tally.add_lost(plan, self.share, over);
                if let Err(error) = tally.check_whole(plan) {
                    self.warn(format!("its seconds do not count: {error}"));
                    tally = LoadTally::for_plan(plan);
                    tally.add_lost(plan, self.share, over);
                }
                tally
            }
        }
    }

    /// The total of an agent that has ended as it should. The error is the reason why it counts as lost.
    fn reported(&mut self, plan: &Plan, due: Option<u64>) -> Result<LoadTally, String> {
        if let Some(reason) = self.distrust.take() {
            return Err(reason);
        }
        let end = self.end.take().ok_or("it has not reported its end")?;
        if let Some(reason) = end.error {
            return Err(reason);
        }
        let total = self.total.take().ok_or("it has sent no total")?;
        total.check_whole(plan).map_err(|error| error.to_string())?;
        let is_complete = due.is_none_or(|due| {
            if end.is_stopped {
                total.intended() <= due
            } else {
                total.intended() == due
            }
        });
        if total != self.sum {
            self.warn("its seconds are incomplete; its total counts".to_owned());
        }
        if is_complete {
            Ok(total)
        } else {
            Err(format!(
                "it had {} requests due, and not {}",
                total.intended(),
                due.unwrap_or_default()
            ))
        }
    }

    /// The report about the agent, with the tally of its whole share.
    pub(super) fn report(
        mut self,
        plan: &Plan,
        tally: &LoadTally,
        is_stopped: bool,
    ) -> AgentReport {
        if !self.clock_step.is_zero() {
            let step = self.clock_step;
            self.warn(format!(
                "its clock has moved by {step} against the conductor's"
            ));
        }
        if self.clock.accuracy() != ClockAccuracy::Fine {
            let bound = self.clock.bound;
            self.warn(format!(
                "started up to {:.1} ms before or after the common instant",
                bound.as_millis_f64()
            ));
        }
        let run = Run::new(plan, Timestamp::UNIX_EPOCH, tally.clone(), is_stopped);
        AgentReport {
            name: self.name.to_string(),
            loops: self.share.loops as u64,
            servers: self.facts.servers,
            intended: run.intended,
            lost: run.outcomes[Outcome::Lost],
            clock_bound_ms: self.clock.bound.as_millis_f64(),
            clock_drift_ms: self.drift.map(Span::as_millis_f64),
            generator: Generator::check(&run),
            warnings: self.warnings,
        }
    }
}

/// The agents of a run by name.
pub(super) type RunAgents = BTreeMap<AgentName, AgentProgress>;

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_load::{Arrivals, Pace, RateStep, RequestSpec};
    use posthaste_units::Rate;

    /// The warnings about an agent with this bound of its clock, in a run without requests of it.
    fn warnings(bound: Span) -> Vec<String> {
        let steps = vec![RateStep::steady(
            Rate::per_second(10.0).expect("a rate"),
            Span::from_secs(1),
        )];
        let arrivals = Arrivals::Constant;
        let requests = vec![RequestSpec::get("http://127.0.0.1:8080/")];
        let plan = Plan::new(requests, Pace::Open { arrivals, steps });
        let facts = PreparedFacts {
            loops: 1,
            connections: 1,
            servers: Vec::new(),
        };
        let clock = ClockEstimate {
            offset_ns: 0,
            bound,
            round_trip: bound + bound,
        };
        let name = "a".parse().expect("a name");
        let share = Share { first: 0, loops: 1 };
        let agent = AgentProgress::new(name, share, facts, clock, &plan);
        agent
            .report(&plan, &LoadTally::for_plan(&plan), false)
            .warnings
    }

    #[test]
    fn a_clock_that_is_not_known_well_is_a_warning_of_the_report() {
        assert!(warnings(Span::from_millis(5)).is_empty());
        let coarse = warnings(Span::from_micros(10_100));
        let expected = "started up to 10.1 ms before or after the common instant";
        assert_eq!(coarse, [expected]);
    }
}
