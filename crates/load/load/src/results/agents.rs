//! The agents of a run, for its report.

use serde::{Deserialize, Serialize};

use crate::results::generator::Generator;

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

/// The agent that was the limit, with its reason. Of several, the one with the most unsent requests, and then with the
/// most late ones.
pub(crate) fn limit(agents: &[AgentReport]) -> Option<String> {
    let limits = agents.iter().filter_map(|agent| {
        let reason = agent.generator.reason.as_ref()?;
        Some((&agent.generator, format!("agent {}: {reason}", agent.name)))
    });
    let worst = limits.max_by_key(|(generator, _)| (generator.unsent, generator.late));
    worst.map(|(_, reason)| reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str, unsent: u64, late: u64, reason: Option<&str>) -> AgentReport {
        AgentReport {
            name: name.to_owned(),
            loops: 1,
            servers: Vec::new(),
            intended: 100,
            lost: 0,
            clock_bound_ms: 0.1,
            clock_drift_ms: None,
            generator: Generator {
                unsent,
                late,
                reason: reason.map(str::to_owned),
                ..Generator::default()
            },
            warnings: Vec::new(),
        }
    }

    #[test]
    fn the_worst_agent_is_named() {
        let late = agent("a", 0, 12, Some("late"));
        let silent = agent("b", 100, 0, Some("unsent"));
        let fine = agent("c", 3, 0, None);
        let limit = |agents: &[&AgentReport]| {
            let agents: Vec<AgentReport> = agents.iter().map(|agent| (*agent).clone()).collect();
            super::limit(&agents)
        };
        assert_eq!(
            limit(&[&late, &silent, &fine]).as_deref(),
            Some("agent b: unsent")
        );
        assert_eq!(limit(&[&fine, &late]).as_deref(), Some("agent a: late"));
        assert_eq!(limit(&[&fine]), None);
    }
}
