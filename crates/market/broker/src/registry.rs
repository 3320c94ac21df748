//! Registry: the index, its age and the valid tokens, as read by lookups and publishing.
//!
//! Only the store writer or the follower changes it. Every thread reads it.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use posthaste_qos::index::{Index, PutError};
use posthaste_qos::{Ontologies, Rates};
use tokio::sync::broadcast;

use crate::change::{OfferChange, OfferKey};
use crate::store::StoreError;
use crate::token::{Grant, Hash, TokenRole};

/// Maximum number of changes that a reader of the stream may lag behind before it has to reconnect.
const KEPT: usize = 1 << 14;

/// Maximum age of the index that lookups do not report. The store writer checks every second.
const IN_STEP: Duration = Duration::from_secs(3);

/// Maximum number of times per second that an unknown token causes a read of all tokens.
const GRANT_READS: u32 = 10;

/// A store that has not answered for this long counts as lost.
const SILENCE: Duration = Duration::from_millis(600);

/// Represents a missing time.
const NEVER: i64 = i64::MIN;

/// State shared by the threads of a broker.
#[derive(Debug)]
pub(crate) struct Registry {
    current: RwLock<VersionedIndex>,
    grants: RwLock<HashMap<Hash, Arc<Grant>>>,
    /// Number of the second, since `start`, and reads of the tokens in it for unknown ones.
    grant_reads: Mutex<(u64, u32)>,
    /// Time when the index was last in step with its source, in milliseconds since `start`, or [`NEVER`].
    in_step: AtomicI64,
    /// Start of the unanswered call to the store, in milliseconds since `start`, or [`NEVER`].
    call_began: AtomicI64,
    /// Error of the last call to the store, if it failed.
    store_error: RwLock<Option<String>>,
    start: Instant,
}

/// The offers as of one change.
#[derive(Debug)]
pub(crate) struct VersionedIndex {
    /// The offers.
    pub(crate) index: Index,
    /// Number of the last change in the index.
    pub(crate) number: u64,
    changes: broadcast::Sender<Arc<OfferChange>>,
}

impl Registry {
    /// A registry without offers that has never been in step.
    pub(crate) fn new(rates: Rates, ontologies: Ontologies) -> Self {
        let current = VersionedIndex {
            index: Index::new(rates, ontologies),
            number: 0,
            changes: broadcast::Sender::new(KEPT),
        };
        Self {
            current: RwLock::new(current),
            grants: RwLock::default(),
            grant_reads: Mutex::default(),
            in_step: AtomicI64::new(NEVER),
            call_began: AtomicI64::new(NEVER),
            store_error: RwLock::default(),
            start: Instant::now(),
        }
    }

    /// Locks the current offers for reading. Hold it briefly: changes wait for it.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, VersionedIndex> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Grant of a token, if the token is valid.
    pub(crate) fn grant(&self, token: &str) -> Option<Arc<Grant>> {
        let grants = self.grants.read().unwrap_or_else(PoisonError::into_inner);
        grants.get(&Hash::from_token(token)).cloned()
    }

    /// True if the tokens may be read again for an unknown one: [`GRANT_READS`] times in a second, so that wrong tokens
    /// do not keep the store busy.
    pub(crate) fn may_read_grants(&self) -> bool {
        let second = self.start.elapsed().as_secs();
        let mut reads = self
            .grant_reads
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if reads.0 != second {
            *reads = (second, 0);
        }
        reads.1 += 1;
        reads.1 <= GRANT_READS
    }

    /// Providers with a valid token, by name.
    pub(crate) fn providers(&self) -> BTreeSet<String> {
        let grants = self.grants.read().unwrap_or_else(PoisonError::into_inner);
        let grants = grants.values();
        let publishers = grants.filter(|grant| grant.role == TokenRole::Provider);
        publishers.map(|grant| grant.provider.clone()).collect()
    }

    /// Age of the index if it is out of step; the time since the start if it has never been in step.
    pub(crate) fn age(&self) -> Option<Duration> {
        let now = self.start.elapsed();
        match self.in_step.load(Relaxed) {
            NEVER => Some(now),
            last => {
                let age = in_millis(now).saturating_sub(last).max(0);
                let age = Duration::from_millis(age.unsigned_abs());
                (age > IN_STEP).then_some(age)
            }
        }
    }

