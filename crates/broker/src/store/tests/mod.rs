//! Tests of every store, with the same cases, and tests for one kind of store.

mod commits;
mod database;
mod history;
mod line;
mod logs;
mod places;
mod postgres;
mod sqlite;
mod tokens;
mod world;

pub(crate) use self::database::Database;
pub(crate) use self::line::Line;
pub(crate) use self::world::{World, at, later, offer, put, soon, withdraw};

/// Runs tests with every kind of store.
macro_rules! over_all_stores {
    ($($test:ident,)*) => {
        mod sqlite {
            $(#[test]
            fn $test() {
                super::$test(&crate::store::tests::World::sqlite());
            })*
        }

        mod postgres {
            $(#[test]
            fn $test() {
                if let Some(world) = crate::store::tests::World::postgres() {
                    super::$test(&world);
                }
            })*
        }
    };
}
pub(crate) use over_all_stores;
