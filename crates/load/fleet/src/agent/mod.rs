//! The agent's side of a run: replies to requests, follows orders, and publishes notes.
//!
//! An [`Agent`] owns the protocol; an [`AgentHandler`] owns the event loops. The loops take no part in the protocol:
//! they send notes into a buffer, and are told to start and to stop.

pub mod allow;
pub mod assignment;
mod serve;
mod service;
mod work;

use std::future::Future;
use std::pin::pin;
use std::sync::PoisonError;
use std::time::Duration;

use async_nats::{Message, Subscriber};
use futures_util::StreamExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::assignment::{AgentLimits, Assignment, AssignmentAction, AssignmentError, ForgetReason};
pub use self::serve::{AgentService, AgentServiceError, serve_agent};
use self::service::{PresentRun, ServiceTask};
pub use self::work::{
    AgentWork, LoadAgent, LoadAgentOptions, ScenarioReader, StudyAgent, StudyRunner, SweepAgent,
};
use crate::machine::clock::monotonic_ns;
use crate::nats::connection::Connection;
use crate::nats::storage::Storage;
use crate::nats::traffic::{TrafficError, encoded, read};
use crate::notes::{Merge, NotePublisher, NoteSender, PublisherReport, channel};
use crate::protocol::envelope::ProtocolVersion;
use crate::protocol::message::{
    AgentInfo, ArmReply, ArmRequest, ArmResult, JobReply, JobRequest, OrderMessage, PrepareReply,
    PrepareRequest, PrepareResult, WorkResult,
};
use crate::protocol::names::RunId;
use crate::protocol::subjects::Subjects;

/// Interval of checks of the state.
const TICK: Duration = Duration::from_millis(20);

/// Time limit of the last notes of an agent that ends.
const LEAVING: Duration = Duration::from_secs(10);

/// The work of an agent.
pub trait AgentHandler {
    /// A plan, equal for all agents of a run.
    type Plan: DeserializeOwned;
    /// Facts about a preparation.
    type Ready: Serialize;
    /// Results of a second, and of a run.
    type Sum: Serialize + Merge + Send + 'static;
    /// Closing facts of a run.
    type End: Serialize + Send + 'static;
    /// A job of a run.
    type Job: DeserializeOwned;
    /// The result of a job.
    type JobResult: Serialize + Send + Sync + 'static;

    /// Prepares a run: fetches files, checks targets, resolves names, starts threads. The error is the reason of a
    /// refusal. Must not block the thread for long.
    fn prepare(
        &mut self,
        request: PrepareRequest<Self::Plan>,
        storage: &Storage,
    ) -> impl Future<Output = Result<Self::Ready, String>>;

    /// Starts the prepared run at the origin, on the clock [`monotonic_ns`]. `notes` takes its results.
    fn start(&mut self, run: RunId, origin_ns: u64, notes: NoteSender<Self::Sum, Self::End>);

    /// Stops the run at this time after the origin. Total and end follow.
    fn stop(&mut self, at_ns: u64);

    /// Stops the run at once, if it was started, and frees everything.
    fn forget(&mut self, run: RunId, reason: ForgetReason);

    /// Does a job of the run. Jobs are done at the same time, as many as the agent has event loops. The error is the
    /// reason of a refusal.
    fn work(
        &mut self,
        job: Self::Job,
    ) -> impl Future<Output = Result<Self::JobResult, String>> + Send + 'static;
}

/// An agent that is connected.
pub struct Agent {
    connection: Connection,
    subjects: Subjects,
    info: AgentInfo,
    assignment: Assignment,
    run: PresentRun,
    publisher: Option<JoinHandle<PublisherReport>>,
}

/// A failure that ends an agent.
#[derive(Debug, Error)]
pub enum AgentFailure {
    /// Refused subscriptions.
    #[error("the NATS server accepts no subscription: {0}")]
    Subscribe(#[from] async_nats::SubscribeError),
    /// The client was closed.
    #[error("the connection to the NATS server was closed")]
    Closed,
}

struct Requests {
    prepare: Subscriber,
    arm: Subscriber,
    orders: Subscriber,
    jobs: Subscriber,
}

impl Agent {
    /// An idle agent with these properties.
    pub fn new(connection: Connection, info: AgentInfo, limits: AgentLimits) -> Self {
        Self {
            connection,
            subjects: Subjects::new(info.fleet.clone()),
            info,
            assignment: Assignment::new(limits),
            run: PresentRun::default(),
            publisher: None,
        }
    }

