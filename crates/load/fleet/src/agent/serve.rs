//! The life of an agent: connect, serve conductors, and leave without loss.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use posthaste_units::Span;
use thiserror::Error;
use tokio::runtime::Builder;

use super::assignment::AgentLimits;
use super::work::{
    AgentWork, LoadAgent, LoadAgentOptions, ScenarioReader, StudyAgent, StudyRunner, SweepAgent,
};
use super::{Agent, AgentFailure};
use crate::machine::identity::Identity;
use crate::machine::numerics::numerics;
use crate::nats::connection::{Connection, ConnectionError, NatsOptions};
use crate::protocol::allot::loops_in_words;
use crate::protocol::message::AgentInfo;
use crate::protocol::names::{AgentName, FleetName};

/// Interval of looks at the order to stop.
const CHECK: Duration = Duration::from_millis(50);

/// Settings of an agent.
#[derive(Clone, Debug)]
pub struct AgentService {
    /// The NATS server.
    pub nats: NatsOptions,
    /// Its fleet.
    pub fleet: FleetName,
    /// Its name.
    pub name: AgentName,
    /// Longest run.
    pub longest_run: Span,
    /// Event loops and limits.
    pub options: LoadAgentOptions,
    /// Reads the cases of sweeps.
    pub scenarios: ScenarioReader,
    /// Runs studies in virtual time.
    pub studies: StudyRunner,
}

/// Reasons why an agent does not serve.
#[derive(Debug, Error)]
pub enum AgentServiceError {
    /// The system refuses a resource.
    #[error("cannot start the agent: {0}")]
    System(#[from] std::io::Error),
    /// No connection.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// A failure in service.
    #[error(transparent)]
    Agent(#[from] AgentFailure),
}

/// Serves conductors until `stop` is set. A run in progress is stopped then, and its results are delivered.
pub fn serve_agent(service: AgentService, stop: &AtomicBool) -> Result<(), AgentServiceError> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(service, stop))
}

async fn serve(service: AgentService, stop: &AtomicBool) -> Result<(), AgentServiceError> {
    let info = service.info()?;
    let connection = Connection::open(&service.nats).await?;
    let loops = loops_in_words(info.loops as usize);
    tracing::info!(
        "agent {}: {loops}, permitted targets {}",
        info.name,
        info.allow
    );
    let slots = service.options.loops as usize;
    let sweep = SweepAgent::new(service.scenarios, slots);
    let threads = NonZero::new(slots).expect("an agent has event loops");
    let studies = StudyAgent::new(service.studies, threads);
    let mut handler = AgentWork::new(LoadAgent::new(service.options), sweep, studies);
    let limits = AgentLimits {
        longest_run: service.longest_run,
    };
    let mut agent = Agent::new(connection, info, limits);
    Ok(agent.serve(&mut handler, until_set(stop)).await?)
}

async fn until_set(stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        tokio::time::sleep(CHECK).await;
    }
}

impl AgentService {
    /// The properties that conductors see.
    fn info(&self) -> std::io::Result<AgentInfo> {
        let identity = Identity::of_this_program()?;
        Ok(AgentInfo {
            name: self.name.clone(),
            fleet: self.fleet.clone(),
            build: identity.build,
            version: identity.version,
            numerics: numerics(),
            loops: self.options.loops,
            processor: identity.processor,
            descriptors: posthaste_serve::open_files(),
            allow: self.options.allow.to_string(),
            machine: identity.machine,
        })
    }
}
