//! The conductor of jobs: one job under way for each slot of the agents, until each job has a result.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::{join_all, select};
use posthaste_units::Span;
use thiserror::Error;
use tokio::time::{Instant, sleep};

use super::JobBook;
use super::failures::{ABSENCE, SlotFailures};
use crate::conductor::fleet::{AgentFleet, FleetError};
use crate::conductor::{AgentError, Conductor, StartError};
use crate::machine::clock::monotonic_ns;
use crate::nats::traffic::TrafficError;
use crate::protocol::allot::AgentShare;
use crate::protocol::envelope::ProtocolVersion;
use crate::protocol::message::{PrepareRequest, RunOrder};
use crate::protocol::names::{AgentName, RunId};
use crate::protocol::work::{AgentFacts, JobOutput};

/// Time limit of a preparation.
const PREPARATION: Duration = Duration::from_secs(30);
/// Interval of pulses, and of looks at the order to stop.
const PULSE: Duration = Duration::from_millis(500);
/// Time between arming and the origin. Agents do jobs from the order to go on, so that a long time delays nothing.
const LEAD: Span = Span::from_millis(5_000);
/// Exchanges with a clock: jobs need no exact start.
const EXCHANGES: usize = 4;
/// Time limit of a job: machines are busy.
const JOB: Duration = Duration::from_secs(3600);
/// Duration of a job after which another agent repeats it, once no other job is left.
const SLOW: Duration = Duration::from_secs(5);
/// Interval of looks whether an agent with a job is still there.
const LOOK: Duration = Duration::from_secs(5);
/// Pause of a slot after a failed job, and without a job.
const PAUSE: Duration = Duration::from_millis(200);

/// Reasons why jobs have no results.
#[derive(Debug, Error)]
pub enum JobsError {
    /// Agents that cannot be used.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// A result that cannot be used.
    #[error("{0}")]
    Result(String),
    /// No agent left.
    #[error("all agents are lost; these jobs have no result: {}", .0.join(", "))]
    Lost(Vec<String>),
}

/// The user of jobs.
#[derive(Clone, Copy)]
pub struct JobsUser<'u> {
    /// Ends the run early.
    pub stop: &'u AtomicBool,
    /// Takes messages.
    pub notice: &'u dyn Fn(&str),
}

/// Jobs in progress.
struct JobsRun<'s> {
    conductor: &'s Conductor,
    run: RunId,
    book: &'s dyn JobBook,
    user: JobsUser<'s>,
    /// Jobs that nobody does.
    queue: RefCell<VecDeque<u64>>,
    /// Jobs under way, by number.
    under_way: RefCell<BTreeMap<u64, JobUnderWay<'s>>>,
    /// The error that ends the run.
    error: RefCell<Option<String>>,
}

/// A job that agents do.
struct JobUnderWay<'s> {
    agents: Vec<&'s AgentName>,
    since: Instant,
}

impl AgentFleet {
    /// Lets the agents do the jobs that have no result. Returns when all have one or the user stops.
    pub(crate) fn do_jobs(
        &mut self,
        book: &dyn JobBook,
        user: JobsUser<'_>,
    ) -> Result<(), JobsError> {
        let agents: Vec<(AgentName, u32)> = self
            .chosen
            .iter()
            .map(|agent| (agent.info.name.clone(), agent.info.loops))
            .collect();
        let run = JobsRun {
            conductor: &self.conductor,
            run: RunId::random(),
            book,
            user,
            queue: RefCell::new(book.missing().into_iter().flatten().collect()),
            under_way: RefCell::default(),
            error: RefCell::default(),
        };
        self.runtime.block_on(run.carry_out(&agents))
    }
}

