//! The state of a fleet: the server, its storage, and each agent with its build and clock.

use std::time::Duration;

use serde::Serialize;
use tokio::runtime::Builder;

use crate::conductor::Conductor;
use crate::conductor::discovery::FoundAgent;
use crate::conductor::fleet::FleetError;
use crate::conductor::offset::EXCHANGES;
use crate::machine::identity::Identity;
use crate::machine::numerics::numerics;
use crate::nats::connection::{Connection, NatsOptions};
use crate::nats::storage::Storage;
use crate::protocol::names::FleetName;
use crate::protocol::subjects::Subjects;

/// Time in which agents answer.
const SEARCH: Duration = Duration::from_secs(1);

/// The state of a fleet.
#[derive(Clone, Debug, Serialize)]
pub struct FleetState {
    /// Version of the NATS server.
    pub server: String,
    /// True if the connection to it is encrypted.
    pub is_encrypted: bool,
    /// The reason why the server stores nothing, if it does not.
    pub storage_error: Option<String>,
    /// The agents that answered, by name.
    pub agents: Vec<AgentState>,
}

/// The state of one agent.
#[derive(Clone, Debug, Serialize)]
pub struct AgentState {
    /// Its name.
    pub name: String,
    /// Its event loops.
    pub loops: u32,
    /// Permitted targets.
    pub allow: String,
    /// Its version.
    pub version: String,
    /// True if it runs the same build as this program.
    pub has_same_build: bool,
    /// True if its mathematical functions have the same results to the last bit, as Poisson arrivals need.
    pub has_same_numerics: bool,
    /// True if a run uses it.
    pub is_busy: bool,
    /// Least round-trip time in milliseconds. None if its clock did not answer.
    pub round_trip_ms: Option<f64>,
    /// Bound of the error of its clock's difference in milliseconds.
    pub clock_bound_ms: Option<f64>,
}

/// Examines the fleet. Agents that do not answer within a second are not found.
pub fn examine(options: &NatsOptions, fleet: &FleetName) -> Result<FleetState, FleetError> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(state(options, fleet))
}

async fn state(options: &NatsOptions, fleet: &FleetName) -> Result<FleetState, FleetError> {
    let identity = Identity::of_this_program()?;
    let connection = Connection::open(options).await?;
    let subjects = Subjects::new(fleet.clone());
    let storage = Storage::new(&connection, subjects.clone());
    let stored = storage.ensure().await;
    let info = connection.client().server_info();
    let conductor = Conductor::new(connection, subjects);
    let found = conductor.find(|_| false, SEARCH).await;
    let mut found = found.map_err(FleetError::Search)?;
    found.sort_by(|one, other| one.info.name.cmp(&other.info.name));
    let mut agents = Vec::new();
    for agent in found {
        agents.push(agent_state(&conductor, agent, &identity).await);
    }
    Ok(FleetState {
        server: info.version,
        is_encrypted: info.tls_required,
        storage_error: stored.err().map(|error| error.to_string()),
        agents,
    })
}

async fn agent_state(conductor: &Conductor, agent: FoundAgent, identity: &Identity) -> AgentState {
    let name = std::slice::from_ref(&agent.info.name);
    let clock = conductor.clocks(name, EXCHANGES).await.ok();
    let clock = clock.and_then(|clocks| clocks.first().copied());
    AgentState {
        name: agent.info.name.to_string(),
        loops: agent.info.loops,
        allow: agent.info.allow,
        has_same_build: agent.info.build == identity.build,
        has_same_numerics: agent.info.numerics == numerics(),
        version: agent.info.version,
        is_busy: agent.busy.is_some(),
        round_trip_ms: clock.map(|clock| clock.round_trip.as_millis_f64()),
        clock_bound_ms: clock.map(|clock| clock.bound.as_millis_f64()),
    }
}
