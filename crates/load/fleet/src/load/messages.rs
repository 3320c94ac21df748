//! The content of messages about a run of load.

use posthaste_load::{LoadTally, Plan, PreparedShare};
use serde::{Deserialize, Serialize};

use crate::notes::Merge;

/// The plan of a run.
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

impl PreparedFacts {
    /// The facts about a share that is ready.
    pub(super) fn of(prepared: &PreparedShare<'_>, loops: u32) -> Self {
        let servers = prepared.origins().iter();
        Self {
            loops,
            connections: prepared.connection_limit() as u64,
            servers: servers
                .map(|origin| {
                    let addresses = origin.addresses.iter().map(ToString::to_string);
                    let addresses: Vec<String> = addresses.collect();
                    format!("{} at {}", origin.authority(), addresses.join(", "))
                })
                .collect(),
        }
    }
}

impl Merge for Box<LoadTally> {
    fn merge(&mut self, later: Self) {
        LoadTally::merge(self, &later);
    }
}