impl<'s> JobsRun<'s> {
    /// The stages of a run. The agents are released at its end.
    async fn carry_out(&self, agents: &'s [(AgentName, u32)]) -> Result<(), JobsError> {
        let result = async {
            self.begin(agents).await?;
            let slots = agents.iter().flat_map(|(agent, loops)| {
                (0..self.book.slots(*loops)).map(move |_| self.serve_slot(agent))
            });
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
    async fn begin(&self, agents: &[(AgentName, u32)]) -> Result<(), FleetError> {
        let share = AgentShare::new(0, 1)?;
        let prepared = agents.iter().map(|(agent, _)| {
            let request = PrepareRequest {
                v: ProtocolVersion,
                run: self.run,
                plan: self.book.plan(),
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

    /// Keeps a slot of an agent at work until each job has a result, or the agent is lost.
    async fn serve_slot(&self, agent: &'s AgentName) {
        let mut failures = SlotFailures::default();
        while !self.is_over() {
            self.conductor.connection().wait().await;
            let Some(number) = self.take_job(agent) else {
                sleep(PAUSE).await;
                continue;
            };
            let done = self.request(agent, number).await;
            self.give_back(number, agent, matches!(done, Some(Ok(_))));
            match done {
                None => failures.disconnected(),
                Some(Ok(output)) => {
                    failures = SlotFailures::default();
                    if let Err(error) = self.book.receive(number, agent, output) {
                        self.error.replace(Some(error));
                    }
                }
                Some(Err(_)) if !self.conductor.connection().is_connected() => {
                    failures.disconnected();
                }
                Some(Err(error)) => {
                    if failures.record(&error, monotonic_ns()) {
                        (self.user.notice)(&format!("no more jobs for {error}"));
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
        number: u64,
    ) -> Option<Result<JobOutput, AgentError>> {
        let mut connects = self.conductor.connection().connects();
        connects.mark_unchanged();
        let job = self.book.job(number);
        tokio::select! {
            reply = self.conductor.job(agent, self.run, &job, JOB) => Some(reply),
            _ = connects.changed() => None,
            absent = self.wait_for_absence(agent) => Some(Err(absent)),
        }
    }

    /// Waits until an agent has not been reachable for a while: its reply will not come.
    async fn wait_for_absence(&self, agent: &AgentName) -> AgentError {
        let mut reached = Instant::now();
        while Span::from(reached.elapsed()) < ABSENCE {
            sleep(LOOK).await;
            if !self.conductor.connection().is_connected() || self.conductor.reaches(agent).await {
                reached = Instant::now();
            }
        }
        AgentError::Traffic {
            agent: agent.clone(),
            source: TrafficError::NoResponder,
        }
    }

    /// Takes a job that nobody does, or else a slow one that only another agent does.
    fn take_job(&self, agent: &'s AgentName) -> Option<u64> {
        let queued = self.queue.borrow_mut().pop_front();
        let mut under_way = self.under_way.borrow_mut();
        if let Some(number) = queued {
            let begun = JobUnderWay {
                agents: vec![agent],
                since: Instant::now(),
            };
            let other = under_way.insert(number, begun);
            assert!(other.is_none(), "a queued job is not under way");
            return Some(number);
        }
        // Two agents are enough: more would only repeat.
        let is_open = |(_, slow): &(&u64, &mut JobUnderWay<'_>)| {
            slow.agents.len() == 1 && slow.agents[0] != agent && slow.since.elapsed() > SLOW
        };
        let (number, slow) = under_way.iter_mut().find(is_open)?;
        slow.agents.push(agent);
        Some(*number)
    }

    /// Records that an agent has ended a job. One that failed everywhere is queued again.
    fn give_back(&self, number: u64, agent: &AgentName, is_done: bool) {
        let mut under_way = self.under_way.borrow_mut();
        let Some(begun) = under_way.get_mut(&number) else {
            return;
        };
        begun.agents.retain(|other| *other != agent);
        if is_done {
            under_way.remove(&number);
        } else if begun.agents.is_empty() {
            under_way.remove(&number);
            self.queue.borrow_mut().push_front(number);
        }
    }

    fn is_over(&self) -> bool {
        let has_error = self.error.borrow().is_some();
        has_error || self.book.is_complete() || self.user.stop.load(Relaxed)
    }

    /// Gives pulses until the run is over.
    async fn watch(&self) {
        while !self.is_over() {
            if self.conductor.connection().is_connected() {
                // A lost pulse is replaced by the next.
                let _ = self.conductor.order(self.run, RunOrder::Pulse).await;
            }
            sleep(PULSE).await;
        }
    }

    fn end(&self) -> Result<(), JobsError> {
        if let Some(error) = self.error.take() {
            return Err(JobsError::Result(error));
        }
        if self.book.is_complete() || self.user.stop.load(Relaxed) {
            return Ok(());
        }
        let missing = self.book.missing();
        assert!(!missing.is_empty(), "an incomplete book misses results");
        let names = missing.iter().map(|numbers| self.book.name(numbers));
        Err(JobsError::Lost(names.collect()))
    }
}
