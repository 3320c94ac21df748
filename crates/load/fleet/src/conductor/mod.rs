//! The conductor's side of a run: find agents, measure their clocks, prepare, start together, give orders.
//!
//! 1. [`Conductor::find`]: agents of the fleet.
//! 2. [`Conductor::prepare`]: each chosen agent gets the plan and its share.
//! 3. [`Conductor::clocks`]: offsets of all clocks.
//! 4. [`NoteReader::start`](crate::notes::NoteReader::start): before anything is sent.
//! 5. [`Conductor::start`]: arm all, then `go`; without all, nobody begins.
//! 6. [`Conductor::order`]: a pulse each second, `stop`, `release`.

pub mod discovery;
pub mod examination;
pub mod fleet;
pub mod jobs;
pub mod load;
pub mod offset;
pub mod studies;
pub mod sweep;

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::Request;
use async_nats::service::Info;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use posthaste_units::Span;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::time::Instant;

use self::discovery::FoundAgent;
use self::offset::{ClockEstimate, ClockExchange, estimate};
use crate::machine::clock::monotonic_ns;
use crate::nats::connection::Connection;
use crate::nats::traffic::{TrafficError, exchange, publish, request};
use crate::protocol::envelope::ProtocolVersion;
use crate::protocol::message::{
    AgentInfo, ArmReply, ArmRequest, ArmResult, BUSY, JobReply, JobRequest, OrderMessage,
    PrepareReply, PrepareRequest, PrepareResult, RunOrder, WorkResult,
};
use crate::protocol::names::{AgentName, RunId};
use crate::protocol::subjects::{INFO, Subjects};

/// Time limit of a request that needs no work.
const QUICK: Duration = Duration::from_secs(1);

/// Attempts to arm all agents of a run. Each has twice the lead of the one before.
const ATTEMPTS: u32 = 4;

/// Round-trip times between arming and the origin.
const ROUND_TRIPS: u64 = 10;

/// Time for each agent between arming and the origin, for the exchange of the messages.
const LEAD_PER_AGENT: Span = Span::from_micros(300);

/// Minimum time that is left for `go`.
const LEFT_FOR_GO: Span = Span::from_millis(50);

/// Maximum number of replies to a search.
const MAX_FOUND: usize = 10_000;

/// Conductor of a fleet.
#[derive(Clone, Debug)]
pub struct Conductor {
    connection: Connection,
    subjects: Subjects,
}

/// A failure with one agent.
#[derive(Debug, Error)]
pub enum AgentError {
    /// No valid reply.
    #[error("agent {agent}: {source}")]
    Traffic {
        /// The agent.
        agent: AgentName,
        /// The reason.
        source: TrafficError,
    },
    /// The agent does not take part.
    #[error("agent {agent}: {reason}")]
    Refused {
        /// The agent.
        agent: AgentName,
        /// The reason.
        reason: String,
    },
    /// No valid reply of the clock.
    #[error("agent {0}: its clock did not reply")]
    NoClock(AgentName),
}

/// A run that could not be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// Failures with agents, in the last attempt.
    #[error("not all agents could be armed:{}", list(.0))]
    Unarmed(Vec<AgentError>),
    /// All were armed too late.
    #[error("arming took longer than {0}: the network or this machine is too slow")]
    Slow(Span),
    /// The order was not sent.
    #[error("the order to start was not sent: {0}")]
    Order(#[from] TrafficError),
}

/// A started run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartedRun {
    /// The origin on the conductor's clock.
    pub origin_ns: u64,
}

fn list(errors: &[AgentError]) -> String {
    errors.iter().map(|error| format!("\n  {error}")).collect()
}

