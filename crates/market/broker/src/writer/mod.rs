//! The store writer: the only thread that uses the store, and the handle to it.
//!
//! It stores writes durably, many in one transaction, follows the store's log, including the changes of others, and
//! keeps the registry in step. During an outage of the store writers get an error immediately, and lookups continue.

mod admission;
mod outage;
#[cfg(test)]
mod tests;
mod thread;

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use posthaste_qos::index::Limits;
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use self::thread::WriterThread;
use crate::metrics::BrokerMetrics;
use crate::registry::Registry;
use crate::store::{Log, Store, StoreError, StoreUrl, Write, WriteOutcome};

/// Maximum number of queued jobs.
const QUEUE: usize = 4_096;

/// Maximum number of offers in queued writes.
const OFFERS: usize = 16_384;

/// Store writer, as its users see it.
#[derive(Clone, Debug)]
pub(crate) struct StoreWriter {
    jobs: SyncSender<Job>,
    permits: Arc<Semaphore>,
}

/// A running store writer. Dropping it finishes the jobs queued before, then stops the thread.
#[derive(Debug)]
pub(crate) struct WriterHandle {
    jobs: SyncSender<Job>,
    thread: Option<JoinHandle<()>>,
}

/// Numbers of entries that the store keeps.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Changes of offers.
    pub(crate) changes: usize,
    /// Booked charges.
    pub(crate) charges: usize,
    /// Destination of the counts of accounts.
    pub(crate) metrics: Arc<BrokerMetrics>,
}

/// Jobs of the store writer.
#[derive(Debug)]
enum Job {
    Write(Write, WriteReply),
    Since {
        number: u64,
        limit: usize,
        reply: ReplySender<Log>,
    },
    /// A call of the store about accounts.
    Call(StoreCall),
    /// Check the log: another client of the store has written to it.
    Look,
    Stop,
}

/// A store, or the error if it cannot be used.
type UsableStore<'s> = Result<&'s mut dyn Store, StoreError>;

/// A call of the store.
struct StoreCall(Box<dyn FnOnce(UsableStore<'_>) + Send>);

impl std::fmt::Debug for StoreCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreCall")
    }
}

/// Reply channel of a write.
#[derive(Debug)]
struct WriteReply {
    reply: ReplySender<WriteOutcome>,
    /// Queue space, released with the reply.
    _permits: OwnedSemaphorePermit,
}

type ReplySender<T> = oneshot::Sender<Result<T, StoreError>>;

/// Errors of a write or read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum WriteError {
    /// The queue is full.
    #[error("the write queue is full: try again later")]
    Busy,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl StoreWriter {
    /// Opens the store at `url`, brings `registry` into step and starts the thread. The store keeps as much as `keep`
    /// states. Writes are admitted within `limits`.
    pub(crate) fn start(
        url: &StoreUrl,
        registry: Arc<Registry>,
        keep: Kept,
        limits: Limits,
    ) -> Result<(Self, WriterHandle), StoreError> {
        Self::with_store(url.open()?, registry, keep, limits)
    }

    fn with_store(
        mut store: Box<dyn Store>,
        registry: Arc<Registry>,
        keep: Kept,
        limits: Limits,
    ) -> Result<(Self, WriterHandle), StoreError> {
        let (sender, jobs) = sync_channel(QUEUE);
        let wake = sender.clone();
        // If the queue is full, the store writer checks the log anyway.
        store.listen(Box::new(move || drop(wake.try_send(Job::Look))))?;
        let mut writer = WriterThread::new(store, registry, jobs, keep, limits);
        writer.begin()?;
        let builder = std::thread::Builder::new().name("store-writer".to_owned());
        let thread = builder.spawn(move || writer.run());
        let thread = thread.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let permits = Arc::new(Semaphore::new(OFFERS));
        let writer = Self {
            jobs: sender.clone(),
            permits,
        };
        let handle = WriterHandle {
            jobs: sender,
            thread: Some(thread),
        };
        Ok((writer, handle))
    }

    /// Resolves when the write is durable and visible in the registry. If the store is lost in between, the registry is
    /// behind and reports it. After [`WriteError::Store`] the write may or may not have been stored.
    pub(crate) async fn write(&self, write: Write) -> Result<WriteOutcome, WriteError> {
        let offers = write.changes.len().min(OFFERS) as u32;
        let permits = self.permits.clone().try_acquire_many_owned(offers);
        let permits = permits.map_err(|_| WriteError::Busy)?;
        let waiting = |reply| WriteReply {
            reply,
            _permits: permits,
        };
        self.ask(|reply| Job::Write(write, waiting(reply))).await
    }

    /// Returns at most `limit` changes after `number`, from the store's log.
    pub(crate) async fn since(&self, number: u64, limit: usize) -> Result<Log, WriteError> {
        self.ask(|reply| Job::Since {
            number,
            limit,
            reply,
        })
        .await
    }

    /// Makes a call about accounts, after the writes that were queued before.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, WriteError> {
        self.ask(|reply: ReplySender<T>| {
            Job::Call(StoreCall(Box::new(move |store| {
                // Sending fails if the caller no longer waits.
                let _ = reply.send(store.and_then(call));
            })))
        })
        .await
    }

    async fn ask<T>(&self, job: impl FnOnce(ReplySender<T>) -> Job) -> Result<T, WriteError> {
        let ended = || StoreError::Unavailable("the broker ends".to_owned());
        let (reply, answered) = oneshot::channel();
        match self.jobs.try_send(job(reply)) {
            Ok(()) => Ok(answered.await.map_err(|_| ended())??),
            Err(TrySendError::Full(_)) => Err(WriteError::Busy),
            Err(TrySendError::Disconnected(_)) => Err(ended().into()),
        }
    }
}

impl Drop for WriterHandle {
    fn drop(&mut self) {
        // Fails only if the thread has already ended.
        let _ = self.jobs.send(Job::Stop);
        let ended = self.thread.take().map(JoinHandle::join);
        if let Some(Err(_)) = ended {
            tracing::error!("the store writer has ended by a fault of its own");
        }
    }
}
