//! Subjects, streams and bucket of a fleet. Names of protocol 1 start with `ph1`.

use crate::protocol::names::{AgentName, FleetName, RunId};

/// Name of the service that agents offer by the NATS service API.
pub const SERVICE: &str = "posthaste-agent";

/// Subject of the service API for the metadata of all agents.
pub const INFO: &str = "$SRV.INFO.posthaste-agent";

/// The subjects of one fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subjects {
    fleet: FleetName,
}

impl Subjects {
    /// The subjects of this fleet.
    pub fn new(fleet: FleetName) -> Self {
        Self { fleet }
    }

    /// The fleet.
    pub fn fleet(&self) -> &FleetName {
        &self.fleet
    }

    /// Requests for an agent's clock.
    pub fn clock(&self, agent: &AgentName) -> String {
        self.under(&format!("agent.{agent}.clock"))
    }

    /// Requests to prepare a run.
    pub fn prepare(&self, agent: &AgentName) -> String {
        self.under(&format!("agent.{agent}.prepare"))
    }

    /// Requests to arm a prepared run.
    pub fn arm(&self, agent: &AgentName) -> String {
        self.under(&format!("agent.{agent}.arm"))
    }

    /// Requests to an agent to do jobs.
    pub fn job(&self, agent: &AgentName) -> String {
        self.under(&format!("agent.{agent}.job"))
    }

    /// Orders to all agents of a run.
    pub fn run(&self, run: RunId) -> String {
        self.under(&format!("run.{run}"))
    }

    /// Orders to the agents of all runs, as a pattern.
    pub fn all_runs(&self) -> String {
        self.under("run.*")
    }

    /// Notes of an agent about a run.
    pub fn notes(&self, run: RunId, agent: &AgentName) -> String {
        self.under(&format!("notes.{run}.{agent}"))
    }

    /// Notes of all agents about a run, as a pattern.
    pub fn notes_of_run(&self, run: RunId) -> String {
        self.under(&format!("notes.{run}.*"))
    }

    /// Notes about all runs, as a pattern: the subject of the stream.
    pub fn all_notes(&self) -> String {
        self.under("notes.*.*")
    }

    /// The stream that stores notes.
    pub fn notes_stream(&self) -> String {
        format!("PH1_{}_NOTES", self.fleet)
    }

    /// The bucket that stores sealed files.
    pub fn files_bucket(&self) -> String {
        format!("ph1-{}-files", self.fleet)
    }

    /// Run and agent of the subject of a note. `None` for any other subject.
    pub fn note_source(&self, subject: &str) -> Option<(RunId, AgentName)> {
        let (run, agent) = subject
            .strip_prefix(&self.under("notes."))?
            .split_once('.')?;
        Some((run.parse().ok()?, agent.parse().ok()?))
    }

    /// Run of the subject of an order. `None` for any other subject.
    pub fn run_of_order(&self, subject: &str) -> Option<RunId> {
        subject.strip_prefix(&self.under("run."))?.parse().ok()
    }

    /// Identity of a note for the deduplication of JetStream (`Nats-Msg-Id`).
    pub fn note_id(run: RunId, agent: &AgentName, seq: u64) -> String {
        format!("{run}.{agent}.{seq}")
    }

    fn under(&self, rest: &str) -> String {
        format!("ph1.{}.{rest}", self.fleet)
    }
}
