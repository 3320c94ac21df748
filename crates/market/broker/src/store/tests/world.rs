//! Empty stores for tests, and offers to put into them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use posthaste_qos::{Definition, Money, Offer};
use tempfile::TempDir;

#[cfg(feature = "postgres")]
use super::super::postgres::Postgres;
use super::super::{Condition, Store, StoreUrl, Write};
#[cfg(feature = "postgres")]
use super::{Database, TestRelay};
use crate::change::OfferKey;

/// Location of a store that is deleted on drop.
#[derive(Debug)]
pub(crate) struct TestStore {
    pub(crate) url: StoreUrl,
    resource: TestResource,
}

/// Resources released on drop.
#[derive(Debug)]
enum TestResource {
    Folder(TempDir),
    #[cfg(feature = "postgres")]
    Database(Database),
}

impl TestStore {
    /// A file in a temporary folder.
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            url: StoreUrl::Sqlite(folder.path().join("offers.sqlite")),
            resource: TestResource::Folder(folder),
        }
    }

    /// A temporary database.
    #[cfg(feature = "postgres")]
    pub(crate) fn postgres() -> Self {
        let database = Database::new();
        Self {
            url: database.url().parse().unwrap(),
            resource: TestResource::Database(database),
        }
    }

    /// Another location of the same kind.
    pub(crate) fn another(&self) -> Self {
        match &self.resource {
            TestResource::Folder(_) => Self::sqlite(),
            #[cfg(feature = "postgres")]
            TestResource::Database(_) => Self::postgres(),
        }
    }

    /// URL of the location.
    pub(crate) fn url(&self) -> String {
        match &self.resource {
            TestResource::Folder(_) => self.url.to_string(),
            #[cfg(feature = "postgres")]
            TestResource::Database(database) => database.url(),
        }
    }

    /// File of [`TestStore::sqlite`].
    pub(crate) fn file(&self) -> PathBuf {
        match &self.resource {
            TestResource::Folder(folder) => folder.path().join("offers.sqlite"),
            #[cfg(feature = "postgres")]
            TestResource::Database(_) => panic!("it is in no file"),
        }
    }

    /// Database of [`TestStore::postgres`].
    #[cfg(feature = "postgres")]
    pub(crate) fn database(&self) -> &Database {
        match &self.resource {
            TestResource::Folder(_) => panic!("it is in a file"),
            TestResource::Database(database) => database,
        }
    }

    /// Executes a statement on the store, as another program would.
    pub(crate) fn execute(&self, sql: &str) {
        match &self.url {
            StoreUrl::Sqlite(file) => {
                let other = rusqlite::Connection::open(file).unwrap();
                other.execute_batch(sql).unwrap();
            }
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(_) => {
                let _ = self.postgres_store().ask(sql);
            }
        }
    }

    /// Store of [`TestStore::postgres`].
    #[cfg(feature = "postgres")]
    pub(in crate::store) fn postgres_store(&self) -> Postgres {
        match &self.url {
            StoreUrl::Postgres(config) => Postgres::open(config).unwrap(),
            StoreUrl::Sqlite(_) => panic!("it is in a file"),
        }
    }

    /// Location of [`TestStore::postgres`] through an interruptible relay.
    #[cfg(feature = "postgres")]
    pub(crate) fn over_a_relay(&self) -> (TestRelay, StoreUrl) {
        let url = self.database().url();
        let (scheme, rest) = url.split_once('@').unwrap();
        let (server, name) = rest.split_once('/').unwrap();
        let relay = TestRelay::to(server.parse().unwrap());
        let url = format!("{scheme}@{}/{name}", relay.address());
        (relay, url.parse().unwrap())
    }

    /// Opens the store. Can be called several times.
    pub(crate) fn open(&self) -> Box<dyn Store> {
        self.url.open().unwrap()
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
    let key = OfferKey {
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
