//! What every store does, tested once over all of them, and what each has of its own.

mod commits;
mod history;
mod logs;
mod sqlite;
mod tokens;
mod world;

pub(crate) use self::world::{World, at, later, offer, put, withdraw};

/// Runs tests over every kind of store.
macro_rules! over_all_stores {
    ($($test:ident,)*) => {
        mod sqlite {
            $(#[test]
            fn $test() {
                super::$test(&crate::store::tests::World::sqlite());
            })*
        }
    };
}
pub(crate) use over_all_stores;