    /// Serves until `leave` is ready, such as after SIGTERM. A running run is then stopped, and its total and end are
    /// published, for at most 10 s.
    pub async fn serve<H: AgentHandler>(
        &mut self,
        handler: &mut H,
        leave: impl Future<Output = ()>,
    ) -> Result<(), AgentFailure> {
        let client = self.connection.client().clone();
        let mut requests = Requests {
            prepare: client
                .subscribe(self.subjects.prepare(&self.info.name))
                .await?,
            arm: client.subscribe(self.subjects.arm(&self.info.name)).await?,
            orders: client.subscribe(self.subjects.all_runs()).await?,
            jobs: client.subscribe(self.subjects.job(&self.info.name)).await?,
        };
        let run = self.run.clone();
        let service = ServiceTask::start(&self.connection, &self.subjects, &self.info, run);
        let _service = service.await?;
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut leave = pin!(leave);
        let mut end = None;
        while end.is_none_or(|end| self.is_publishing() && Instant::now() < end) {
            tokio::select! {
                biased;
                () = &mut leave, if end.is_none() => {
                    end = Some(Instant::now() + LEAVING);
                    let action = self.assignment.leave(monotonic_ns());
                    self.act(handler, action);
                }
                message = requests.orders.next() => {
                    let message = message.ok_or(AgentFailure::Closed)?;
                    self.follow(handler, &message);
                }
                message = requests.arm.next() => {
                    let message = message.ok_or(AgentFailure::Closed)?;
                    self.arm(&message).await;
                }
                message = requests.prepare.next() => {
                    let message = message.ok_or(AgentFailure::Closed)?;
                    self.prepare(handler, &message).await;
                }
                message = requests.jobs.next() => {
                    let message = message.ok_or(AgentFailure::Closed)?;
                    self.work(handler, message);
                }
                _ = tick.tick() => {
                    let is_connected = self.connection.is_connected();
                    let action = self.assignment.tick(monotonic_ns(), is_connected);
                    self.act(handler, action);
                }
            }
            self.show_run();
        }
        Ok(())
    }

    /// True if notes of a run are under way.
    fn is_publishing(&self) -> bool {
        let publisher = self.publisher.as_ref();
        publisher.is_some_and(|publisher| !publisher.is_finished())
    }

    async fn prepare<H: AgentHandler>(&mut self, handler: &mut H, message: &Message) {
        let request = match read::<PrepareRequest<H::Plan>>(message) {
            Ok(request) => request,
            Err(error) => {
                let result = PrepareResult::<H::Ready>::Refused(error.to_string());
                return self
                    .reply(
                        message,
                        &PrepareReply {
                            v: ProtocolVersion,
                            result,
                        },
                    )
                    .await;
            }
        };
        let result = match self.assignment.prepare(monotonic_ns(), request.run) {
            Ok(()) => {
                self.show_run();
                let storage = Storage::new(&self.connection, self.subjects.clone());
                let prepared = handler.prepare(request, &storage).await;
                self.assignment.prepared(monotonic_ns(), prepared.is_ok());
                prepared.map_or_else(PrepareResult::Refused, PrepareResult::Ready)
            }
            Err(error) => PrepareResult::Refused(error.to_string()),
        };
        self.reply(
            message,
            &PrepareReply {
                v: ProtocolVersion,
                result,
            },
        )
        .await;
    }

