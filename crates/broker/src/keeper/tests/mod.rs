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

use super::{Keeper, Running, WriteError};
use crate::registry::Registry;
use crate::store::tests::{World, offer, put, soon};
use crate::store::{Condition, Outcome, Store, Write};

/// Number of changes that logs keep.
const KEEP: usize = 1_000_000;

/// A store writer and its registry.
struct Kept {
    registry: Arc<Registry>,
    keeper: Keeper,
    running: Running,
}

impl Kept {
    fn of(world: &World) -> Self {
        Self::over(world.open())
    }

    fn over(store: Box<dyn Store>) -> Self {
        let registry = registry();
        let (keeper, running) =
            Keeper::of(store, registry.clone(), KEEP, Limits::default()).unwrap();
        Self {
            registry,
            keeper,
            running,
        }
    }

    fn write(&self, write: Write) -> Result<Outcome, WriteError> {
        wait(self.keeper.write(write))
    }

    /// All offers, sorted by name.
    fn offers(&self) -> Vec<Offer> {
        let seen = self.registry.seen();
        let kinds: Vec<&str> = seen.index.kinds().collect();
        let offers = kinds.into_iter().flat_map(|kind| seen.index.offers(kind));
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
fn ask(keeper: &Keeper, write: Write) -> impl Future<Output = Result<Outcome, WriteError>> + use<> {
    let keeper = keeper.clone();
    async move { keeper.write(write).await }
}

/// Outcomes of concurrent writes, in the order of their completion.
async fn all_at_once(keeper: &Keeper, writes: Vec<Write>) -> Vec<Result<Outcome, WriteError>> {
    let asked: JoinSet<_> = writes.into_iter().map(|write| ask(keeper, write)).collect();
    asked.join_all().await
}
