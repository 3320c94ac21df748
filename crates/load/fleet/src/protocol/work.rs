//! Plans, jobs and results of each kind of work, as they are sent: load, sweeps, and studies in virtual time.

use posthaste_load::Plan;
use posthaste_sim::{JobResult, SweepJob};
use serde::{Deserialize, Serialize};

/// The work of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentPlan {
    /// A share of a plan of load.
    Load(SentPlan),
    /// Jobs of a sweep.
    Sweep(SweepDescription),
    /// Studies in virtual time.
    Studies(StudyRun),
}

/// A job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentJob {
    /// Transactions of a sweep.
    Sweep(SweepJob),
    /// The study with this name.
    Study(String),
}

/// The result of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobOutput {
    /// Transactions of a sweep.
    Sweep(JobResult),
    /// A study.
    Study(StudyOutput),
}

/// Facts about prepared work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentFacts {
    /// A share of a plan of load.
    Load(PreparedFacts),
    /// The number of cases of a sweep.
    Sweep(usize),
    /// Studies need no preparation.
    Studies,
}

/// The plan of a run of load.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SentPlan {
    /// In the message.
    Inline(Box<Plan>),
    /// As JSON in the sealed file of this name.
    File(String),
}

/// Facts about a prepared share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreparedFacts {
    /// Event loops that are ready.
    pub loops: u32,
    /// Maximum number of open connections.
    pub connections: u64,
    /// The servers with the addresses to which connections will be opened.
    pub servers: Vec<String>,
}

/// The end of an agent's share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndFacts {
    /// True if it was stopped before the end of the plan.
    pub is_stopped: bool,
    /// The reason why it could not be carried out.
    pub error: Option<String>,
}

/// A sweep, as it is sent. Agents of the same build read the same cases from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepDescription {
    /// Options of `posthaste simulate` that make the cases. None of them names a file.
    pub options: Vec<String>,
    /// The text of the pattern, if there is one.
    pub pattern: Option<String>,
    /// The seed.
    pub seed: u64,
}

/// A run of studies, as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyRun {
    /// True for a run as long as the paper's.
    pub full: bool,
    /// The seed of the whole run.
    pub seed: u64,
}

/// The result of a study, as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StudyOutput {
    /// Its records.
    Records(String),
    /// The error of a study that cannot be carried out.
    Failed(String),
}
