//! Studies in virtual time on agents: each job is a whole study.
//!
//! 1. The conductor ([`AgentFleet::simulate_studies`](crate::fleet::AgentFleet::simulate_studies)) sends the seed and the
//!    length of the run to all agents, and then the names of studies.
//! 2. An agent ([`StudyAgent`]) runs a study, and replies with its records. It runs one at a time, on as many threads as
//!    it has event loops.
//!
//! Records are text of the caller. Every later result of a study must equal the first.

mod conductor;
mod worker;

use serde::{Deserialize, Serialize};

pub use worker::{StudyAgent, StudyRunner};

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
