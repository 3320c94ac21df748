//! The conductor of a sweep: one job under way for each event loop of the agents, until each job has a result.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use posthaste_sim::{JobResult, Ledger, LedgerError, ReceivedResult, SweepJob, Totals};
use posthaste_units::Span;
use thiserror::Error;
use tokio::time::{Instant, sleep};

use super::SweepDescription;
use super::failures::SlotFailures;
use crate::agent_work::{AgentFacts, AgentPlan};
use crate::allot::AgentShare;
use crate::conductor::{AgentError, Conductor, StartError};
use crate::envelope::ProtocolVersion;
use crate::fleet::{AgentFleet, FleetError};
use crate::message::{PrepareRequest, RunOrder};
use crate::names::{AgentName, RunId};

/// Time limit of a preparation.
const PREPARATION: Duration = Duration::from_secs(30);
/// Interval of pulses, and of looks at the order to stop.
const PULSE: Duration = Duration::from_millis(500);
/// Exchanges with a clock: a sweep needs no exact start.
const EXCHANGES: usize = 4;
/// Time limit of a job: jobs are of seconds, and machines are busy.
const JOB: Duration = Duration::from_secs(120);
/// Duration of a job after which another agent repeats it, once no other job is left. Jobs take about two seconds.
const SLOW: Duration = Duration::from_secs(5);
/// Pause of a slot after a failed job, and without a job.
const PAUSE: Duration = Duration::from_millis(200);
/// Time between arming and the origin. Agents do jobs from the order to go on, so that a long time delays nothing.
const LEAD: Span = Span::from_millis(5_000);

/// Reasons why a sweep has no result.
#[derive(Debug, Error)]
pub enum SweepError {
    /// Agents that cannot be used.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// Results that contradict each other.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A simulation that cannot be carried out. The totals of its case would be incomplete.
    #[error("transactions {} to {} of case {}: {reason}", job.first, job.last, job.case)]
    Simulation {
        /// The job.
        job: SweepJob,
        /// The reason.
        reason: String,
    },
    /// No agent left.
    #[error("all agents are lost; these jobs have no result: {}", ranges(.0))]
    Lost(Vec<RangeInclusive<u64>>),
}

/// The user of a sweep.
pub struct SweepUser<'u> {
    /// Ends the sweep early.
    pub stop: &'u AtomicBool,
    /// Called with the totals of a case, once it is complete.
    pub case_complete: &'u mut dyn FnMut(usize, &Totals),
    /// Called with the number of transactions of each result.
    pub progress: &'u dyn Fn(u64),
    /// Takes messages.
    pub notice: &'u dyn Fn(&str),
}

/// A sweep in progress.
struct Sweep<'s, 'u> {
    conductor: &'s Conductor,
    run: RunId,
    ledger: &'s RefCell<Ledger>,
    user: &'s RefCell<&'s mut SweepUser<'u>>,
    /// Jobs that nobody does.
    queue: RefCell<VecDeque<SweepJob>>,
    /// Jobs under way, by number.
    under_way: RefCell<BTreeMap<u64, JobUnderWay<'s>>>,
    /// The error that ends the sweep.
    error: Cell<Option<SweepError>>,
}

/// A job that agents do.
struct JobUnderWay<'s> {
    job: SweepJob,
    agents: Vec<&'s AgentName>,
    since: Instant,
}

impl AgentFleet {
    /// Lets the agents do the jobs of `ledger` that have no result. Returns when all have one or the user stops.
    pub fn sweep(
        &mut self,
        description: &SweepDescription,
        ledger: &RefCell<Ledger>,
        user: &mut SweepUser<'_>,
    ) -> Result<(), SweepError> {
        let agents: Vec<(AgentName, u32)> = self
            .chosen
            .iter()
            .map(|agent| (agent.info.name.clone(), agent.info.loops))
            .collect();
        let user = RefCell::new(user);
        let sweep = Sweep {
            conductor: &self.conductor,
            run: RunId::random(),
            ledger,
            user: &user,
            queue: RefCell::default(),
            under_way: RefCell::default(),
            error: Cell::new(None),
        };
        self.runtime.block_on(sweep.carry_out(&agents, description))
    }
}

