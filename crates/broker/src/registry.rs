//! What lookups see: the index, who may publish, and how old all of it is.
//!
//! Only the keeper changes it; every thread reads it.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use posthaste_wsqos::index::{Index, PutError};
use posthaste_wsqos::qos::{Ontologies, Rates};
use tokio::sync::broadcast;

use crate::change::{Change, Key};
use crate::store::StoreError;
use crate::token::{Grant, Hash};

/// Changes that a reader of the stream may be late before it has to ask anew.
const KEPT: usize = 1 << 14;

/// Lookups say how old they are once the index has been out of step for longer; a keeper looks every second.
const IN_STEP: Duration = Duration::from_secs(3);

/// A store that does not answer for longer than this is lost.
const SILENCE: Duration = Duration::from_millis(600);

/// In place of a time that there is not.
const NEVER: i64 = i64::MIN;

/// What the threads of a broker share.
#[derive(Debug)]
pub(crate) struct Registry {
    seen: RwLock<Seen>,
    grants: RwLock<HashMap<Hash, Arc<Grant>>>,
    /// When the index was last in step with what it follows, in milliseconds since `start`, or [`NEVER`].
    in_step: AtomicI64,
    /// Since when the store has been asked and has not answered, in milliseconds since `start`, or [`NEVER`].
    asked: AtomicI64,
    /// Why the store could not answer when it was last asked.
    trouble: RwLock<Option<String>>,
    start: Instant,
}

/// The offers as of one change.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The offers.
    pub(crate) index: Index,
    /// The number of the last change among them.
    pub(crate) number: u64,
    changes: broadcast::Sender<Arc<Change>>,
}

impl Registry {
    /// One without offers, that has never been in step with anything.
    pub(crate) fn new(rates: Rates, ontologies: Ontologies) -> Self {
        let seen = Seen {
            index: Index::new(rates, ontologies),
            number: 0,
            changes: broadcast::Sender::new(KEPT),
        };
        Self {
            seen: RwLock::new(seen),
            grants: RwLock::default(),
            in_step: AtomicI64::new(NEVER),
            asked: AtomicI64::new(NEVER),
            trouble: RwLock::default(),
            start: Instant::now(),
        }
    }

    /// The offers as they are now. Held shortly: a change waits meanwhile.
    pub(crate) fn seen(&self) -> RwLockReadGuard<'_, Seen> {
        self.seen.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose token this is, if it is valid.
    pub(crate) fn grant(&self, token: &str) -> Option<Arc<Grant>> {
        let grants = self.grants.read().unwrap_or_else(PoisonError::into_inner);
        grants.get(&Hash::of(token)).cloned()
    }

    /// Those who may publish, by name.
    pub(crate) fn providers(&self) -> BTreeSet<String> {
        let grants = self.grants.read().unwrap_or_else(PoisonError::into_inner);
        grants
            .values()
            .map(|grant| grant.provider.clone())
            .collect()
    }

    /// How long ago the index was in step, where that is longer than it should be; since the start where it never was.
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

    /// The index was in step so long ago: what it follows says how old its own word is.
    pub(crate) fn in_step(&self, ago: Duration) {
        let now = in_millis(self.start.elapsed());
        self.in_step
            .store(now.saturating_sub(in_millis(ago)), Relaxed);
    }

    /// The store is asked now.
    pub(crate) fn ask(&self) {
        let now = in_millis(self.start.elapsed());
        self.asked.store(now, Relaxed);
    }

    /// The store has answered, or could not.
    pub(crate) fn answered(&self, error: Option<&StoreError>) {
        let error = error.map(ToString::to_string);
        *self.trouble.write().unwrap_or_else(PoisonError::into_inner) = error;
        self.asked.store(NEVER, Relaxed);
    }

    /// Why the index is not, or may not be, in step with what it follows.
    pub(crate) fn trouble(&self) -> Option<String> {
        let asked = self.asked.load(Relaxed);
        let waited = in_millis(self.start.elapsed()).saturating_sub(asked);
        if asked != NEVER && waited > in_millis(SILENCE) {
            return Some(format!("the store has not answered for {waited} ms"));
        }
        let trouble = self.trouble.read().unwrap_or_else(PoisonError::into_inner);
        let lost = |words: &String| format!("the store cannot be used: {words}");
        let behind = |age: Duration| format!("out of step with the store for {} s", age.as_secs());
        trouble
            .as_ref()
            .map(lost)
            .or_else(|| self.age().map(behind))
    }

    /// Those whose tokens are valid from now on.
    pub(crate) fn set_grants(&self, grants: Vec<Grant>) {
        let grants = grants
            .into_iter()
            .map(|grant| (grant.hash, Arc::new(grant)));
        *self.grants.write().unwrap_or_else(PoisonError::into_inner) = grants.collect();
    }

    /// An index without offers that compares as this one does.
    pub(crate) fn empty(&self) -> Index {
        self.seen().index.emptied()
    }

    /// Begins anew with the offers in `index`, of which `number` is the last change. Whoever follows has to begin anew
    /// too.
    pub(crate) fn replace(&self, index: Index, number: u64) {
        let seen = Seen {
            index,
            number,
            changes: broadcast::Sender::new(KEPT),
        };
        // What there was is dropped when nobody waits for the lock any more.
        let _before = std::mem::replace(&mut *self.write(), seen);
    }

    /// Ends every stream of changes; whoever follows comes back, or goes elsewhere.
    pub(crate) fn end_streams(&self) {
        self.write().changes = broadcast::Sender::new(1);
    }

    /// Takes over what has happened since, in order.
    pub(crate) fn apply(&self, changes: Vec<Change>) {
        let mut seen = self.write();
        for change in changes {
            seen.apply(change);
        }
    }

    /// Drops what has expired; how many offers that were.
    pub(crate) fn expire(&self, now: Timestamp) -> usize {
        self.write().index.expire(now)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Seen> {
        self.seen.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// What happens after [`Seen::number`]; closed once that no longer goes on from there.
    pub(crate) fn follow(&self) -> broadcast::Receiver<Arc<Change>> {
        self.changes.subscribe()
    }

    fn apply(&mut self, change: Change) {
        let Key {
            kind,
            provider,
            name,
        } = &change.key;
        // What cannot be compared any more is not offered any more.
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
        // Nobody may be listening.
        let _ = self.changes.send(Arc::new(change));
    }
}

fn in_millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// An offer in the store that this broker cannot compare: one with other rates took it.
pub(crate) fn refused(kind: &str, provider: &str, name: &str, error: PutError) {
    tracing::warn!(kind, provider, name, "not offered here: {error}");
}