    /// Records that the index was in step `ago`. A followed broker reports its own age.
    pub(crate) fn in_step(&self, ago: Duration) {
        let now = in_millis(self.start.elapsed());
        self.in_step
            .store(now.saturating_sub(in_millis(ago)), Relaxed);
    }

    /// Records the start of a call to the store.
    pub(crate) fn ask(&self) {
        let now = in_millis(self.start.elapsed());
        self.call_began.store(now, Relaxed);
    }

    /// Records the result of a call to the store.
    pub(crate) fn answered(&self, error: Option<&StoreError>) {
        let error = error.map(ToString::to_string);
        *self
            .store_error
            .write()
            .unwrap_or_else(PoisonError::into_inner) = error;
        self.call_began.store(NEVER, Relaxed);
    }

    /// Reason why the index is, or may be, out of step.
    pub(crate) fn outage(&self) -> Option<String> {
        let call_began = self.call_began.load(Relaxed);
        let waited = in_millis(self.start.elapsed()).saturating_sub(call_began);
        if call_began != NEVER && waited > in_millis(SILENCE) {
            return Some(format!("the store has not replied for {waited} ms"));
        }
        let store_error = self.store_error.read();
        let store_error = store_error.unwrap_or_else(PoisonError::into_inner);
        let lost = |error: &String| format!("the store cannot be used: {error}");
        let behind = |age: Duration| format!("out of step with the store for {} s", age.as_secs());
        store_error
            .as_ref()
            .map(lost)
            .or_else(|| self.age().map(behind))
    }

    /// Replaces the valid tokens.
    pub(crate) fn set_grants(&self, grants: Vec<Grant>) {
        let grants = grants
            .into_iter()
            .map(|grant| (grant.hash, Arc::new(grant)));
        *self.grants.write().unwrap_or_else(PoisonError::into_inner) = grants.collect();
    }

    /// An empty index with the same rates and ontologies.
    pub(crate) fn empty(&self) -> Index {
        self.read().index.emptied()
    }

    /// Replaces all offers by `index`, as of change `number`. Ends the streams of followers, which must reload all
    /// offers.
    pub(crate) fn replace(&self, index: Index, number: u64) {
        let current = VersionedIndex {
            index,
            number,
            changes: broadcast::Sender::new(KEPT),
        };
        // The old offers are dropped after the release of the lock.
        let _before = std::mem::replace(&mut *self.write(), current);
    }

    /// Ends every stream of changes. The readers reconnect, here or elsewhere.
    pub(crate) fn end_streams(&self) {
        self.write().changes = broadcast::Sender::new(1);
    }

    /// Applies subsequent changes, in order.
    pub(crate) fn apply(&self, changes: Vec<OfferChange>) {
        let mut current = self.write();
        for change in changes {
            current.apply(change);
        }
    }

    /// Removes expired offers and returns their number.
    pub(crate) fn expire(&self, now: Timestamp) -> usize {
        self.write().index.expire(now)
    }

    fn write(&self) -> RwLockWriteGuard<'_, VersionedIndex> {
        self.current.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl VersionedIndex {
    /// Subscribes to the changes after [`VersionedIndex::number`]. The channel closes when the offers are replaced.
    pub(crate) fn follow(&self) -> broadcast::Receiver<Arc<OfferChange>> {
        self.changes.subscribe()
    }

    fn apply(&mut self, change: OfferChange) {
        let OfferKey {
            kind,
            provider,
            name,
        } = &change.key;
        // An offer that this broker can no longer compare is removed.
        let put = change
            .offer
            .as_ref()
            .map(|offer| self.index.put(kind, provider, offer));
        if !matches!(put, Some(Ok(_))) {
            self.index.remove(kind, provider, name);
        }
        if let Some(Err(error)) = put {
            refused(kind, provider, name, error);
        }
        self.number = change.number;
        // Sending fails if there are no readers.
        let _ = self.changes.send(Arc::new(change));
    }
}

fn in_millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Logs an offer that this broker cannot compare. A broker with other rates accepted it.
pub(crate) fn refused(kind: &str, provider: &str, name: &str, error: PutError) {
    tracing::warn!(kind, provider, name, "not offered here: {error}");
}
