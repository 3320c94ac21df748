//! The agents of a run, for its report.

use serde::{Deserialize, Serialize};

use crate::generator::Generator;

/// The part of one agent in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentReport {
    /// Its name.
    pub name: String,
    /// Its event loops.
    pub loops: u64,
    /// The servers with the addresses that it used.
    pub servers: Vec<String>,
    /// Requests that became due.
    pub intended: u64,
    /// Requests that are `lost`.
    pub lost: u64,
    /// Bound of the error of its clock against the conductor's: it started within this time of the common instant.
    pub clock_bound_ms: f64,
    /// Change of the difference between the clocks until the end of the run. None if it could not be measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clock_drift_ms: Option<f64>,
    /// Its influence on the run.
    pub generator: Generator,
    /// Doubts about its part of the run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
}

/// The first agent that was the limit, with its reason.
pub(crate) fn limit(agents: &[AgentReport]) -> Option<String> {
    let reason = |agent: &AgentReport| {
        let reason = agent.generator.reason.as_ref()?;
        Some(format!("agent {}: {reason}", agent.name))
    };
    agents.iter().find_map(reason)
}
