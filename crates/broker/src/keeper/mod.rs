//! The store writer: the only thread that uses the store, and the handle to it.
//!
//! It stores writes durably, many in one transaction, follows the store's log, including the changes of others, and
//! keeps the registry in step. During an outage of the store writers get an error immediately, and lookups continue.

mod admission;
mod run;
#[cfg(test)]
mod tests;
mod trouble;

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use posthaste_qos::index::Limits;
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use self::run::Run;
use crate::registry::Registry;
use crate::store::{Log, Outcome, Place, Store, StoreError, Write};

/// Maximum number of queued jobs.
const QUEUE: usize = 4_096;

/// Maximum number of offers in queued writes.
const OFFERS: usize = 16_384;

/// Handle to the store writer.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    jobs: SyncSender<Job>,
    room: Arc<Semaphore>,
}

/// A running store writer. Dropping it finishes the jobs queued before, then stops the thread.
#[derive(Debug)]
pub(crate) struct Running {
    jobs: SyncSender<Job>,
    thread: Option<JoinHandle<()>>,
}

/// Jobs of the store writer.
#[derive(Debug)]
enum Job {
    Write(Write, Waiting),
    Since {
        number: u64,
        limit: usize,
        answer: Answer<Log>,
    },
    /// Check the log: another client of the store has written to it.
    Look,
    Stop,
}

/// Reply channel of a write.
#[derive(Debug)]
struct Waiting {
    answer: Answer<Outcome>,
    /// Queue space, released with the reply.
    _room: OwnedSemaphorePermit,
}

type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// Errors of a write or read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum WriteError {
    /// The queue is full.
    #[error("too much waits to be written: try again later")]
    Busy,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Keeper {
    /// Opens the store at `place`, brings `registry` into step and starts the thread. The log keeps the last `keep`
    /// changes. Writes are admitted within `limits`.
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
        // If the queue is full, the store writer checks the log anyway.
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

    /// Resolves when the write is durable and visible in the registry. If the store is lost in between, the registry is
    /// behind and reports it. After [`WriteError::Store`] the write may or may not have been stored.
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

    /// Returns at most `limit` changes after `number`, from the store's log.
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
        // Fails only if the thread has already ended.
        let _ = self.jobs.send(Job::Stop);
        let ended = self.thread.take().map(JoinHandle::join);
        if let Some(Err(_)) = ended {
            tracing::error!("the keeper has ended by a fault of its own");
        }
    }
}
