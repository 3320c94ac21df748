//! The work of an agent in a run of studies.

use std::future::Future;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tokio::sync::Semaphore;

use crate::protocol::work::{StudyOutput, StudyRun};

/// Runs the study with this name on so many threads, until it ends or is stopped. Returns its records or an error.
pub type StudyRunner = fn(StudyRun, &str, NonZero<usize>, &AtomicBool) -> Result<String, String>;

/// An agent that runs studies.
pub struct StudyAgent {
    runner: StudyRunner,
    threads: NonZero<usize>,
    /// One permit: a study uses all threads.
    permits: Arc<Semaphore>,
    prepared: Option<PreparedStudies>,
}

#[derive(Clone)]
struct PreparedStudies {
    run: StudyRun,
    stop: Arc<AtomicBool>,
}

impl StudyAgent {
    /// An idle agent with this number of threads.
    pub fn new(runner: StudyRunner, threads: NonZero<usize>) -> Self {
        Self {
            runner,
            threads,
            permits: Arc::new(Semaphore::new(1)),
            prepared: None,
        }
    }

    /// Prepares a run.
    pub fn prepare(&mut self, run: StudyRun) {
        self.forget();
        self.prepared = Some(PreparedStudies {
            run,
            stop: Arc::default(),
        });
    }

    /// Ends the studies of the run.
    pub fn forget(&mut self) {
        if let Some(prepared) = self.prepared.take() {
            prepared.stop.store(true, Relaxed);
        }
    }

    /// Runs a study, on threads of its own.
    pub fn work(
        &self,
        study: String,
    ) -> impl Future<Output = Result<StudyOutput, String>> + Send + use<> {
        let (prepared, permits) = (self.prepared.clone(), self.permits.clone());
        let (runner, threads) = (self.runner, self.threads);
        async move {
            let PreparedStudies { run, stop } = prepared.ok_or("no studies are prepared")?;
            // The semaphore is never closed.
            let _permit = permits.acquire().await.map_err(|error| error.to_string())?;
            let is_stopped = stop.clone();
            let ran = tokio::task::spawn_blocking(move || runner(run, &study, threads, &stop));
            let ran = ran
                .await
                .map_err(|_| "the study failed: a bug".to_owned())?;
            match ran {
                Ok(records) => Ok(StudyOutput::Records(records)),
                Err(_) if is_stopped.load(Relaxed) => Err("the run has ended".to_owned()),
                Err(error) => Ok(StudyOutput::Failed(error)),
            }
        }
    }
}
