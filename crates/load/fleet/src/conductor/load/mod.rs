//! Load from several machines: the event loops of a plan, shared by agents.
//!
//! 1. An agent prepares its share of the plan, carries it out, and notes the tally of each second.
//! 2. The conductor ([`AgentFleet::run`](super::fleet::AgentFleet::run)) sends them the plan, starts them, joins their
//!    seconds, and adds their totals up. The sum is that of one process with as many event loops.
//!
//! The requests that a lost agent owed are added from the schedule, so that every intended request has an outcome.

mod follow;
mod progress;
mod run;

pub use follow::OnLost;
pub use run::{FleetRunner, RunRules, needs_of};
