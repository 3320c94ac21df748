//! The one thread that uses the store, and how others ask it.
//!
//! It makes what providers write durable, many writes in one transaction, follows the store's log, whoever wrote it,
//! and keeps the registry in step. While the store cannot be used, writers hear so at once, and lookups go on.

mod admission;
mod run;
#[cfg(test)]
mod tests;
mod trouble;

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use posthaste_wsqos::index::Limits;
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use self::run::Run;
use crate::registry::Registry;
use crate::store::{Log, Outcome, Place, Store, StoreError, Write};

/// Jobs that may wait.
const QUEUE: usize = 4_096;

/// Offers that may wait in them.
const OFFERS: usize = 16_384;

/// Asks the keeper.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    jobs: SyncSender<Job>,
    room: Arc<Semaphore>,
}

/// A keeper that runs. Dropping it ends it, after what was asked before.
#[derive(Debug)]
pub(crate) struct Running {
    jobs: SyncSender<Job>,
    thread: Option<JoinHandle<()>>,
}

/// What the keeper is asked.
#[derive(Debug)]
enum Job {
    Write(Write, Waiting),
    Since {
        number: u64,
        limit: usize,
        answer: Answer<Log>,
    },
    /// Somebody has written to the store.
    Look,
    Stop,
}

/// Who waits for a write.
#[derive(Debug)]
struct Waiting {
    answer: Answer<Outcome>,
    /// Given back when it is answered.
    _room: OwnedSemaphorePermit,
}

type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// Why something was not written or read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum WriteError {
    /// More waits than may wait.
    #[error("too much waits to be written: try again later")]
    Busy,
    /// The store could not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Keeper {
    /// Opens the store in `place`, brings `registry` into step and starts. The log keeps the last `keep` changes; no more is
    /// offered than `limits` allow.
    pub(crate) fn start(
        place: &Place,
        registry: Arc<Registry>,
        keep: usize,
        limits: Limits,
    ) -> Result<(Self, Running), StoreError> {
        Self::of(place.open()?, registry, keep, limits)
    }

    fn of(
        mut store: Box<dyn Store>,
        registry: Arc<Registry>,
        keep: usize,
        limits: Limits,
    ) -> Result<(Self, Running), StoreError> {
        let (sender, jobs) = sync_channel(QUEUE);
        let wake = sender.clone();
        // With a full queue the keeper looks in any case.
        store.listen(Box::new(move || drop(wake.try_send(Job::Look))))?;
        let mut run = Run::new(store, registry, jobs, keep, limits);
        run.begin()?;
        let thread = std::thread::Builder::new().name("keeper".to_owned());
        let thread = thread.spawn(move || run.run());
        let thread = thread.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let room = Arc::new(Semaphore::new(OFFERS));
        let keeper = Self {
            jobs: sender.clone(),
            room,
        };
        let handle = Running {
            jobs: sender,
            thread: Some(thread),
        };
        Ok((keeper, handle))
    }

    /// Resolves once it is durable and the registry shows it. Where the store is lost between the two, the registry
    /// is behind and says so. After [`WriteError::Store`] nobody can say whether it was made.
    pub(crate) async fn write(&self, write: Write) -> Result<Outcome, WriteError> {
        let offers = write.changes.len().min(OFFERS) as u32;
        let room = self.room.clone().try_acquire_many_owned(offers);
        let room = room.map_err(|_| WriteError::Busy)?;
        let waiting = |answer| Waiting {
            answer,
            _room: room,
        };
        self.ask(|answer| Job::Write(write, waiting(answer))).await
    }

    /// At most `limit` changes behind `number`, from the store's log.
    pub(crate) async fn since(&self, number: u64, limit: usize) -> Result<Log, WriteError> {
        self.ask(|answer| Job::Since {
            number,
            limit,
            answer,
        })
        .await
    }

    async fn ask<T>(&self, job: impl FnOnce(Answer<T>) -> Job) -> Result<T, WriteError> {
        let ended = || StoreError::Unavailable("the broker ends".to_owned());
        let (answer, answered) = oneshot::channel();
        match self.jobs.try_send(job(answer)) {
            Ok(()) => Ok(answered.await.map_err(|_| ended())??),
            Err(TrySendError::Full(_)) => Err(WriteError::Busy),
            Err(TrySendError::Disconnected(_)) => Err(ended().into()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended by itself where nobody hears this.
        let _ = self.jobs.send(Job::Stop);
        let ended = self.thread.take().map(JoinHandle::join);
        if let Some(Err(_)) = ended {
            tracing::error!("the keeper has ended by a fault of its own");
        }
    }
}
