//! Gives each agent consecutive numbers among the event loops of all agents.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::protocol::names::AgentName;

/// A number of event loops, for people: `1 event loop`.
pub fn loops_in_words(count: usize) -> String {
    match count {
        1 => "1 event loop".to_owned(),
        count => format!("{count} event loops"),
    }
}

/// Maximum number of loops of a run.
const MAX_LOOPS: u32 = 1 << 20;

/// Loops of one agent among the loops of all agents: `first` to `first + its loops - 1` of `total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ShareFields")]
pub struct AgentShare {
    first: u32,
    #[serde(rename = "of")]
    total: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShareFields {
    first: u32,
    #[serde(rename = "of")]
    total: u32,
}

/// Agents that cannot share a run.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AllotError {
    /// No agents.
    #[error("no agent takes part")]
    NoAgents,
    /// Two agents of one name.
    #[error("two agents are called {0}: give one another --name")]
    Duplicate(AgentName),
    /// An agent without loops.
    #[error("agent {0} offers no event loops")]
    NoLoops(AgentName),
    /// A sum beyond any machine.
    #[error("the agents offer more than {MAX_LOOPS} event loops")]
    TooMany,
    /// A first loop at or beyond the end.
    #[error("there is no loop {0} of {1}")]
    Outside(u32, u32),
}

impl AgentShare {
    /// The loops from `first` on, of `total`.
    pub fn new(first: u32, total: u32) -> Result<Self, AllotError> {
        if first < total && total <= MAX_LOOPS {
            Ok(Self { first, total })
        } else {
            Err(AllotError::Outside(first, total))
        }
    }

    /// Number of the agent's first loop.
    pub fn first(self) -> u32 {
        self.first
    }

    /// Number of loops of all agents.
    pub fn total(self) -> u32 {
        self.total
    }
}

impl TryFrom<ShareFields> for AgentShare {
    type Error = AllotError;

    fn try_from(fields: ShareFields) -> Result<Self, AllotError> {
        Self::new(fields.first, fields.total)
    }
}

/// Sorts agents by name and allots consecutive loops. The same agents get the same shares in any order.
pub fn allot(agents: &[(AgentName, u32)]) -> Result<Vec<(AgentName, AgentShare)>, AllotError> {
    let mut sorted: Vec<&(AgentName, u32)> = agents.iter().collect();
    sorted.sort();
    for pair in sorted.windows(2) {
        if pair[0].0 == pair[1].0 {
            return Err(AllotError::Duplicate(pair[0].0.clone()));
        }
    }
    if let Some((name, _)) = sorted.iter().find(|(_, loops)| *loops == 0) {
        return Err(AllotError::NoLoops(name.clone()));
    }
    let sum = sorted
        .iter()
        .map(|(_, loops)| u64::from(*loops))
        .sum::<u64>();
    let total = u32::try_from(sum).ok().filter(|total| *total <= MAX_LOOPS);
    let total = total.ok_or(AllotError::TooMany)?;
    if total == 0 {
        return Err(AllotError::NoAgents);
    }
    let mut first = 0;
    let shares = sorted.into_iter().map(|(name, loops)| {
        let share = AgentShare { first, total };
        first += loops;
        (name.clone(), share)
    });
    let shares = shares.collect();
    assert_eq!(first, total, "the shares cover each loop once");
    Ok(shares)
}