impl<'s> Sweep<'s, '_> {
    /// The stages of a sweep. The agents are released at its end.
    async fn carry_out(
        &self,
        agents: &'s [(AgentName, u32)],
        description: &SweepDescription,
    ) -> Result<(), SweepError> {
        let result = async {
            self.begin(agents, description).await?;
            self.queue_missing();
            let slots = agents
                .iter()
                .flat_map(|(agent, loops)| (0..*loops).map(move |_| self.serve_slot(agent)));
            let work = pin!(join_all(slots));
            let watch = pin!(self.watch());
            select(work, watch).await;
            self.end()
        };
        let result = result.await;
        let _ = self.conductor.order(self.run, RunOrder::Release).await;
        result
    }

    /// Prepares all agents, and starts the run.
    async fn begin(
        &self,
        agents: &[(AgentName, u32)],
        description: &SweepDescription,
    ) -> Result<(), FleetError> {
        let share = AgentShare::new(0, 1)?;
        let prepared = agents.iter().map(|(agent, _)| {
            let request = PrepareRequest {
                v: ProtocolVersion,
                run: self.run,
                plan: AgentPlan::Sweep(description.clone()),
                share,
                files: Vec::new(),
                key: None,
            };
            let conductor = self.conductor;
            async move {
                conductor
                    .prepare::<_, AgentFacts>(agent, &request, PREPARATION)
                    .await
            }
        });
        let prepared: Result<Vec<_>, AgentError> = join_all(prepared).await.into_iter().collect();
        prepared?;
        let names: Vec<AgentName> = agents.iter().map(|(name, _)| name.clone()).collect();
        let clocks = self.conductor.clocks(&names, EXCHANGES).await?;
        let timed: Vec<_> = names.into_iter().zip(clocks).collect();
        let started: Result<_, StartError> = self.conductor.start(self.run, &timed, LEAD).await;
        started?;
        Ok(())
    }

    /// Fills the queue with the jobs that have no result.
    fn queue_missing(&self) {
        let ledger = self.ledger.borrow();
        let numbers = ledger.missing().into_iter().flatten();
        let jobs = numbers.filter_map(|number| ledger.jobs().get(number));
        self.queue.borrow_mut().extend(jobs);
    }

    /// Keeps an event loop of an agent at work until each job has a result, or the agent is lost.
    async fn serve_slot(&self, agent: &'s AgentName) {
        let mut failures = SlotFailures::default();
        while !self.is_over() {
            self.conductor.connection().wait().await;
            let Some(job) = self.take_job(agent) else {
                sleep(PAUSE).await;
                continue;
            };
            let done = self.request(agent, &job).await;
            self.give_back(&job, agent, matches!(done, Some(Ok(_))));
            match done {
                None => failures.disconnected(),
                Some(Ok(result)) => {
                    failures = SlotFailures::default();
                    self.receive(job, agent, result);
                }
                Some(Err(_)) if !self.conductor.connection().is_connected() => {
                    failures.disconnected();
                }
                Some(Err(error)) => {
                    if failures.record(&error, Instant::now()) {
                        (self.user.borrow().notice)(&format!("no more jobs for {error}"));
                        return;
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Lets an agent do a job. `None` if the connection was interrupted: the reply may be lost, and would be awaited in
    /// vain.
    async fn request(
        &self,
        agent: &AgentName,
        job: &SweepJob,
    ) -> Option<Result<JobResult, AgentError>> {
        let mut connects = self.conductor.connection().connects();
        connects.mark_unchanged();
        let reply = pin!(self.conductor.job(agent, self.run, job, JOB));
        match select(reply, pin!(connects.changed())).await {
            Either::Left((reply, _)) => Some(reply),
            Either::Right(_) => None,
        }
    }

    /// Takes a job that nobody does, or else a slow one that only another agent does.
    fn take_job(&self, agent: &'s AgentName) -> Option<SweepJob> {
        let queued = self.queue.borrow_mut().pop_front();
        let mut under_way = self.under_way.borrow_mut();
        if let Some(job) = queued {
            let begun = JobUnderWay {
                job,
                agents: vec![agent],
                since: Instant::now(),
            };
            under_way.insert(job.number, begun);
            return Some(job);
        }
        // Two agents are enough: more would only repeat.
        let is_open = |slow: &&mut JobUnderWay<'_>| {
            slow.agents.len() == 1 && slow.agents[0] != agent && slow.since.elapsed() > SLOW
        };
        let slow = under_way.values_mut().find(is_open)?;
        slow.agents.push(agent);
        Some(slow.job)
    }

    /// Records that an agent has ended a job. One that failed everywhere is queued again.
    fn give_back(&self, job: &SweepJob, agent: &AgentName, is_done: bool) {
        let mut under_way = self.under_way.borrow_mut();
        let Some(begun) = under_way.get_mut(&job.number) else {
            return;
        };
        begun.agents.retain(|other| *other != agent);
        if is_done {
            under_way.remove(&job.number);
        } else if begun.agents.is_empty() {
            under_way.remove(&job.number);
            self.queue.borrow_mut().push_front(*job);
        }
    }

    fn receive(&self, job: SweepJob, agent: &AgentName, result: JobResult) {
        let received = self
            .ledger
            .borrow_mut()
            .receive(job.number, agent.as_str(), result);
        let mut user = self.user.borrow_mut();
        match received {
            Ok(ReceivedResult::Repeated) => {}
            Ok(ReceivedResult::CaseComplete(totals)) => {
                (user.progress)(job.transactions());
                (user.case_complete)(job.case, &totals);
            }
            Ok(ReceivedResult::Merged) => (user.progress)(job.transactions()),
            Ok(ReceivedResult::Failed(reason)) => {
                self.error.set(Some(SweepError::Simulation { job, reason }));
            }
            Err(error) => self.error.set(Some(error.into())),
        }
    }

    fn is_over(&self) -> bool {
        let error = self.error.take();
        let has_error = error.is_some();
        self.error.set(error);
        has_error || self.ledger.borrow().is_complete() || self.user.borrow().stop.load(Relaxed)
    }

    /// Gives pulses until the sweep is over.
    async fn watch(&self) {
        while !self.is_over() {
            if self.conductor.connection().is_connected() {
                // A lost pulse is replaced by the next.
                let _ = self.conductor.order(self.run, RunOrder::Pulse).await;
            }
            sleep(PULSE).await;
        }
    }

    fn end(&self) -> Result<(), SweepError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let ledger = self.ledger.borrow();
        match ledger.is_complete() || self.user.borrow().stop.load(Relaxed) {
            true => Ok(()),
            false => Err(SweepError::Lost(ledger.missing())),
        }
    }
}

fn ranges(missing: &[RangeInclusive<u64>]) -> String {
    let range = |range: &RangeInclusive<u64>| match range.start() == range.end() {
        true => range.start().to_string(),
        false => format!("{} to {}", range.start(), range.end()),
    };
    let ranges: Vec<String> = missing.iter().map(range).collect();
    ranges.join(", ")
}
