//! Jobs on agents: an agent does a job and replies with its result.
//!
//! - A [`JobBook`] has the jobs of a run by number, and records their results. Sweeps and studies have one each.
//! - The conductor keeps one job under way for each slot of the agents. A job without a reply goes to another agent. When
//!   no job is left, agents repeat the slow ones under way elsewhere, so that one machine does not delay the end.

mod failures;
mod run;

use std::ops::RangeInclusive;

pub use run::{JobsError, JobsUser};

use crate::protocol::names::AgentName;
use crate::protocol::work::{AgentJob, AgentPlan, JobOutput};

/// The jobs of a run by number, and the record of their results.
pub(crate) trait JobBook {
    /// The plan that agents prepare.
    fn plan(&self) -> AgentPlan;

    /// Concurrent jobs of an agent with this number of event loops.
    fn slots(&self, loops: u32) -> u32;

    /// Numbers of the jobs without a result, as ranges in ascending order.
    fn missing(&self) -> Vec<RangeInclusive<u64>>;

    /// True if each job has a result.
    fn is_complete(&self) -> bool;

    /// The job with this number.
    ///
    /// # Panics
    /// If there is none.
    fn job(&self, number: u64) -> AgentJob;

    /// Records a result. The first one of a job counts, and every later one must equal it. The error ends the run.
    fn receive(&self, number: u64, agent: &AgentName, output: JobOutput) -> Result<(), String>;

    /// Name of a range of jobs in messages.
    fn name(&self, numbers: &RangeInclusive<u64>) -> String {
        if numbers.start() == numbers.end() {
            numbers.start().to_string()
        } else {
            format!("{} to {}", numbers.start(), numbers.end())
        }
    }
}
