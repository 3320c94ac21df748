//! A sweep on agents: the options that make its cases are sent, never the name of a file.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{ArgMatches, Args as _, Command, FromArgMatches, Parser};
use posthaste_fleet::conductor::discovery::WantedAgents;
use posthaste_fleet::conductor::fleet::AgentFleet;
use posthaste_fleet::conductor::jobs::JobsUser;
use posthaste_fleet::conductor::sweep::SweepUser;
use posthaste_fleet::work::SweepDescription;
use posthaste_link::pattern::Pattern;
use posthaste_sim::{
    CaseNumbers, CaseResults, JobList, JobResult, Ledger, ReceivedResult, SimulatedScenario,
    SimulationCase, Totals,
};
use posthaste_units::Seed;

use super::Args;
use super::play::View;
use crate::commands::Failure;
use crate::commands::fleet::{NatsArgs, find_simulators, wanted_agents};

/// Simulation time of a job.
const JOB: Duration = Duration::from_secs(2);
/// Maximum number of transactions of a job, and of jobs of a sweep.
const MOST: u64 = 1 << 32;
const MOST_JOBS: u64 = 1 << 19;
/// Options that do not make cases.
const OTHERS: [&str; 13] = [
    "pattern",
    "ladder",
    "picture",
    "json",
    "threads",
    "transactions",
    "seed",
    "agents",
    "nats",
    "fleet",
    "nats_creds",
    "nats_ca",
    "nats_insecure",
];

/// Agents that simulate together.
#[derive(clap::Args)]
#[command(next_help_heading = "Agents")]
pub(super) struct SweepAgents {
    /// Number or names (NAME,NAME) of agents that simulate instead of this machine; results do not depend on them
    #[arg(long, value_name = "N|NAMES", conflicts_with = "threads", value_parser = wanted_agents)]
    agents: Option<WantedAgents>,
    #[command(flatten)]
    nats: NatsArgs,
}

/// The options that make the cases, as typed.
#[derive(Clone, Debug, Default)]
pub(super) struct CaseOptions(Vec<String>);

impl clap::Args for CaseOptions {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for CaseOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let command = Args::augment_args(Command::new("simulate"));
        let mut options = Vec::new();
        for option in command.get_arguments() {
            let (id, long) = (option.get_id().as_str(), option.get_long());
            let is_given = matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
            let Some(long) = long.filter(|_| is_given && !OTHERS.contains(&id)) else {
                continue;
            };
            if !option.get_action().takes_values() {
                options.push(format!("--{long}"));
                continue;
            }
            let values = matches.get_raw(id).into_iter().flatten();
            options.extend(values.map(|value| format!("--{long}={}", value.to_string_lossy())));
        }
        Ok(Self(options))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[derive(Parser)]
struct SentLine {
    #[command(flatten)]
    args: Args,
}

/// Reads the scenarios of a sweep that a conductor has sent. Opens no file.
pub(crate) fn scenarios(
    description: &SweepDescription,
) -> Result<Vec<Arc<dyn SimulatedScenario>>, String> {
    let line = ["simulate"].into_iter();
    let line = line.chain(description.options.iter().map(String::as_str));
    let parsed = SentLine::try_parse_from(line);
    let mut args = parsed.map_err(|error| error.to_string())?.args;
    if args.drops.given().has_file() || args.picture.is_some() || args.ladder.is_some() {
        return Err("a sweep names a file: it cannot be sent".to_owned());
    }
    if let Some(text) = &description.pattern {
        let pattern = Pattern::parse(text).map_err(|error| error.to_string())?;
        args.drops.follow(pattern);
    }
    let cases = args.cases().map_err(|failure| failure.to_string())?;
    Ok(cases.list.into_iter().map(|case| case.scenario).collect())
}

impl SweepAgents {
    /// Finds the agents, if some are wanted.
    pub(super) fn fleet(&self) -> Result<Option<AgentFleet>, Failure> {
        find_simulators(self.agents.as_ref(), &self.nats)
    }
}

/// A sweep, as the agents and the user see it.
pub(super) struct FleetSweep<'s> {
    pub(super) fleet: AgentFleet,
    pub(super) options: &'s CaseOptions,
    /// The text of the pattern, if there is one.
    pub(super) pattern: Option<String>,
    pub(super) cases: &'s [SimulationCase],
    pub(super) transactions: u64,
    pub(super) seed: Seed,
    pub(super) stop: &'s AtomicBool,
}

