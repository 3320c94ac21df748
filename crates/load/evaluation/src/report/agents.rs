//! Agents in reports: loops, requests, clocks, and doubts.

use posthaste_load::AgentReport;
use posthaste_units::thousands;

use super::numbers::millis;

/// Facts about each agent, with its name.
pub(super) fn facts(agents: &[AgentReport]) -> impl Iterator<Item = (&str, String)> {
    agents
        .iter()
        .map(|agent| (agent.name.as_str(), description(agent)))
}

fn description(agent: &AgentReport) -> String {
    let loops = match agent.loops {
        1 => "1 loop".to_owned(),
        loops => format!("{} loops", thousands(loops)),
    };
    let mut facts = vec![
        loops,
        format!("{} intended", thousands(agent.intended)),
        format!("clock within {} ms", millis(agent.clock_bound_ms)),
    ];
    if agent.lost > 0 {
        facts.insert(2, format!("{} lost", thousands(agent.lost)));
    }
    facts.extend(
        agent
            .clock_drift_ms
            .map(|drift| format!("drift {} ms", millis(drift))),
    );
    facts.extend(agent.warnings.iter().cloned());
    facts.join(", ")
}
