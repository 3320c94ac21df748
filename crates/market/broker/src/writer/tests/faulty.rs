//! The store writer with a failing store.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use posthaste_broker_client::accounts::{
    AccountChange, ChargeQuery, ChargeRecord, ChargeReport, NewAccount,
};
use posthaste_qos::Offer;
use tokio::sync::broadcast::error::TryRecvError;
use tokio::task::JoinSet;

use super::{TestWriter, ask, put_valid, soon, wait};
use crate::change::{OfferChange, OfferKey};
use crate::store::accounts::{
    AccountCounts, AccountOutcome, AccountStore, ReportOutcome, StoredAccount,
};
use crate::store::tests::{TestStore, put};
use crate::store::{
    Condition, Log, Store, StoreError, TokenRecord, Write, WriteEffect, WriteOutcome,
};
use crate::token::{Grant, Hash, TokenRole};
use crate::writer::{OFFERS, WriteError};

/// Offers per write.
const OFFERS_AT_ONCE: usize = 1_000;

/// Injected errors of a store.
#[derive(Clone, Default)]
struct Faults(Arc<Mutex<[Option<StoreError>; 2]>>);

impl Faults {
    fn reads(&self, error: Option<StoreError>) {
        self.0.lock().unwrap()[0] = error;
    }

    fn writes(&self, error: Option<StoreError>) {
        self.0.lock().unwrap()[1] = error;
    }

    fn check(&self, writes: bool) -> Result<(), StoreError> {
        let faults = self.0.lock().unwrap();
        faults[usize::from(writes)].clone().map_or(Ok(()), Err)
    }
}

struct Faulty {
    store: Box<dyn Store>,
    faults: Faults,
}

impl Store for Faulty {
    fn load(&mut self, take: &mut dyn FnMut(OfferKey, Offer)) -> Result<u64, StoreError> {
        self.faults.check(false)?;
        self.store.load(take)
    }

    fn commit(
        &mut self,
        writes: &[Write],
        now: Timestamp,
    ) -> Result<Vec<WriteOutcome>, StoreError> {
        self.faults.check(true)?;
        self.store.commit(writes, now)
    }

    fn since(&mut self, number: u64, limit: usize) -> Result<Log, StoreError> {
        self.faults.check(false)?;
        self.store.since(number, limit)
    }

    fn audit(&mut self, limit: usize) -> Result<Vec<(u64, OfferChange)>, StoreError> {
        self.store.audit(limit)
    }

    fn grants(&mut self) -> Result<Vec<Grant>, StoreError> {
        self.faults.check(false)?;
        self.store.grants()
    }

    fn tokens(&mut self) -> Result<Vec<TokenRecord>, StoreError> {
        self.store.tokens()
    }

    fn grant(
        &mut self,
        role: TokenRole,
        provider: &str,
        hash: Hash,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        self.store.grant(role, provider, hash, now)
    }

    fn revoke(&mut self, token: u64, now: Timestamp) -> Result<bool, StoreError> {
        self.store.revoke(token, now)
    }

    fn tidy(&mut self, now: Timestamp, keep: usize) -> Result<bool, StoreError> {
        self.store.tidy(now, keep)
    }
}

impl AccountStore for Faulty {
    fn account(&mut self, name: &str) -> Result<Option<StoredAccount>, StoreError> {
        self.store.account(name)
    }

    fn accounts(&mut self, after: &str, limit: usize) -> Result<Vec<StoredAccount>, StoreError> {
        self.store.accounts(after, limit)
    }

    fn add_account(
        &mut self,
        new: &NewAccount,
        now: Timestamp,
        most: usize,
    ) -> Result<AccountOutcome, StoreError> {
        self.store.add_account(new, now, most)
    }

    fn change_account(
        &mut self,
        name: &str,
        change: &AccountChange,
        now: Timestamp,
    ) -> Result<AccountOutcome, StoreError> {
        self.store.change_account(name, change, now)
    }

    fn close_account(&mut self, name: &str, now: Timestamp) -> Result<AccountOutcome, StoreError> {
        self.store.close_account(name, now)
    }

    fn report(
        &mut self,
        report: &ChargeReport,
        token: u64,
        now: Timestamp,
    ) -> Result<ReportOutcome, StoreError> {
        self.faults.check(true)?;
        self.store.report(report, token, now)
    }

    fn charges(&mut self, query: &ChargeQuery) -> Result<Vec<ChargeRecord>, StoreError> {
        self.store.charges(query)
    }

    fn count_accounts(&mut self, now: Timestamp) -> Result<AccountCounts, StoreError> {
        self.store.count_accounts(now)
    }

    fn tidy_accounts(&mut self, now: Timestamp, keep: usize) -> Result<bool, StoreError> {
        self.store.tidy_accounts(now, keep)
    }
}

fn faulty(world: &TestStore) -> (TestWriter, Faults) {
    let faults = Faults::default();
    let store = Faulty {
        store: world.open(),
        faults: faults.clone(),
    };
    (TestWriter::over(Box::new(store)), faults)
}

fn broken() -> StoreError {
    StoreError::Unavailable("the disk is on fire".to_owned())
}

#[test]
fn a_store_that_takes_no_writes_is_tried_by_each() {
    let world = TestStore::sqlite();
    let (kept, faults) = faulty(&world);
    kept.write(put_valid("Gold")).unwrap();
    faults.writes(Some(broken()));
    for _ in 0..3 {
        assert_eq!(
            kept.write(put_valid("Silver")),
            Err(WriteError::Store(broken()))
        );
    }
    assert_eq!(kept.names(), ["Gold"]);
    faults.writes(None);
    assert_eq!(
        kept.write(put_valid("Silver")),
        Ok(WriteOutcome::Made(WriteEffect {
            replaced: 0,
            withdrawn: 0
        }))
    );
    assert_eq!(kept.names(), ["Gold", "Silver"]);
}

