//! `posthaste agent`: lets conductors use this machine's event loops.

use posthaste_fleet::agent::allow::{AllowEntry, AllowList};
use posthaste_fleet::agent::{AgentService, LoadAgentOptions, serve_agent};
use posthaste_fleet::names::AgentName;
use posthaste_units::{Rate, Span};

use super::fleet::NatsArgs;
use super::{Failure, log_to_stderr, stop_on_signal};

/// Send load and simulate for `load`, `simulate` and `reproduce` with --agents, from this machine.
///
/// An agent connects to a NATS server and waits. It accepts no connections, and sends requests to the targets of
/// --allow only. The users and permissions of the NATS server decide about the conductors that it obeys.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  An agent for tests on this machine, with `nats-server -js` running:
    posthaste agent --nats nats://127.0.0.1:4222
  An agent that may send load to one host and one network, at most 5,000 requests per second:
    posthaste agent --nats tls://agent1:PASSWORD@nats.example --allow shop.example:443 --allow 10.1.0.0/16 \\
      --max-rate 5k/s
  Three agents then carry out one run:
    posthaste load https://shop.example/ --rate 12k/s --agents 3 --nats tls://conductor:PASSWORD@nats.example")]
pub(crate) struct Args {
    #[command(flatten)]
    nats: NatsArgs,
    /// Name of this agent: a-z, 0-9 and -, at most 32 [default: the host's name]
    #[arg(long, help_heading = "Agents")]
    name: Option<AgentName>,
    /// Permit targets: HOST, HOST:PORT, an address or a network; may be repeated [default: loopback addresses only].
    /// Addresses that a conductor states with --resolve need a network
    #[arg(long, value_name = "HOST[:PORT]|CIDR", help_heading = "Limits")]
    allow: Vec<AllowEntry>,
    /// Refuse shares of a plan with a higher rate, and closed loops
    #[arg(long, value_name = "RATE", help_heading = "Limits")]
    max_rate: Option<Rate>,
    /// Connections open at once
    #[arg(
        long,
        value_name = "N",
        default_value_t = 16_384,
        help_heading = "Limits"
    )]
    max_connections: usize,
    /// Stop a run after this time
    #[arg(long, value_name = "T", default_value = "1h", help_heading = "Limits")]
    longest_run: Span,
    /// Event loops, each with a thread of its own [default: the processors that this process may use, by its affinity
    /// and its control group]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Generator")]
    threads: Option<u32>,
    /// Cores for those threads, for example 1 or 2,3
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = "Generator"
    )]
    cpus: Vec<usize>,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        log_to_stderr();
        let stop = stop_on_signal()?;
        let name = match &self.name {
            Some(name) => name.clone(),
            None => AgentName::of_this_host().map_err(|error| {
                Failure::Usage(format!(
                    "the host's name is no name of an agent: {error}; give --name"
                ))
            })?,
        };
        let service = AgentService {
            nats: self.nats.options(name.as_str())?,
            fleet: self.nats.fleet.clone(),
            name,
            longest_run: self.longest_run,
            options: LoadAgentOptions {
                loops: self.threads.unwrap_or_else(processors),
                cpus: self.cpus,
                allow: AllowList::new(self.allow),
                connections: self.max_connections.max(1),
                most_rate: self.max_rate.map(Rate::as_per_second),
            },
            scenarios: super::simulate::agents::scenarios,
            studies: run_study,
        };
        serve_agent(service, &stop).map_err(Failure::run)
    }
}

#[cfg(feature = "lab")]
use super::reproduce::agents::run_study;

/// Rejects every study. The studies come with the feature `lab`.
#[cfg(not(feature = "lab"))]
fn run_study(
    _: posthaste_fleet::work::StudyRun,
    study: &str,
    _: std::num::NonZero<usize>,
    _: &std::sync::atomic::AtomicBool,
) -> Result<String, String> {
    Err(format!(
        "no study {study}: this agent is built without the feature `lab`"
    ))
}

/// Number of processors that this process may use.
fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}
