//! Choice of agents for a run among those that have replied.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use thiserror::Error;

use crate::protocol::message::AgentInfo;
use crate::protocol::names::{AgentName, RunId};

/// An agent that has replied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundAgent {
    /// Its properties.
    pub info: AgentInfo,
    /// Its present run.
    pub busy: Option<RunId>,
}

/// Agents of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedAgents {
    /// The first ones by name.
    Count(usize),
    /// These ones.
    Names(BTreeSet<AgentName>),
}

/// Requirements on agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentRequirements<'a> {
    /// SHA-256 of the executable.
    pub build: &'a str,
    /// Version and commit of the conductor, for messages.
    pub version: &'a str,
    /// Digest of [`crate::machine::numerics`]. `None` if the schedule uses no function of libm.
    pub numerics: Option<&'a str>,
}

/// Too few usable agents.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct TooFewAgents(String);

impl WantedAgents {
    /// Their number.
    fn count(&self) -> usize {
        match self {
            Self::Count(count) => *count,
            Self::Names(names) => names.len(),
        }
    }

    /// True if the usable agents among these are enough.
    pub fn is_met_by(&self, found: &[FoundAgent], requirements: AgentRequirements<'_>) -> bool {
        // Called for each reply of a fleet, and the choice looks at all of them.
        found.len() >= self.count() && choose(self, found, requirements).is_ok()
    }
}

/// Chooses agents, sorted by name. The error names every agent that replied, and the reason against it.
pub fn choose(
    wanted: &WantedAgents,
    found: &[FoundAgent],
    requirements: AgentRequirements<'_>,
) -> Result<Vec<FoundAgent>, TooFewAgents> {
    let mut sorted: Vec<&FoundAgent> = found.iter().collect();
    sorted.sort_by_key(|agent| &agent.info.name);
    let mut namesakes: BTreeMap<&AgentName, usize> = BTreeMap::new();
    for agent in found {
        *namesakes.entry(&agent.info.name).or_default() += 1;
    }
    let objection = |agent: &FoundAgent| {
        let namesakes = namesakes[&agent.info.name];
        match namesakes {
            1 => objection(agent, requirements),
            _ => Some(format!(
                "{namesakes} agents have this name: give each another --name"
            )),
        }
    };
    let is_wanted = |agent: &FoundAgent| match wanted {
        WantedAgents::Count(_) => true,
        WantedAgents::Names(names) => names.contains(&agent.info.name),
    };
    let usable = sorted
        .iter()
        .filter(|agent| is_wanted(agent) && objection(agent).is_none());
    let count = wanted.count();
    let chosen: Vec<FoundAgent> = usable.copied().take(count).cloned().collect();
    debug_assert!(
        chosen.is_sorted_by(|one, next| one.info.name < next.info.name),
        "namesakes are not usable"
    );
    if count > 0 && chosen.len() == count {
        return Ok(chosen);
    }
    let mut text = format!("{} of {count} agents can be used", chosen.len());
    for agent in &sorted {
        let state = objection(agent).unwrap_or_else(|| "usable".to_owned());
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {}: {state}", agent.info.name);
    }
    if let WantedAgents::Names(names) = wanted {
        let is_there = |name: &&AgentName| sorted.iter().all(|agent| agent.info.name != **name);
        for name in names.iter().filter(is_there) {
            let _ = write!(text, "\n  {name}: no reply");
        }
    }
    let _ = write!(text, "\nstart more with `posthaste agent --nats URL`");
    Err(TooFewAgents(text))
}

/// The reason not to use an agent.
fn objection(agent: &FoundAgent, requirements: AgentRequirements<'_>) -> Option<String> {
    let AgentRequirements {
        build,
        version,
        numerics,
    } = requirements;
    let info = &agent.info;
    if info.build != build {
        return Some(format!(
            "another build: it runs {} ({}), and this is {version} ({})",
            info.version,
            short(&info.build),
            short(build)
        ));
    }
    if numerics.is_some_and(|numerics| numerics != info.numerics) {
        return Some(format!(
            "its mathematical functions differ in the last bit ({}): use constant arrivals or a trace",
            info.processor
        ));
    }
    agent.busy.map(|run| format!("busy with run {run}"))
}

/// The beginning of a digest.
fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}