impl Conductor {
    /// A conductor of this fleet.
    pub fn new(connection: Connection, subjects: Subjects) -> Self {
        Self {
            connection,
            subjects,
        }
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The subjects of the fleet.
    pub fn subjects(&self) -> &Subjects {
        &self.subjects
    }

    /// Collects agents of the fleet until they are enough, or until the time limit.
    pub async fn find(
        &self,
        is_enough: impl Fn(&[FoundAgent]) -> bool,
        limit: Duration,
    ) -> Result<Vec<FoundAgent>, TrafficError> {
        let failed = |error: &dyn std::fmt::Display| TrafficError::Client(error.to_string());
        let client = self.connection.client();
        let inbox = client.new_inbox();
        let mut replies = client
            .subscribe(inbox.clone())
            .await
            .map_err(|error| failed(&error))?;
        let end = Instant::now() + limit;
        let mut found = Vec::new();
        // Asked again, because agents may connect meanwhile. The same agent replies with the same id.
        let mut ids = BTreeMap::new();
        let mut again = tokio::time::interval(QUICK);
        while !is_enough(&found) && found.len() < MAX_FOUND {
            tokio::select! {
                reply = replies.next() => {
                    let Some(reply) = reply else { break };
                    if let Some((id, agent)) = self.found(&reply.payload) {
                        let index = *ids.entry(id).or_insert(found.len());
                        match found.get_mut(index) {
                            Some(known) => *known = agent,
                            None => found.push(agent),
                        }
                    }
                }
                _ = again.tick() => {
                    let published = client.publish_with_reply(INFO, inbox.clone(), Bytes::new()).await;
                    published.map_err(|error| failed(&error))?;
                }
                () = tokio::time::sleep_until(end) => break,
            }
        }
        debug_assert_eq!(found.len(), ids.len(), "each agent is found once");
        Ok(found)
    }

    /// An agent of this fleet from its reply.
    fn found(&self, payload: &[u8]) -> Option<(String, FoundAgent)> {
        let reply: Info = serde_json::from_slice(payload).ok()?;
        let info = AgentInfo::from_metadata(&reply.metadata).ok()?;
        let busy = match reply.metadata.get(BUSY) {
            Some(run) => Some(run.parse().ok()?),
            None => None,
        };
        let is_ours = info.fleet == *self.subjects.fleet();
        is_ours.then_some((reply.id, FoundAgent { info, busy }))
    }

    /// Requests an agent to prepare a run.
    pub async fn prepare<P: Serialize, R: DeserializeOwned>(
        &self,
        agent: &AgentName,
        message: &PrepareRequest<P>,
        limit: Duration,
    ) -> Result<R, AgentError> {
        let subject = self.subjects.prepare(agent);
        let reply = request::<_, PrepareReply<R>>(&self.connection, subject, message, limit).await;
        let agent = agent.clone();
        match reply {
            Ok(PrepareReply {
                result: PrepareResult::Ready(ready),
                ..
            }) => Ok(ready),
            Ok(PrepareReply {
                result: PrepareResult::Refused(reason),
                ..
            }) => Err(AgentError::Refused { agent, reason }),
            Err(source) => Err(AgentError::Traffic { agent, source }),
        }
    }

    /// Measures the clocks of agents with this many exchanges, round robin.
    pub async fn clocks(
        &self,
        agents: &[AgentName],
        exchanges: usize,
    ) -> Result<Vec<ClockEstimate>, AgentError> {
        let mut measured = vec![Vec::with_capacity(exchanges); agents.len()];
        for _ in 0..exchanges {
            for (agent, measured) in agents.iter().zip(&mut measured) {
                measured.extend(self.exchange_clock(agent).await);
            }
        }
        let estimates = agents.iter().zip(measured).map(|(agent, measured)| {
            estimate(&measured).ok_or_else(|| AgentError::NoClock(agent.clone()))
        });
        estimates.collect()
    }

    /// True if an agent replies.
    pub(crate) async fn reaches(&self, agent: &AgentName) -> bool {
        self.exchange_clock(agent).await.is_some()
    }

    /// One exchange. `None` if it failed.
    async fn exchange_clock(&self, agent: &AgentName) -> Option<ClockExchange> {
        let (subject, request) = (
            self.subjects.clock(agent),
            Request::new().timeout(Some(QUICK)),
        );
        let sent_ns = monotonic_ns();
        let reply = exchange(&self.connection, subject, request, QUICK)
            .await
            .ok()?;
        let received_ns = monotonic_ns();
        let agent_ns = u64::from_be_bytes(reply.payload.as_ref().try_into().ok()?);
        Some(ClockExchange {
            sent_ns,
            agent_ns,
            received_ns,
        })
    }

    /// Starts a prepared run: arms all agents for one instant, at least `least_lead` from now, and orders `go` if all are
    /// armed in time. Otherwise it cancels, and tries again with twice the lead, four times at most. After an error the
    /// run is still prepared, and after [`StartError::Order`] some agents may have started: the caller gives the order
    /// to release it.
    pub async fn start(
        &self,
        run: RunId,
        agents: &[(AgentName, ClockEstimate)],
        least_lead: Span,
    ) -> Result<StartedRun, StartError> {
        let slowest = agents.iter().map(|(_, clock)| clock.round_trip).max();
        let round_trips = slowest.unwrap_or(Span::ZERO) * ROUND_TRIPS;
        let messages = round_trips + LEAD_PER_AGENT * agents.len() as u64;
        let mut lead = least_lead.max(messages);
        for _ in 1..ATTEMPTS {
            match self.try_start(run, agents, lead).await {
                Err(error @ (StartError::Unarmed(_) | StartError::Slow(_))) => {
                    tracing::warn!("{error}; trying again");
                    lead = lead + lead;
                }
                result => return result,
            }
        }
        self.try_start(run, agents, lead).await
    }

    async fn try_start(
        &self,
        run: RunId,
        agents: &[(AgentName, ClockEstimate)],
        lead: Span,
    ) -> Result<StartedRun, StartError> {
        let origin_ns = monotonic_ns() + lead.as_nanos();
        let armed = agents
            .iter()
            .map(|(agent, clock)| self.arm(run, agent, clock, origin_ns));
        let errors: Vec<_> = join_all(armed)
            .await
            .into_iter()
            .filter_map(Result::err)
            .collect();
        let left = Span::from_nanos(origin_ns.saturating_sub(monotonic_ns()));
        if errors.is_empty() && left >= LEFT_FOR_GO {
            self.order(run, RunOrder::Go).await?;
            return Ok(StartedRun { origin_ns });
        }
        self.order(run, RunOrder::Cancel).await?;
        if errors.is_empty() {
            Err(StartError::Slow(lead))
        } else {
            Err(StartError::Unarmed(errors))
        }
    }

    async fn arm(
        &self,
        run: RunId,
        agent: &AgentName,
        clock: &ClockEstimate,
        origin_ns: u64,
    ) -> Result<(), AgentError> {
        let origin_ns = clock.to_agent(origin_ns);
        let origin_ns = origin_ns.ok_or_else(|| AgentError::NoClock(agent.clone()))?;
        let message = ArmRequest {
            v: ProtocolVersion,
            run,
            origin_ns,
        };
        let subject = self.subjects.arm(agent);
        let reply = request::<_, ArmReply>(&self.connection, subject, &message, QUICK).await;
        let agent = agent.clone();
        match reply {
            Ok(ArmReply {
                result: ArmResult::Armed { .. },
                ..
            }) => Ok(()),
            Ok(ArmReply {
                result: ArmResult::Refused(reason),
                ..
            }) => Err(AgentError::Refused { agent, reason }),
            Err(source) => Err(AgentError::Traffic { agent, source }),
        }
    }

    /// Requests an agent to do a job of a run.
    pub async fn job<J: Serialize, R: DeserializeOwned>(
        &self,
        agent: &AgentName,
        run: RunId,
        job: &J,
        limit: Duration,
    ) -> Result<R, AgentError> {
        let message = JobRequest {
            v: ProtocolVersion,
            run,
            job,
        };
        let subject = self.subjects.job(agent);
        let reply = request::<_, JobReply<R>>(&self.connection, subject, &message, limit).await;
        let agent = agent.clone();
        match reply {
            Ok(JobReply {
                result: WorkResult::Done(result),
                ..
            }) => Ok(result),
            Ok(JobReply {
                result: WorkResult::Refused(reason),
                ..
            }) => Err(AgentError::Refused { agent, reason }),
            Err(source) => Err(AgentError::Traffic { agent, source }),
        }
    }

    /// Gives an order to all agents of a run.
    pub async fn order(&self, run: RunId, order: RunOrder) -> Result<(), TrafficError> {
        let message = OrderMessage {
            v: ProtocolVersion,
            order,
        };
        publish(&self.connection, self.subjects.run(run), &message, QUICK).await
    }
}
