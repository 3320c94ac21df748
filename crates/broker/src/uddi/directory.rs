//! What the rest of the broker knows of the registry, and what it wants of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::choice::{STATES, Tally};
use super::config::Uddi;
use super::is_key;

/// Types that clients may have the registry asked for, at the same time.
const DEMANDED: usize = 1_000;

/// What the threads of a broker share of the registry.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// Where it answers questions.
    pub(crate) location: String,
    known: Mutex<Known>,
    news: Notify,
    heard: AtomicU64,
    unheard: AtomicU64,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Known {
    trusted: BTreeSet<String>,
    /// By type, what became of its services; none where nobody has asked yet.
    kinds: BTreeMap<String, Option<Tally>>,
    /// Those of them that the configuration names.
    configured: BTreeSet<String>,
    /// When all there is was told last.
    last: Option<Instant>,
    /// Why it does not answer now.
    trouble: Option<String>,
}

/// How the registry is.
pub(crate) struct States {
    /// Trusted providers.
    pub(crate) trusted: usize,
    /// Types of interface.
    pub(crate) kinds: usize,
    /// What became of services.
    pub(crate) services: [(&'static str, u64); STATES.len()],
    /// How long ago all there is was told; none where it never was.
    pub(crate) age: Option<Duration>,
    /// Why it does not answer now.
    pub(crate) trouble: Option<String>,
    /// Rounds of questions that it answered, and that it did not.
    pub(crate) rounds: (u64, u64),
    /// Types that clients asked about beyond what may be asked for at once.
    pub(crate) refused: u64,
}

impl Directory {
    pub(super) fn new(uddi: &Uddi) -> Self {
        let types = &uddi.types;
        let known = Known {
            kinds: types.iter().map(|kind| (kind.clone(), None)).collect(),
            configured: types.iter().cloned().collect(),
            ..Known::default()
        };
        Self {
            location: uddi.inquiry.clone(),
            known: Mutex::new(known),
            ..Self::default()
        }
    }

    /// A client has asked for a type.
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

    /// Resolves once somebody has asked for a type that nobody asked for before.
    pub(super) async fn demanded(&self) {
        self.news.notified().await;
    }

    /// The types to ask for: those that have not been asked for yet, or all.
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

    /// The registry has answered for a type.
    pub(super) fn told(&self, kind: &str, tally: Tally) {
        if let Some(place) = self.known().kinds.get_mut(kind) {
            *place = Some(tally);
        }
    }

    /// Forgets the types that only clients asked for and the registry does not know: they may ask again.
    pub(super) fn forget_unknown(&self) {
        let mut known = self.known();
        let Known {
            kinds, configured, ..
        } = &mut *known;
        kinds.retain(|kind, tally| configured.contains(kind) || *tally != Some(Tally::default()));
    }

    /// A round of questions is over; whether that is news.
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
        let before = std::mem::replace(&mut known.trouble, outcome.err());
        before.is_some() != known.trouble.is_some()
    }

    /// The providers that are trusted.
    pub(crate) fn trusted(&self) -> BTreeSet<String> {
        self.known().trusted.clone()
    }

    pub(crate) fn states(&self) -> States {
        let known = self.known();
        let count = |place| {
            known
                .kinds
                .values()
                .flatten()
                .map(|tally: &Tally| tally[place])
                .sum()
        };
        let mut services = STATES.map(|name| (name, 0));
        for (place, (_, sum)) in services.iter_mut().enumerate() {
            *sum = count(place);
        }
        States {
            trusted: known.trusted.len(),
            kinds: known.kinds.len(),
            services,
            age: known.last.map(|last| last.elapsed()),
            trouble: known.trouble.clone(),
            rounds: (self.heard.load(Relaxed), self.unheard.load(Relaxed)),
            refused: self.refused.load(Relaxed),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
