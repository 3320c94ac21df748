//! Sweeps in virtual time on several machines: jobs by number, results by number.
//!
//! 1. The conductor ([`AgentFleet::sweep`](crate::fleet::AgentFleet::sweep)) sends the description of the sweep to all
//!    agents, and keeps one job under way for each of their event loops.
//! 2. An agent ([`SweepAgent`]) simulates the transactions of a job, and replies with their totals.
//! 3. A job without a reply goes to another agent ([`jobs`](crate::jobs)).
//!
//! The [`Ledger`](posthaste_sim::Ledger) merges the first result of each job. Every later one must be identical.

mod conductor;
mod worker;

use serde::{Deserialize, Serialize};

pub use conductor::SweepUser;
pub use worker::{ScenarioReader, SweepAgent};

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
