//! Options of commands that use agents: the NATS server and the fleet.

use std::path::PathBuf;

use posthaste_fleet::allot::loops_in_words;
use posthaste_fleet::conductor::discovery::WantedAgents;
use posthaste_fleet::conductor::fleet::{AgentFleet, FleetNeeds, FleetOptions};
use posthaste_fleet::connection::{NatsOptions, NatsUrl, ServerSafety};
use posthaste_fleet::names::FleetName;

use super::Failure;

/// The NATS server between agents and conductors.
#[derive(clap::Args, Clone)]
#[command(next_help_heading = "Agents")]
pub(crate) struct NatsArgs {
    /// The NATS server, for example nats://user:password@10.0.0.1:4222 or tls://nats.example [default: POSTHASTE_NATS]
    #[arg(long, value_name = "URL")]
    nats: Option<NatsUrl>,
    /// Agents and conductors of one fleet work together: a-z, 0-9 and -, at most 32
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) fleet: FleetName,
    /// A file with credentials of NATS (JWT and key)
    #[arg(long, value_name = "FILE")]
    nats_creds: Option<PathBuf>,
    /// Trust the authority with this certificate for the NATS server (PEM) [default: the system's authorities]
    #[arg(long, value_name = "FILE")]
    nats_ca: Option<PathBuf>,
    /// Accept a NATS server that is not on this machine and has no authentication or no TLS: any host in reach can then
    /// command agents, and read their requests
    #[arg(long)]
    nats_insecure: bool,
}

impl NatsArgs {
    /// The options of a connection. `name` is that of the client.
    pub(crate) fn options(&self, name: &str) -> Result<NatsOptions, Failure> {
        Ok(NatsOptions {
            url: self.url()?,
            name: name.to_owned(),
            credentials: self.nats_creds.clone(),
            authority: self.nats_ca.clone(),
            safety: if self.nats_insecure {
                ServerSafety::Waived
            } else {
                ServerSafety::Required
            },
        })
    }

    /// True if a server is named.
    pub(crate) const fn is_given(&self) -> bool {
        self.nats.is_some()
    }

    fn url(&self) -> Result<NatsUrl, Failure> {
        if let Some(url) = &self.nats {
            return Ok(url.clone());
        }
        let Ok(text) = std::env::var("POSTHASTE_NATS") else {
            return Err(Failure::usage(
                "which NATS server? add --nats nats://127.0.0.1:4222, or set POSTHASTE_NATS",
            ));
        };
        let url = text.parse();
        url.map_err(|error| Failure::Usage(format!("POSTHASTE_NATS: {error}")))
    }
}

/// Finds agents that simulate, if some are wanted. Their mathematical functions have the same results as ours.
pub(crate) fn find_simulators(
    agents: Option<&WantedAgents>,
    nats: &NatsArgs,
) -> Result<Option<AgentFleet>, Failure> {
    let Some(agents) = agents else {
        return if nats.is_given() {
            Err(Failure::usage(
                "--nats goes with --agents: give their number or names",
            ))
        } else {
            Ok(None)
        };
    };
    let options = FleetOptions {
        nats: nats.options("conductor")?,
        fleet: nats.fleet.clone(),
        agents: agents.clone(),
    };
    let needs = FleetNeeds {
        numerics: true,
        processor: false,
    };
    let fleet = AgentFleet::find(options, needs).map_err(Failure::run)?;
    let names: Vec<String> = fleet.names().map(ToString::to_string).collect();
    let loops = loops_in_words(fleet.loops());
    note!("agents {}: {loops}", names.join(", "));
    Ok(Some(fleet))
}

/// A number of agents, or their names.
pub(crate) fn wanted_agents(text: &str) -> Result<WantedAgents, String> {
    if let Ok(count) = text.parse::<usize>() {
        return match count {
            0 => Err("at least 1 agent".to_owned()),
            _ => Ok(WantedAgents::Count(count)),
        };
    }
    let names = text.split(',').map(|name| name.trim().parse());
    let names = names.collect::<Result<_, _>>();
    names
        .map(WantedAgents::Names)
        .map_err(|error: posthaste_fleet::names::NameError| error.to_string())
}
