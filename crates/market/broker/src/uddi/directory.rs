//! State of the UDDI registry, shared between its watcher and the rest of the broker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::choice::{STATES, Tally};
use super::config::Uddi;
use super::is_key;

/// Maximum number of types queried on behalf of clients at the same time.
const DEMANDED: usize = 1_000;

/// Registry state shared by the threads of a broker.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// URL of the inquiry API.
    pub(crate) location: String,
    known: Mutex<KnownServices>,
    news: Notify,
    heard: AtomicU64,
    unheard: AtomicU64,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct KnownServices {
    trusted: BTreeSet<String>,
    /// Results by type; `None` before the first query.
    kinds: BTreeMap<String, Option<Tally>>,
    /// Types named in the configuration.
    configured: BTreeSet<String>,
    /// Time of the last complete answer.
    last: Option<Instant>,
    /// Error of the last round of queries, if it failed.
    outage: Option<String>,
}

/// Snapshot of the state, for the status page and metrics.
pub(crate) struct States {
    /// Number of trusted providers.
    pub(crate) trusted: usize,
    /// Number of interface types.
    pub(crate) kinds: usize,
    /// Number of services by state.
    pub(crate) services: [(&'static str, u64); STATES.len()],
    /// Time since the last complete answer; `None` before the first.
    pub(crate) age: Option<Duration>,
    /// Error of the last round of queries, if it failed.
    pub(crate) outage: Option<String>,
    /// Successful and failed rounds of queries.
    pub(crate) rounds: (u64, u64),
    /// Number of requests for types beyond the maximum.
    pub(crate) refused: u64,
}

impl Directory {
    pub(super) fn new(uddi: &Uddi) -> Self {
        let types = &uddi.types;
        let known = KnownServices {
            kinds: types.iter().map(|kind| (kind.clone(), None)).collect(),
            configured: types.iter().cloned().collect(),
            ..KnownServices::default()
        };
        Self {
            location: uddi.inquiry.clone(),
            known: Mutex::new(known),
            ..Self::default()
        }
    }

    /// Requests a type on behalf of a client.
    pub(crate) fn demand(&self, kind: &str) {
        if !is_key(kind) {
            return;
        }
        let mut known = self.known();
        let full = known.kinds.len() >= known.configured.len() + DEMANDED;
        if known.kinds.contains_key(kind) {
            return;
        }
        if full {
            self.refused.fetch_add(1, Relaxed);
            return;
        }
        known.kinds.insert(kind.to_owned(), None);
        self.news.notify_one();
    }

    /// Resolves when a client has requested a new type.
    pub(super) async fn demanded(&self) {
        self.news.notified().await;
    }

    /// Types to query: all, or only those not queried yet.
    pub(super) fn kinds(&self, only_new: bool) -> Vec<String> {
        let known = self.known();
        let wanted = known
            .kinds
            .iter()
            .filter(|(_, tally)| !only_new || tally.is_none());
        wanted.map(|(kind, _)| kind.clone()).collect()
    }

    pub(super) fn trust(&self, providers: BTreeSet<String>) {
        self.known().trusted = providers;
    }

    /// Stores the results for a type.
    pub(super) fn record(&self, kind: &str, tally: Tally) {
        if let Some(known) = self.known().kinds.get_mut(kind) {
            *known = Some(tally);
        }
    }

    /// Removes types that are unknown to the registry and not configured. Clients may request them again.
    pub(super) fn forget_unknown(&self) {
        let mut known = self.known();
        let KnownServices {
            kinds, configured, ..
        } = &mut *known;
        kinds.retain(|kind, tally| configured.contains(kind) || *tally != Some(Tally::default()));
    }

    /// Records the end of a round of queries. Returns true if an outage starts or ends.
    pub(super) fn note(&self, outcome: Result<(), String>) -> bool {
        let counter = if outcome.is_ok() {
            &self.heard
        } else {
            &self.unheard
        };
        counter.fetch_add(1, Relaxed);
        let mut known = self.known();
        if outcome.is_ok() {
            known.last = Some(Instant::now());
        }
        let before = std::mem::replace(&mut known.outage, outcome.err());
        before.is_some() != known.outage.is_some()
    }

    /// Trusted providers.
    pub(crate) fn trusted(&self) -> BTreeSet<String> {
        self.known().trusted.clone()
    }

    pub(crate) fn states(&self) -> States {
        let known = self.known();
        let count = |state| {
            known
                .kinds
                .values()
                .flatten()
                .map(|tally: &Tally| tally[state])
                .sum()
        };
        let mut services = STATES.map(|name| (name, 0));
        for (state, (_, sum)) in services.iter_mut().enumerate() {
            *sum = count(state);
        }
        States {
            trusted: known.trusted.len(),
            kinds: known.kinds.len(),
            services,
            age: known.last.map(|last| last.elapsed()),
            outage: known.outage.clone(),
            rounds: (self.heard.load(Relaxed), self.unheard.load(Relaxed)),
            refused: self.refused.load(Relaxed),
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownServices> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
