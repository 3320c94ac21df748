//! The work of an agent in a sweep.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use posthaste_sim::{JobResult, SimulatedScenario, SweepJob, Totals};
use posthaste_units::Seed;
use tokio::sync::Semaphore;

use crate::protocol::work::SweepDescription;

/// Transactions between two looks at the order to stop.
const LOOK_EVERY: u64 = 256;

/// Reads the scenarios of all cases. The error is the reason of a refusal.
pub type ScenarioReader = fn(&SweepDescription) -> Result<Vec<Arc<dyn SimulatedScenario>>, String>;

/// An agent that simulates.
pub struct SweepAgent {
    read: ScenarioReader,
    /// One permit for each job at a time.
    slots: Arc<Semaphore>,
    sweep: Option<Arc<PreparedSweep>>,
}

/// A sweep that is ready.
struct PreparedSweep {
    scenarios: Vec<Arc<dyn SimulatedScenario>>,
    seed: Seed,
    stop: AtomicBool,
}

impl SweepAgent {
    /// An idle agent that simulates this number of jobs at the same time.
    pub fn new(read: ScenarioReader, slots: usize) -> Self {
        Self {
            read,
            slots: Arc::new(Semaphore::new(slots)),
            sweep: None,
        }
    }

    /// Reads the cases of a sweep. Returns their number.
    pub fn prepare(&mut self, description: &SweepDescription) -> Result<usize, String> {
        self.forget();
        let scenarios = (self.read)(description)?;
        let count = scenarios.len();
        self.sweep = Some(Arc::new(PreparedSweep {
            scenarios,
            seed: Seed(description.seed),
            stop: AtomicBool::new(false),
        }));
        Ok(count)
    }

    /// Ends the jobs of the sweep.
    pub fn forget(&mut self) {
        if let Some(sweep) = self.sweep.take() {
            sweep.stop.store(true, Relaxed);
        }
    }

    /// Simulates the transactions of a job, on a thread of its own.
    pub fn work(
        &self,
        job: SweepJob,
    ) -> impl Future<Output = Result<JobResult, String>> + Send + use<> {
        let (sweep, slots) = (self.sweep.clone(), self.slots.clone());
        async move {
            let sweep = sweep.ok_or("no sweep is prepared")?;
            // The semaphore is never closed.
            let _slot = slots.acquire().await.map_err(|error| error.to_string())?;
            let simulated = tokio::task::spawn_blocking(move || sweep.simulate(job)).await;
            simulated.unwrap_or_else(|_| Err("the simulation failed: a bug".to_owned()))
        }
    }
}

impl PreparedSweep {
    fn simulate(&self, job: SweepJob) -> Result<JobResult, String> {
        let scenario = self
            .scenarios
            .get(job.case)
            .ok_or("there is no such case")?;
        let mut simulator = match scenario.simulator(self.seed) {
            Ok(simulator) => simulator,
            Err(error) => return Ok(JobResult::Failed(error.to_string())),
        };
        let mut totals = Box::new(Totals::new());
        for number in job.first..=job.last {
            if number.is_multiple_of(LOOK_EVERY) && self.stop.load(Relaxed) {
                return Err("the sweep has ended".to_owned());
            }
            simulator.add_to(&mut totals, number);
        }
        Ok(JobResult::Totals(totals))
    }
}
