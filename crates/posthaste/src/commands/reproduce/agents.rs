//! Studies in virtual time on agents, before this machine measures.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::AtomicBool;

use posthaste_fleet::conductor::discovery::WantedAgents;
use posthaste_fleet::conductor::jobs::JobsUser;
use posthaste_fleet::work::StudyRun;
use posthaste_papers::COLLECTION;
use posthaste_study::{Figure, Records, VirtualRun, simulate, virtual_studies};
use posthaste_units::Seed;

use crate::commands::Failure;
use crate::commands::fleet::{NatsArgs, find_simulators, wanted_agents};

/// Agents that simulate.
#[derive(clap::Args)]
#[command(next_help_heading = "Agents")]
pub(super) struct StudyAgents {
    /// Number or names (NAME,NAME) of agents that run the studies in virtual time, before this machine measures the
    /// others; results do not depend on them
    #[arg(long, value_name = "N|NAMES", conflicts_with_all = ["list", "draw", "part"], value_parser = wanted_agents)]
    agents: Option<WantedAgents>,
    #[command(flatten)]
    nats: NatsArgs,
}

impl StudyAgents {
    /// Runs the studies of `selection` that are in virtual time on the agents, long ones if `full`. Returns their
    /// records by study.
    pub(super) fn simulate(
        &self,
        full: bool,
        seed: Seed,
        selection: &[&Figure],
        stop: &AtomicBool,
    ) -> Result<BTreeMap<String, Records>, Failure> {
        let Some(mut fleet) = find_simulators(self.agents.as_ref(), &self.nats)? else {
            return Ok(BTreeMap::new());
        };
        let names = virtual_studies(selection);
        if names.is_empty() {
            note!("none of these figures is in virtual time alone: nothing to do for agents");
            return Ok(BTreeMap::new());
        }
        let run = StudyRun { full, seed: seed.0 };
        let user = JobsUser {
            stop,
            notice: &|text| note!("{text}"),
        };
        let sent = fleet.simulate_studies(run, &names, user);
        let sent = sent.map_err(Failure::run)?;
        let mut simulated = BTreeMap::new();
        for (name, text) in names.into_iter().zip(sent) {
            let Some(text) = text else { continue };
            let records = serde_json::from_str(&text).map_err(Failure::run)?;
            let records = Records::from_sent(records).map_err(Failure::run)?;
            simulated.insert(name.to_owned(), records);
        }
        Ok(simulated)
    }
}

/// Runs a study that a conductor has named. Only those in virtual time are permitted.
pub(crate) fn run_study(
    run: StudyRun,
    study: &str,
    threads: NonZero<usize>,
    stop: &AtomicBool,
) -> Result<String, String> {
    let run = VirtualRun {
        study,
        full: run.full,
        seed: Seed(run.seed),
        threads,
    };
    let sent = || {
        Ok(serde_json::to_string(
            &simulate(&COLLECTION, run, stop)?.to_sent()?,
        )?)
    };
    sent().map_err(|error: posthaste_study::Failure| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_studies_in_virtual_time_run_for_a_conductor() {
        let run = StudyRun {
            full: false,
            seed: 1,
        };
        let stop = AtomicBool::new(false);
        for study in ["overload-open-loop", "packet-loss-sweep", "unknown", ""] {
            let refused = run_study(run, study, NonZero::<usize>::MIN, &stop).unwrap_err();
            assert!(refused.contains("no study in virtual time"), "{refused}");
        }
    }

    #[test]
    fn a_stopped_study_has_no_records() {
        let run = StudyRun {
            full: false,
            seed: 1,
        };
        let stop = AtomicBool::new(true);
        let stopped = run_study(run, "packet-loss-simulated", NonZero::<usize>::MIN, &stop);
        assert_eq!(stopped.unwrap_err(), "the study was stopped");
    }
}
