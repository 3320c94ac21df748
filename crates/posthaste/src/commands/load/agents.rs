//! Agents that carry out a plan together.

use clap::ValueEnum;
use posthaste_fleet::allot::loops_in_words;
use posthaste_fleet::conductor::discovery::WantedAgents;
use posthaste_fleet::conductor::fleet::{AgentFleet, FleetOptions};
use posthaste_fleet::conductor::load::{OnLost, RunRules, needs_of};
use posthaste_load::Plan;

use super::runner::{PlanRunner, from_fleet};
use crate::commands::Failure;
use crate::commands::fleet::{NatsArgs, wanted_agents};

/// Agents, and the rules for them.
#[derive(clap::Args)]
#[command(next_help_heading = "Agents")]
pub(super) struct AgentArgs {
    /// Number or names (NAME,NAME) of agents that send the load instead of this machine: each has event loops of its
    /// own, and together they send exactly the requests of one machine
    #[arg(long, value_name = "N|NAMES", conflicts_with_all = ["threads", "cpus"], value_parser = wanted_agents)]
    agents: Option<WantedAgents>,
    #[command(flatten)]
    nats: NatsArgs,
    /// Reaction of the other agents to the loss of one: they carry on, or stop. Its requests are counted as lost in both
    /// cases
    #[arg(
        long,
        value_enum,
        value_name = "go-on|stop",
        default_value = "go-on",
        requires = "agents"
    )]
    on_lost: OnLostArg,
    /// Accept agents with clocks known to 50 ms only, or worse: they start as far apart
    #[arg(long, requires = "agents")]
    loose_start: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum OnLostArg {
    GoOn,
    Stop,
}

impl AgentArgs {
    /// Finds the agents, if some are wanted, and adapts the plan to their event loops.
    pub(super) fn runner(&self, plan: &mut Plan) -> Result<PlanRunner, Failure> {
        let Some(agents) = &self.agents else {
            return if self.nats.is_given() {
                Err(Failure::usage(
                    "--nats goes with --agents: give their number or names",
                ))
            } else {
                Ok(PlanRunner::Local)
            };
        };
        if plan.qlog.is_some() {
            return Err(Failure::usage(
                "--qlog writes files of this machine, and agents send from theirs: leave --qlog or --agents out",
            ));
        }
        let options = FleetOptions {
            nats: self.nats.options("conductor")?,
            fleet: self.nats.fleet.clone(),
            agents: agents.clone(),
        };
        let rules = RunRules {
            on_lost: match self.on_lost {
                OnLostArg::GoOn => OnLost::GoOn,
                OnLostArg::Stop => OnLost::Stop,
            },
            loose_start: self.loose_start,
        };
        let fleet = AgentFleet::find(options, needs_of(plan)).map_err(from_fleet)?;
        let names: Vec<String> = fleet.names().map(ToString::to_string).collect();
        adapt(plan, fleet.loops(), &names)?;
        let (names, loops) = (names.join(", "), fleet.loops());
        note!("agents {names}: {}", loops_in_words(loops));
        Ok(PlanRunner::Fleet(Box::new(fleet), rules))
    }
}

/// Shares the connections with streams among the event loops of the agents.
fn adapt(plan: &mut Plan, loops: usize, names: &[String]) -> Result<(), Failure> {
    // Without --connections there is one for each event loop.
    let is_default = |connections: usize| connections == plan.threads;
    if let Some(options) = plan.protocol.multiplexing_mut() {
        if is_default(options.connections) {
            options.connections = loops;
        }
        if options.connections % loops != 0 {
            return Err(Failure::Usage(format!(
                "{} connections cannot be shared by the {loops} event loops of the agents {}: \
                 give --connections a multiple of {loops}",
                options.connections,
                names.join(", ")
            )));
        }
    }
    plan.threads = loops;
    Ok(())
}
