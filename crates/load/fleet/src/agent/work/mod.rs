//! The kinds of work of an agent: load, jobs of sweeps, and studies in virtual time.
//!
//! - `load`: prepares a share of a plan, carries it out, and notes the tally of each second.
//! - `sweep`: simulates the transactions of a job, and replies with their totals.
//! - `studies`: runs a whole study, one at a time, and replies with its records.

mod load;
mod studies;
mod sweep;

use std::future::Future;

use futures_util::TryFutureExt as _;
use futures_util::future::Either;
use posthaste_load::LoadTally;

pub use self::load::{LoadAgent, LoadAgentOptions};
pub use self::studies::{StudyAgent, StudyRunner};
pub use self::sweep::{ScenarioReader, SweepAgent};
use super::AgentHandler;
use super::assignment::ForgetReason;
use crate::nats::storage::Storage;
use crate::notes::NoteSender;
use crate::protocol::message::PrepareRequest;
use crate::protocol::names::RunId;
use crate::protocol::work::{AgentFacts, AgentJob, AgentPlan, EndFacts, JobOutput};

/// An agent for all kinds of work, one run at a time.
pub struct AgentWork {
    load: LoadAgent,
    sweep: SweepAgent,
    studies: StudyAgent,
}

impl AgentWork {
    /// An idle agent.
    pub const fn new(load: LoadAgent, sweep: SweepAgent, studies: StudyAgent) -> Self {
        Self {
            load,
            sweep,
            studies,
        }
    }
}

impl AgentHandler for AgentWork {
    type Plan = AgentPlan;
    type Ready = AgentFacts;
    type Sum = Box<LoadTally>;
    type End = EndFacts;
    type Job = AgentJob;
    type JobResult = JobOutput;

    async fn prepare(
        &mut self,
        request: PrepareRequest<AgentPlan>,
        storage: &Storage,
    ) -> Result<AgentFacts, String> {
        let PrepareRequest {
            v,
            run,
            plan,
            share,
            files,
            key,
        } = request;
        match plan {
            AgentPlan::Load(plan) => {
                let request = PrepareRequest {
                    v,
                    run,
                    plan,
                    share,
                    files,
                    key,
                };
                let facts = self.load.prepare(request, storage).await?;
                Ok(AgentFacts::Load(facts))
            }
            AgentPlan::Sweep(description) => {
                self.sweep.prepare(&description).map(AgentFacts::Sweep)
            }
            AgentPlan::Studies(run) => {
                self.studies.prepare(run);
                Ok(AgentFacts::Studies)
            }
        }
    }

    fn start(&mut self, _: RunId, origin_ns: u64, notes: NoteSender<Self::Sum, Self::End>) {
        // Jobs have replies, and no notes.
        if self.load.is_prepared() {
            self.load.start(origin_ns, notes);
        }
    }

    fn stop(&mut self, at_ns: u64) {
        self.load.stop(at_ns);
        self.sweep.forget();
        self.studies.forget();
    }

    fn forget(&mut self, _: RunId, _: ForgetReason) {
        self.load.forget();
        self.sweep.forget();
        self.studies.forget();
    }

    fn work(
        &mut self,
        job: AgentJob,
    ) -> impl Future<Output = Result<JobOutput, String>> + Send + 'static {
        match job {
            AgentJob::Sweep(job) => Either::Left(self.sweep.work(job).map_ok(JobOutput::Sweep)),
            AgentJob::Study(study) => {
                Either::Right(self.studies.work(study).map_ok(JobOutput::Study))
            }
        }
    }
}
