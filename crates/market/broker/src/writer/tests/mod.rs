//! Tests of the store writer, with working stores and with one that fails on request.

mod durable;
mod faulty;
mod shared;
mod working;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use posthaste_qos::index::Limits;
use posthaste_qos::{Offer, Ontologies, Rates};
use tokio::task::JoinSet;

use super::{Kept, StoreWriter, WriteError, WriterHandle};
use crate::registry::Registry;
use crate::store::tests::{TestStore, offer, put, soon};
use crate::store::{Condition, Store, Write, WriteOutcome};

/// Numbers of entries that stores keep.
fn keep() -> Kept {
    Kept {
        changes: 1_000_000,
        charges: 1_000_000,
        metrics: Arc::default(),
    }
}

/// A store writer and its registry.
struct TestWriter {
    registry: Arc<Registry>,
    writer: StoreWriter,
    running: WriterHandle,
}

impl TestWriter {
    fn in_world(world: &TestStore) -> Self {
        Self::over(world.open())
    }

    fn over(store: Box<dyn Store>) -> Self {
        let registry = registry();
        let (writer, running) =
            StoreWriter::with_store(store, registry.clone(), keep(), Limits::default()).unwrap();
        Self {
            registry,
            writer,
            running,
        }
    }

    fn write(&self, write: Write) -> Result<WriteOutcome, WriteError> {
        wait(self.writer.write(write))
    }

    /// All offers, sorted by name.
    fn offers(&self) -> Vec<Offer> {
        let current = self.registry.read();
        let kinds: Vec<&str> = current.index.kinds().collect();
        let offers = kinds
            .into_iter()
            .flat_map(|kind| current.index.offers(kind));
        let mut offers: Vec<Offer> = offers.map(|found| found.offer).collect();
        offers.sort_by(|a, b| a.name.cmp(&b.name));
        offers
    }

    fn names(&self) -> Vec<String> {
        self.offers().into_iter().map(|offer| offer.name).collect()
    }
}

fn registry() -> Arc<Registry> {
    let rates = Rates::new("EUR".parse().unwrap());
    Arc::new(Registry::new(rates, Ontologies::new()))
}

/// An offer with this name, valid for an hour.
fn valid(name: &str) -> Offer {
    ends(name, 3_600)
}

/// An offer with this name that expires in `seconds`.
fn ends(name: &str, seconds: i64) -> Offer {
    Offer {
        expires: Timestamp::now() + SignedDuration::from_secs(seconds),
        ..offer(name, 40, 0)
    }
}

fn put_valid(name: &str) -> Write {
    put(valid(name), Condition::Any)
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(future)
}

/// A task that writes.
fn ask(
    writer: &StoreWriter,
    write: Write,
) -> impl Future<Output = Result<WriteOutcome, WriteError>> + use<> {
    let writer = writer.clone();
    async move { writer.write(write).await }
}

/// Outcomes of concurrent writes, in the order of their completion.
async fn all_at_once(
    writer: &StoreWriter,
    writes: Vec<Write>,
) -> Vec<Result<WriteOutcome, WriteError>> {
    let batch: JoinSet<_> = writes.into_iter().map(|write| ask(writer, write)).collect();
    batch.join_all().await
}
