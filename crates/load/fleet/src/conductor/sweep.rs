//! Sweeps in virtual time on several machines: jobs by number, results by number.
//!
//! 1. The conductor ([`AgentFleet::sweep`]) sends the description of the sweep to all agents, and keeps one job under
//!    way for each of their event loops.
//! 2. An agent simulates the transactions of a job, and replies with their totals.
//! 3. A job without a reply goes to another agent ([`jobs`](super::jobs)).
//!
//! The [`Ledger`] merges the first result of each job. Every later one must be identical.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use posthaste_sim::{Ledger, ReceivedResult, SweepJob, Totals};

use crate::conductor::fleet::AgentFleet;
use crate::conductor::jobs::{JobBook, JobsError, JobsUser};
use crate::protocol::names::AgentName;
use crate::protocol::work::{AgentJob, AgentPlan, JobOutput, SweepDescription};

/// The user of a sweep.
pub struct SweepUser<'u> {
    /// Called with the totals of a case, once it is complete.
    pub case_complete: &'u mut dyn FnMut(usize, &Totals),
    /// Called with the number of transactions of each result.
    pub progress: &'u dyn Fn(u64),
}

/// The jobs of a sweep.
struct SweepBook<'s, 'u> {
    description: &'s SweepDescription,
    ledger: &'s RefCell<Ledger>,
    user: RefCell<&'s mut SweepUser<'u>>,
}

impl AgentFleet {
    /// Lets the agents do the jobs of `ledger` that have no result. Returns when all have one or the user stops.
    pub fn sweep(
        &mut self,
        description: &SweepDescription,
        ledger: &RefCell<Ledger>,
        user: &mut SweepUser<'_>,
        jobs_user: JobsUser<'_>,
    ) -> Result<(), JobsError> {
        let book = SweepBook {
            description,
            ledger,
            user: RefCell::new(user),
        };
        self.do_jobs(&book, jobs_user)
    }
}

impl SweepBook<'_, '_> {
    fn sweep_job(&self, number: u64) -> SweepJob {
        let job = self.ledger.borrow().jobs().get(number);
        job.expect("the ledger has a job of each missing number")
    }
}

impl JobBook for SweepBook<'_, '_> {
    fn plan(&self) -> AgentPlan {
        AgentPlan::Sweep(self.description.clone())
    }

    fn slots(&self, loops: u32) -> u32 {
        loops
    }

    fn missing(&self) -> Vec<RangeInclusive<u64>> {
        self.ledger.borrow().missing()
    }

    fn is_complete(&self) -> bool {
        self.ledger.borrow().is_complete()
    }

    fn job(&self, number: u64) -> AgentJob {
        AgentJob::Sweep(self.sweep_job(number))
    }

    fn receive(&self, number: u64, agent: &AgentName, output: JobOutput) -> Result<(), String> {
        let job = self.sweep_job(number);
        let JobOutput::Sweep(result) = output else {
            return Err(format!("{agent} sent a result of other work"));
        };
        let received = self
            .ledger
            .borrow_mut()
            .receive(number, agent.as_str(), result);
        let mut user = self.user.borrow_mut();
        match received.map_err(|error| error.to_string())? {
            ReceivedResult::Repeated => {}
            ReceivedResult::CaseComplete(totals) => {
                (user.progress)(job.transactions());
                (user.case_complete)(job.case, &totals);
            }
            ReceivedResult::Merged => (user.progress)(job.transactions()),
            // A repetition would fail again, and the totals of the case would be incomplete.
            ReceivedResult::Failed(reason) => {
                return Err(format!(
                    "transactions {} to {} of case {}: {reason}",
                    job.first, job.last, job.case
                ));
            }
        }
        Ok(())
    }
}
