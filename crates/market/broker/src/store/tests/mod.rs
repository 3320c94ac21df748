//! Tests of every store, with the same cases, and tests for one kind of store.

mod accounts;
mod commits;
#[cfg(feature = "postgres")]
mod database;
mod history;
mod logs;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod relay;
mod sqlite;
mod tokens;
mod urls;
mod world;

#[cfg(feature = "postgres")]
pub(crate) use self::database::Database;
#[cfg(feature = "postgres")]
pub(crate) use self::relay::TestRelay;
pub(crate) use self::world::{TestStore, at, later, offer, put, soon, withdraw};

/// Runs tests with every kind of store.
macro_rules! over_all_stores {
    ($($test:ident,)*) => {
        mod sqlite {
            $(#[test]
            fn $test() {
                super::$test(&crate::store::tests::TestStore::sqlite());
            })*
        }

        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[test]
            #[ignore = "needs PostgreSQL: cargo xtask test runs it"]
            fn $test() {
                super::$test(&crate::store::tests::TestStore::postgres());
            })*
        }
    };
}
pub(crate) use over_all_stores;
