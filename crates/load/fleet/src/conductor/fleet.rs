//! The agents of a command: found, compared with this program, and chosen.

use std::time::Duration;

use posthaste_units::Span;
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};

use crate::conductor::discovery::{
    AgentRequirements, FoundAgent, TooFewAgents, WantedAgents, choose,
};
use crate::conductor::{AgentError, Conductor, StartError};
use crate::machine::identity::Identity;
use crate::machine::numerics::numerics;
use crate::nats::connection::{Connection, ConnectionError, NatsOptions};
use crate::nats::storage::StorageError;
use crate::nats::traffic::TrafficError;
use crate::protocol::allot::AllotError;
use crate::protocol::names::{AgentName, FleetName};
use crate::protocol::subjects::Subjects;

/// Time limit of a search for agents.
const SEARCH: Duration = Duration::from_secs(5);

/// Options of a command with agents.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// The NATS server.
    pub nats: NatsOptions,
    /// The agents' fleet.
    pub fleet: FleetName,
    /// The agents of the run.
    pub agents: WantedAgents,
}

/// Equalities that a command needs of its agents, besides their build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetNeeds {
    /// Equal results of mathematical functions.
    pub numerics: bool,
    /// One model of processor.
    pub processor: bool,
}

/// Reasons why agents have no results.
#[derive(Debug, Error)]
pub enum FleetError {
    /// No runtime.
    #[error("cannot start a connection: {0}")]
    System(#[from] std::io::Error),
    /// No connection.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// No storage.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A failed search.
    #[error("cannot search for agents: {0}")]
    Search(#[source] TrafficError),
    /// Too few agents.
    #[error(transparent)]
    TooFew(#[from] TooFewAgents),
    /// Agents that cannot share a plan.
    #[error(transparent)]
    Allot(#[from] AllotError),
    /// An agent that cannot take part.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A clock that is not known well enough.
    #[error(
        "the clock of agent {agent} is known to within {bound} only, and a common start needs 50 ms: \
         use a NATS server that is nearer, or --loose-start"
    )]
    Clock {
        /// The agent.
        agent: AgentName,
        /// The bound of the error.
        bound: Span,
    },
    /// A failed start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Decoding that depends on the processor.
    #[error(
        "--slowdown is relative to the processor, and the agents have different ones ({0}): leave it out, or choose agents with one processor"
    )]
    Processors(String),
    /// A plan that cannot be sent.
    #[error("the plan cannot be sent: {0}")]
    Plan(#[from] serde_json::Error),
}

/// Agents that work together for one command.
pub struct AgentFleet {
    pub(crate) runtime: Runtime,
    pub(crate) conductor: Conductor,
    options: FleetOptions,
    needs: FleetNeeds,
    identity: Identity,
    pub(crate) chosen: Vec<FoundAgent>,
}

impl AgentFleet {
    /// Connects and finds agents.
    pub fn find(options: FleetOptions, needs: FleetNeeds) -> Result<Self, FleetError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let identity = Identity::of_this_program()?;
        let connection = runtime.block_on(Connection::open(&options.nats))?;
        let subjects = Subjects::new(options.fleet.clone());
        let mut fleet = Self {
            runtime,
            conductor: Conductor::new(connection, subjects),
            options,
            needs,
            identity,
            chosen: Vec::new(),
        };
        fleet.choose()?;
        Ok(fleet)
    }

    /// Event loops of the chosen agents.
    pub fn loops(&self) -> usize {
        self.chosen
            .iter()
            .map(|agent| agent.info.loops as usize)
            .sum()
    }

    /// Names of the chosen agents.
    pub fn names(&self) -> impl Iterator<Item = &AgentName> {
        self.chosen.iter().map(|agent| &agent.info.name)
    }

    /// Finds agents, and chooses among them. Replaces those chosen before.
    pub(crate) fn choose(&mut self) -> Result<(), FleetError> {
        let numerics = numerics();
        let requirements = AgentRequirements {
            build: &self.identity.build,
            version: &self.identity.version,
            numerics: self.needs.numerics.then_some(&*numerics),
        };
        let wanted = &self.options.agents;
        let is_enough = |found: &[FoundAgent]| wanted.is_met_by(found, requirements);
        let found = self.conductor.find(is_enough, SEARCH);
        let found = self.runtime.block_on(found).map_err(FleetError::Search)?;
        self.chosen = choose(wanted, &found, requirements)?;
        if self.needs.processor {
            self.check_processors()
        } else {
            Ok(())
        }
    }

    fn check_processors(&self) -> Result<(), FleetError> {
        let mut processors: Vec<&str> = self
            .chosen
            .iter()
            .map(|agent| &*agent.info.processor)
            .collect();
        processors.sort_unstable();
        processors.dedup();
        match processors.len() {
            0 | 1 => Ok(()),
            _ => Err(FleetError::Processors(processors.join(", "))),
        }
    }
}
