//! The two kinds of work of an agent: load, and jobs of sweeps.

use std::future::Future;

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
use crate::sweep::{SweepAgent, SweepDescription};

/// The work of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentPlan {
    /// A share of a plan of load.
    Load(SentPlan),
    /// Jobs of a sweep.
    Sweep(SweepDescription),
}

/// Facts about prepared work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentFacts {
    /// A share of a plan of load.
    Load(PreparedFacts),
    /// The number of cases of a sweep.
    Sweep(usize),
}

/// An agent for both kinds of work, one run at a time.
pub struct AgentWork {
    load: LoadAgent,
    sweep: SweepAgent,
}

impl AgentWork {
    /// An idle agent.
    pub const fn new(load: LoadAgent, sweep: SweepAgent) -> Self {
        Self { load, sweep }
    }
}

impl AgentHandler for AgentWork {
    type Plan = AgentPlan;
    type Ready = AgentFacts;
    type Sum = Box<LoadTally>;
    type End = EndFacts;
    type Job = SweepJob;
    type JobResult = JobResult;

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
        }
    }

    fn start(&mut self, _: RunId, origin_ns: u64, notes: NoteSender<Self::Sum, Self::End>) {
        // Jobs of a sweep have replies, and no notes.
        if self.load.is_prepared() {
            self.load.start(origin_ns, notes);
        }
    }

    fn stop(&mut self, at_ns: u64) {
        self.load.stop(at_ns);
        self.sweep.forget();
    }

    fn forget(&mut self, _: RunId, _: ForgetReason) {
        self.load.forget();
        self.sweep.forget();
    }

    fn work(
        &mut self,
        job: SweepJob,
    ) -> impl Future<Output = Result<JobResult, String>> + Send + 'static {
        self.sweep.work(job)
    }
}
