//! Empty stores for tests, and offers to put into them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use posthaste_qos::{Definition, Money, Offer};
use tempfile::TempDir;

use super::super::postgres::Postgres;
use super::super::{Condition, Place, Store, Write};
use super::{Database, Line};
use crate::change::Key;

/// Location of a store that is deleted on drop.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) place: Place,
    kept: Kept,
}

/// Resources released on drop.
#[derive(Debug)]
enum Kept {
    Folder(TempDir),
    Database(Database),
}

impl World {
    /// A file in a temporary folder.
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            place: Place::Sqlite(folder.path().join("offers.sqlite")),
            kept: Kept::Folder(folder),
        }
    }

    /// A temporary database, if there is a server.
    pub(crate) fn postgres() -> Option<Self> {
        let database = Database::new()?;
        Some(Self {
            place: database.url().parse().unwrap(),
            kept: Kept::Database(database),
        })
    }

    /// Another location of the same kind.
    pub(crate) fn another(&self) -> Option<Self> {
        match &self.kept {
            Kept::Folder(_) => Some(Self::sqlite()),
            Kept::Database(_) => Self::postgres(),
        }
    }

    /// URL of the location.
    pub(crate) fn url(&self) -> String {
        match &self.kept {
            Kept::Folder(_) => self.place.to_string(),
            Kept::Database(database) => database.url(),
        }
    }

    /// File of [`World::sqlite`].
    pub(crate) fn file(&self) -> PathBuf {
        match &self.kept {
            Kept::Folder(folder) => folder.path().join("offers.sqlite"),
            Kept::Database(_) => panic!("it is in no file"),
        }
    }

    /// Database of [`World::postgres`].
    pub(crate) fn database(&self) -> &Database {
        match &self.kept {
            Kept::Folder(_) => panic!("it is in a file"),
            Kept::Database(database) => database,
        }
    }

    /// Store of [`World::postgres`].
    pub(in crate::store) fn postgres_store(&self) -> Postgres {
        match &self.place {
            Place::Postgres(config) => Postgres::open(config).unwrap(),
            Place::Sqlite(_) => panic!("it is in a file"),
        }
    }

    /// Location of [`World::postgres`] through an interruptible relay.
    pub(crate) fn over_a_line(&self) -> (Line, Place) {
        let url = self.database().url();
        let (scheme, rest) = url.split_once('@').unwrap();
        let (server, name) = rest.split_once('/').unwrap();
        let line = Line::to(server.parse().unwrap());
        let place = format!("{scheme}@{}/{name}", line.address());
        (line, place.parse().unwrap())
    }

    /// Opens the store. Can be called several times.
    pub(crate) fn open(&self) -> Box<dyn Store> {
        self.place.open().unwrap()
    }
}

/// Current time in the tests.
pub(crate) fn at() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// The time `seconds` after [`at`].
pub(crate) fn later(seconds: i64) -> Timestamp {
    at() + SignedDuration::from_secs(seconds)
}

/// An offer with this name and price that expires `seconds` after [`at`].
pub(crate) fn offer(name: &str, cents: u64, seconds: i64) -> Offer {
    let price = Money::from_micros(cents * 10_000, "EUR".parse().unwrap());
    Offer {
        name: name.to_owned(),
        expires: later(seconds),
        endpoint: None,
        qos: Definition {
            price,
            ..Definition::default()
        },
    }
}

/// Write that puts `offer` for "books" by provider "a".
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
        alone: None,
    }
}

/// Write that withdraws the offer of [`put`] with this name.
pub(crate) fn withdraw(name: &str, only_if: Condition) -> Write {
    let mut write = put(offer(name, 0, 0), only_if);
    write.changes[0].1 = None;
    write
}

/// Waits until the condition holds.
#[track_caller]
pub(crate) fn soon(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "it has not come to that");
        std::thread::sleep(Duration::from_millis(2));
    }
}
