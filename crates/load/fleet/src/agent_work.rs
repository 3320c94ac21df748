//! The kinds of work of an agent: load, jobs of sweeps, and studies in virtual time.

use std::future::Future;

use futures_util::TryFutureExt as _;
use futures_util::future::Either;
use posthaste_load::LoadTally;
use posthaste_sim::{JobResult, SweepJob};
use serde::{Deserialize, Serialize};

use crate::agent::AgentHandler;
use crate::assignment::ForgetReason;
use crate::load::{EndFacts, LoadAgent, PreparedFacts, SentPlan};
use crate::message::PrepareRequest;
use crate::names::RunId;
use crate::notes::NoteSender;
use crate::storage::Storage;
use crate::studies::{StudyAgent, StudyOutput, StudyRun};
use crate::sweep::{SweepAgent, SweepDescription};

/// The work of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentPlan {
    /// A share of a plan of load.
    Load(SentPlan),
    /// Jobs of a sweep.
    Sweep(SweepDescription),
    /// Studies in virtual time.
    Studies(StudyRun),
}

/// A job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentJob {
    /// Transactions of a sweep.
    Sweep(SweepJob),
    /// The study with this name.
    Study(String),
}

/// The result of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobOutput {
    /// Transactions of a sweep.
    Sweep(JobResult),
    /// A study.
    Study(StudyOutput),
}

/// Facts about prepared work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentFacts {
    /// A share of a plan of load.
    Load(PreparedFacts),
    /// The number of cases of a sweep.
    Sweep(usize),
    /// Studies need no preparation.
    Studies,
}

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