    async fn arm(&mut self, message: &Message) {
        let armed = match read::<ArmRequest>(message) {
            Ok(ArmRequest { run, origin_ns, .. }) => {
                let armed = self.assignment.arm(monotonic_ns(), run, origin_ns);
                armed.map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        let result = match armed {
            Ok(left) => ArmResult::Armed {
                left_ns: left.as_nanos(),
            },
            Err(reason) => ArmResult::Refused(reason),
        };
        self.reply(
            message,
            &ArmReply {
                v: ProtocolVersion,
                result,
            },
        )
        .await;
    }

    fn follow<H: AgentHandler>(&mut self, handler: &mut H, message: &Message) {
        let Some(run) = self.subjects.run_of_order(&message.subject) else {
            return;
        };
        // Orders to other agents may be of other builds.
        if self.assignment.run() != Some(run) {
            return;
        }
        match read::<OrderMessage>(message) {
            Ok(OrderMessage { order, .. }) => {
                let action = self.assignment.order(monotonic_ns(), run, order);
                self.act(handler, action);
            }
            Err(error) => tracing::warn!("an order for run {run}: {error}"),
        }
    }

    fn act<H: AgentHandler>(&mut self, handler: &mut H, action: Option<AssignmentAction>) {
        match action {
            None => {}
            Some(AssignmentAction::Start { run, origin_ns }) => {
                let notes = self.publish::<H>(run);
                handler.start(run, origin_ns, notes);
            }
            Some(AssignmentAction::Stop { at_ns }) => handler.stop(at_ns),
            Some(AssignmentAction::Forget { run, reason }) => {
                handler.forget(run, reason);
                if reason != ForgetReason::Released {
                    tracing::warn!("run {run}: {reason}");
                }
                if reason == ForgetReason::NoGo {
                    // A note ends by itself, and a later run replaces the task.
                    self.publish::<H>(run).stood_down(reason.to_string());
                } else if let Some(publisher) = self.publisher.take() {
                    publisher.abort();
                }
            }
        }
    }

    /// Starts the publisher of a run.
    fn publish<H: AgentHandler>(&mut self, run: RunId) -> NoteSender<H::Sum, H::End> {
        let (sender, source) = channel();
        let name = self.info.name.clone();
        let publisher = NotePublisher::new(self.connection.clone(), &self.subjects, run, name);
        let task = tokio::spawn(publisher.publish(source));
        if let Some(former) = self.publisher.replace(task) {
            former.abort();
        }
        sender
    }

    /// Begins a job of the running run. Its reply follows when it is done.
    fn work<H: AgentHandler>(&mut self, handler: &mut H, message: Message) {
        let job = match read::<JobRequest<H::Job>>(&message) {
            Ok(JobRequest { run, job, .. }) if self.assignment.is_running(run) => Ok(job),
            Ok(JobRequest { run, .. }) => Err(AssignmentError::NotRunning(run).to_string()),
            Err(error) => Err(error.to_string()),
        };
        let work = job.map(|job| handler.work(job));
        let connection = self.connection.clone();
        tokio::spawn(async move {
            let done = match work {
                Ok(work) => work.await,
                Err(reason) => Err(reason),
            };
            let result = done.map_or_else(WorkResult::Refused, WorkResult::Done);
            let v = ProtocolVersion;
            let sent = reply(&connection, &message, &JobReply { v, result }).await;
            if let Err(error) = sent {
                tracing::warn!("the result of a job: {error}");
                let result = WorkResult::<H::JobResult>::Refused(error.to_string());
                // A reason is short.
                let _ = reply(&connection, &message, &JobReply { v, result }).await;
            }
        });
    }

    async fn reply<T: Serialize>(&self, message: &Message, content: &T) {
        if let Err(error) = reply(&self.connection, message, content).await {
            tracing::warn!("a reply: {error}");
        }
    }

    fn show_run(&self) {
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = self.assignment.run();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(publisher) = &self.publisher {
            publisher.abort();
        }
    }
}

/// Replies to a request. A lost reply is a lost message: the conductor's request fails.
async fn reply<T: Serialize>(
    connection: &Connection,
    message: &Message,
    content: &T,
) -> Result<(), TrafficError> {
    let Some(subject) = message.reply.clone() else {
        return Ok(());
    };
    let (headers, body) = encoded(connection, content)?;
    let headers = headers.unwrap_or_default();
    let client = connection.client();
    let _ = client
        .publish_with_headers(subject, headers, body.into())
        .await;
    Ok(())
}