impl FleetSweep<'_> {
    /// Simulates the beginning of each case here, and the rest on the agents.
    pub(super) fn play(mut self) -> Result<CaseResults, Failure> {
        let view = View::new(self.transactions.saturating_mul(self.cases.len() as u64));
        let done = RefCell::new(0);
        let progress = |transactions: u64| {
            *done.borrow_mut() += transactions;
            view.show(*done.borrow());
        };
        let heads = self.heads(&progress)?;
        let jobs = self.jobs(&heads)?;
        let mut numbers: Vec<Option<CaseNumbers>> = vec![None; self.cases.len()];
        let ledger = RefCell::new(Ledger::new(jobs));
        for (case, (totals, _)) in heads.into_iter().enumerate() {
            let number = ledger.borrow().jobs().of_case(case).start;
            let result = JobResult::Totals(totals);
            let received = ledger.borrow_mut().receive(number, "conductor", result);
            if let ReceivedResult::CaseComplete(totals) = received.map_err(Failure::run)? {
                numbers[case] = Some(CaseNumbers::new(&totals));
            }
        }
        let description = SweepDescription {
            options: self.options.0.clone(),
            pattern: self.pattern.take(),
            seed: self.seed.0,
        };
        let mut user = SweepUser {
            case_complete: &mut |case, totals| numbers[case] = Some(CaseNumbers::new(totals)),
            progress: &progress,
        };
        let jobs_user = JobsUser {
            stop: self.stop,
            notice: &|text| note!("{text}"),
        };
        let is_complete = ledger.borrow().is_complete();
        let swept = if is_complete {
            Ok(())
        } else {
            self.fleet
                .sweep(&description, &ledger, &mut user, jobs_user)
        };
        view.end();
        swept.map_err(Failure::run)?;
        let mut ledger = ledger.into_inner();
        let stopped = !ledger.is_complete();
        let numbers = numbers.into_iter().enumerate();
        Ok(CaseResults {
            numbers: numbers
                .map(|(case, known)| {
                    known.unwrap_or_else(|| CaseNumbers::new(&ledger.take_partial(case)))
                })
                .collect(),
            stopped,
        })
    }

    /// Number of transactions of each case that are simulated here, to determine the sizes of jobs. All cases have the
    /// same transport.
    fn head(&self) -> u64 {
        let batch = self.cases.first().map_or(1, |case| case.scenario.batch());
        batch.min(self.transactions)
    }

    /// The totals of the first transactions of each case, and the time of one of them.
    fn heads(&self, progress: &dyn Fn(u64)) -> Result<Vec<(Box<Totals>, Duration)>, Failure> {
        let count = self.head();
        let head = |case: &SimulationCase| {
            let begun = Instant::now();
            let simulator = case.scenario.simulator(self.seed);
            let mut simulator = simulator.map_err(Failure::usage)?;
            let mut totals = Box::new(Totals::new());
            for number in 1..=count {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(Failure::Run("stopped".to_owned()));
                }
                simulator.add_to(&mut totals, number);
            }
            progress(count);
            Ok((totals, begun.elapsed() / count as u32))
        };
        self.cases.iter().map(head).collect()
    }

    /// Jobs of two seconds, longer ones if there would be too many.
    fn jobs(&self, heads: &[(Box<Totals>, Duration)]) -> Result<JobList, Failure> {
        let all = self.transactions.saturating_mul(self.cases.len() as u64);
        let least = (all / MOST_JOBS).max(1);
        let size = |time: &Duration| {
            let count = JOB.as_nanos() / time.as_nanos().max(1);
            u64::try_from(count).unwrap_or(MOST).clamp(least, MOST)
        };
        let sizes = heads.iter().map(|(_, time)| size(time)).collect();
        JobList::new(self.transactions, self.head(), sizes).map_err(Failure::run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(options: &[&str]) -> Args {
        let line = [&["simulate"], options].concat();
        SentLine::try_parse_from(line).unwrap().args
    }

    #[test]
    fn agents_read_the_cases_of_the_conductor() {
        for options in [
            &["--delay=5ms,40ms", "--loss", "1%,2%", "--compare", "all"][..],
            &["--bandwidth=1Mbit", "--compare=early-retransmit,tlp+rack"],
            &["--bandwidth=1Mbit", "--position", "0..12", "--clock=accept"],
            &[
                "--request=600B",
                "--response",
                "40kB",
                "--drop=down:3",
                "--drop",
                "up:2",
            ],
            &[
                "--profile=gprs",
                "--client-tcp",
                "freebsd-6.0",
                "--seed=7",
                "--json",
            ],
            &[
                "--transport=quic",
                "--position=0..3",
                "--initial-rtt=100ms",
                "--ack-frequency=4",
            ],
        ] {
            let args = parsed(options);
            let description = SweepDescription {
                options: args.options.0.clone(),
                pattern: None,
                seed: 7,
            };
            let here = args.cases().unwrap().list.into_iter();
            let here: Vec<String> = here.map(|case| format!("{:?}", case.scenario)).collect();
            let there = scenarios(&description).unwrap().into_iter();
            let there: Vec<String> = there.map(|scenario| format!("{scenario:?}")).collect();
            assert!(
                here == there,
                "{options:?} became {:?}",
                description.options
            );
        }
    }

    #[test]
    fn a_sweep_that_names_a_file_is_refused() {
        for option in ["--pattern=/etc/hostname", "--picture=a.svg", "--ladder"] {
            let refused = scenarios(&SweepDescription {
                options: vec![option.to_owned()],
                pattern: None,
                seed: 1,
            });
            assert!(refused.unwrap_err().contains("names a file"), "{option}");
        }
    }
}
