//! Studies in virtual time on agents: each job is a whole study.
//!
//! 1. The conductor ([`AgentFleet::simulate_studies`]) sends the seed and the length of the run to all agents, and then
//!    the names of studies.
//! 2. An agent runs a study, and replies with its records. It runs one at a time, on as many threads as it has event
//!    loops.
//!
//! Records are text of the caller. Every later result of a study must equal the first.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use crate::conductor::fleet::AgentFleet;
use crate::conductor::jobs::{JobBook, JobsError, JobsUser};
use crate::protocol::names::AgentName;
use crate::protocol::work::{AgentJob, AgentPlan, JobOutput, StudyOutput, StudyRun};

/// The studies of a run.
struct StudyBook<'s> {
    run: StudyRun,
    names: &'s [&'s str],
    user: JobsUser<'s>,
    /// The records of each study, with the agent that sent them first.
    records: RefCell<Vec<Option<(AgentName, String)>>>,
}

impl AgentFleet {
    /// Lets the agents run these studies. Returns the records of each; `None` if the user has stopped the run before.
    pub fn simulate_studies(
        &mut self,
        run: StudyRun,
        names: &[&str],
        user: JobsUser<'_>,
    ) -> Result<Vec<Option<String>>, JobsError> {
        let book = StudyBook {
            run,
            names,
            user,
            records: RefCell::new(vec![None; names.len()]),
        };
        self.do_jobs(&book, user)?;
        let records = book.records.into_inner().into_iter();
        Ok(records
            .map(|known| known.map(|(_, records)| records))
            .collect())
    }
}

impl StudyBook<'_> {
    fn study(&self, number: u64) -> &str {
        self.names[usize::try_from(number).expect("a number of a study")]
    }
}

impl JobBook for StudyBook<'_> {
    fn plan(&self) -> AgentPlan {
        AgentPlan::Studies(self.run)
    }

    fn slots(&self, _: u32) -> u32 {
        1
    }

    fn missing(&self) -> Vec<RangeInclusive<u64>> {
        let records = self.records.borrow();
        let numbered = (0..).zip(records.iter());
        let missing = numbered.filter(|(_, records)| records.is_none());
        missing.map(|(number, _)| number..=number).collect()
    }

    fn is_complete(&self) -> bool {
        self.records.borrow().iter().all(Option::is_some)
    }

    fn job(&self, number: u64) -> AgentJob {
        AgentJob::Study(self.study(number).to_owned())
    }

    fn receive(&self, number: u64, agent: &AgentName, output: JobOutput) -> Result<(), String> {
        let study = self.study(number);
        let records = match output {
            JobOutput::Study(StudyOutput::Records(records)) => records,
            JobOutput::Study(StudyOutput::Failed(reason)) => {
                return Err(format!("{study}: {reason}"));
            }
            JobOutput::Sweep(_) => return Err(format!("{agent} sent a result of other work")),
        };
        let mut known = self.records.borrow_mut();
        let known = &mut known[usize::try_from(number).expect("a number of a study")];
        match known {
            None => {
                (self.user.notice)(&format!("{study}: simulated by agent {agent}"));
                *known = Some((agent.clone(), records));
            }
            Some((_, first)) if *first == records => {}
            Some((first, _)) => {
                return Err(format!(
                    "{first} and {agent} sent different records of {study}: one of these machines calculates differently"
                ));
            }
        }
        Ok(())
    }

    fn name(&self, numbers: &RangeInclusive<u64>) -> String {
        self.study(*numbers.start()).to_owned()
    }
}
