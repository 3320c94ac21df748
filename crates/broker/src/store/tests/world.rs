//! Places with nothing in them, and offers to put there.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use posthaste_wsqos::qos::{Definition, Money, Offer};
use tempfile::TempDir;

use super::super::{Condition, Place, Store, Write};
use crate::change::Key;

/// A place for a store, which is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) place: Place,
    _kept: Arc<TempDir>,
}

impl World {
    /// A file in a folder of its own.
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            place: Place::Sqlite(folder.path().join("offers.sqlite")),
            _kept: Arc::new(folder),
        }
    }

    /// The file of [`World::sqlite`].
    pub(crate) fn file(&self) -> PathBuf {
        let Place::Sqlite(file) = &self.place;
        file.clone()
    }

    /// The store; opened a second time, it is the same.
    pub(crate) fn open(&self) -> Box<dyn Store> {
        self.place.open().unwrap()
    }
}

/// The time at which tests take place.
pub(crate) fn at() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// So many seconds later.
pub(crate) fn later(seconds: i64) -> Timestamp {
    at() + SignedDuration::from_secs(seconds)
}

/// An offer of this name for so many cents, which ends so many seconds later.
pub(crate) fn offer(name: &str, cents: u64, seconds: i64) -> Offer {
    let price = Money::from_micros(cents * 10_000, "EUR".parse().unwrap());
    Offer {
        name: name.to_owned(),
        expires: later(seconds),
        qos: Definition {
            price,
            ..Definition::default()
        },
    }
}

/// Puts `offer` in its place, for "books" and by "a".
pub(crate) fn put(offer: Offer, only_if: Condition) -> Write {
    let key = Key {
        kind: "books".to_owned(),
        provider: "a".to_owned(),
        name: offer.name.clone(),
    };
    Write {
        by: 7,
        changes: vec![(key, Some(offer))],
        only_if,
    }
}

/// Withdraws the offer of this name that [`put`] puts.
pub(crate) fn withdraw(name: &str, only_if: Condition) -> Write {
    let mut write = put(offer(name, 0, 0), only_if);
    write.changes[0].1 = None;
    write
}