#[test]
fn a_store_that_is_lost_is_found_again() {
    let world = TestStore::sqlite();
    let (kept, faults) = faulty(&world);
    kept.write(put_valid("Gold")).unwrap();
    faults.reads(Some(broken()));
    // The next check notices it. Further writes are then rejected immediately.
    soon(|| kept.write(put_valid("Silver")).is_err());
    assert!(wait(kept.writer.since(0, 1)).is_err());
    assert!(kept.names().contains(&"Gold".to_owned()), "lookups go on");
    soon(|| kept.registry.age().is_some());
    // Meanwhile another broker writes.
    world
        .open()
        .commit(&[put_valid("Bronze")], Timestamp::now())
        .unwrap();
    faults.reads(None);
    soon(|| kept.names().contains(&"Bronze".to_owned()));
    assert_eq!(kept.registry.age(), None);
    kept.write(put_valid("Tin")).unwrap();
}

#[test]
fn a_failing_or_silent_store_is_reported_before_offers_age() {
    let world = TestStore::sqlite();
    let (kept, faults) = faulty(&world);
    assert_eq!(kept.registry.outage(), None);
    faults.reads(Some(broken()));
    let outage = || kept.registry.outage().unwrap_or_default();
    soon(|| outage().contains("the disk is on fire"));
    faults.reads(None);
    soon(|| outage().is_empty());
    // The next check of the store writer waits for this lock.
    let held = faults.0.lock().unwrap();
    soon(|| outage().contains("has not replied"));
    drop(held);
    soon(|| outage().is_empty());
}

#[test]
fn a_log_that_was_forgotten_meanwhile_means_to_load_anew() {
    let world = TestStore::sqlite();
    let (kept, faults) = faulty(&world);
    kept.write(put_valid("Gold")).unwrap();
    let mut stream = kept.registry.read().follow();
    faults.reads(Some(broken()));
    soon(|| kept.write(put_valid("Silver")).is_err());
    let mut other = world.open();
    let others: Vec<Write> = (0..20)
        .map(|number| put_valid(&format!("{number}")))
        .collect();
    other.commit(&others, Timestamp::now()).unwrap();
    other.tidy(Timestamp::now(), 3).unwrap();
    faults.reads(None);
    let last = other.load(&mut |_, _| ()).unwrap();
    soon(|| kept.registry.read().number == last);
    assert!(kept.names().len() >= 21);
    // Followers must reload: the new offers do not arrive as changes.
    soon(|| match stream.try_recv() {
        Ok(change) => {
            assert_eq!(change.key.name, "Silver");
            false
        }
        Err(end) => end == TryRecvError::Closed,
    });
}

#[test]
fn more_than_may_wait_is_refused_and_the_rest_is_done() {
    let world = TestStore::sqlite();
    let (kept, faults) = faulty(&world);
    // The store writer waits for this lock with the first of them.
    let held = faults.0.lock().unwrap();
    let big = |first: usize| Write {
        changes: (first..first + OFFERS_AT_ONCE)
            .flat_map(|number| put(super::valid(&format!("{number}")), Condition::Any).changes)
            .collect(),
        ..put_valid("")
    };
    let fitting = OFFERS / OFFERS_AT_ONCE;
    let writes: Vec<Write> = (0..fitting + 3)
        .map(|number| big(number * OFFERS_AT_ONCE))
        .collect();
    let batch = wait(async {
        let mut set: JoinSet<_> = writes
            .into_iter()
            .map(|write| ask(&kept.writer, write))
            .collect();
        let mut batch = Vec::new();
        for _ in 0..3 {
            // Rejected while the store writer is blocked.
            batch.extend(set.join_next().await.map(Result::unwrap));
        }
        drop(held);
        batch.extend(set.join_all().await);
        batch
    });
    let busy = batch
        .iter()
        .filter(|outcome| **outcome == Err(WriteError::Busy))
        .count();
    let made = batch.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!((busy, made), (3, fitting));
    assert_eq!(kept.names().len(), fitting * OFFERS_AT_ONCE);
    kept.write(put_valid("next")).unwrap();
}

#[test]
fn a_writer_ends_while_its_store_is_lost() {
    let world = TestStore::sqlite();
    let (kept, faults) = faulty(&world);
    faults.reads(Some(broken()));
    soon(|| kept.write(put_valid("Silver")).is_err());
    let start = Instant::now();
    drop(kept.running);
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn writes_queued_with_a_stop_are_done_before_it() {
    let world = TestStore::sqlite();
    let (kept, faults) = faulty(&world);
    // The store writer waits for this lock with the first write, and then finds the others and the stop together.
    let held = faults.0.lock().unwrap();
    let later = |number| put_valid(&format!("{number}"));
    let outcomes = wait(async {
        let mut batch = JoinSet::new();
        batch.spawn(ask(&kept.writer, put_valid("first")));
        tokio::task::yield_now().await;
        std::thread::sleep(Duration::from_millis(100));
        (0..10).for_each(|number| drop(batch.spawn(ask(&kept.writer, later(number)))));
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let ended = std::thread::spawn(move || drop(kept.running));
        std::thread::sleep(Duration::from_millis(100));
        drop(held);
        let outcomes = batch.join_all().await;
        ended.join().unwrap();
        outcomes
    });
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}
